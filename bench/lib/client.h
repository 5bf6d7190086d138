/* client.h - a blocking client of one keep-alive connection, as small as possible: its cost
 * is counted as ours. */
#ifndef BENCH_LIB_CLIENT_H
#define BENCH_LIB_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_IN_MAX (1u << 20)
#define CLIENT_ID_MAX 64

struct client {
    int fd;
    int status;
    const char *key;   /* borrowed from the environment */
    const char *extra; /* header lines of every request, each with its CR LF; or NULL */
    char *in;          /* CLIENT_IN_MAX bytes; received bytes, and how many were used */
    size_t len, at;
    char *body; /* points into `in` after client_call(); NUL-terminated */
    size_t body_len;
};

/* To the server and with the key in these variables. Like all functions here it dies on failure. */
void client_open_as(struct client *c, const char *url_name, const char *key_name);
/* To COVE_URL, with COVE_API_KEY. */
void client_open(struct client *c);
void client_close(struct client *c);

/* One request whose answer is a short JSON; `json` NULL: no body. Dies unless the
 * status is `want`. */
void client_call(struct client *c, const char *method, const char *path, const char *json,
                 int want);

/* One POST whose chunked answer is read and discarded; returns its length. */
uint64_t client_stream(struct client *c, const char *path, const char *accept, const char *json);

/* GET that becomes a WebSocket; from then on client_bytes(). */
void client_upgrade(struct client *c, const char *path);
/* The next n bytes. */
void client_bytes(struct client *c, void *to, size_t n);
/* One GET whose answer of any size is read and discarded; returns its length. */
uint64_t client_fetch(struct client *c, const char *path);
/* One PUT of so many bytes. Dies unless the status is `want`. */
void client_upload(struct client *c, const char *path, uint64_t size, int want);

/* ---- the calls of the benchmarks ---- */

void sandbox_create(struct client *c, char ret_id[CLIENT_ID_MAX]);
void sandbox_create_as(struct client *c, const char *json, char ret_id[CLIENT_ID_MAX]);
void sandbox_delete(struct client *c, const char *id);
/* Runs the command in `json`; dies unless its exit code is 0. */
void sandbox_exec(struct client *c, const char *id, const char *json);
/* A value of GET /metrics, by its name. */
double metric(struct client *c, const char *name);
/* Waits until the daemon is idle: no teardown, and the pool of ready sandboxes is full.
 * Otherwise that work is measured too, and more on one side. */
void daemon_settle(struct client *c);

#define EXEC_TRUE "{\"argv\":[\"/bin/true\"]}"

#endif
