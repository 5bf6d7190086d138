/* client.h - a blocking client of one keep-alive connection, as thin as it can be:
 * what it costs is counted as ours. */
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
    char *in;          /* CLIENT_IN_MAX bytes; what was received, and which of it is used */
    size_t len, at;
    char *body; /* points into `in` after client_call(), NUL behind it */
    size_t body_len;
};

/* To the server and with the key that these variables name. Like everything here it dies on failure. */
void client_open_as(struct client *c, const char *url_name, const char *key_name);
/* To COVE_URL, with COVE_API_KEY. */
void client_open(struct client *c);
void client_close(struct client *c);

/* One request whose answer is a short JSON; `json` NULL: no body. Dies unless the
 * status is `want`. */
void client_call(struct client *c, const char *method, const char *path, const char *json,
                 int want);

/* One POST whose chunked answer is read and thrown away; how many bytes it had. */
uint64_t client_stream(struct client *c, const char *path, const char *accept, const char *json);

/* GET that becomes a WebSocket; from then on client_bytes(). */
void client_upgrade(struct client *c, const char *path);
/* The next n bytes that came, whatever they are. */
void client_bytes(struct client *c, void *to, size_t n);
/* One GET whose answer is read and thrown away, whatever its size; how many bytes. */
uint64_t client_fetch(struct client *c, const char *path);
/* One PUT of so many bytes. Dies unless the status is `want`. */
void client_upload(struct client *c, const char *path, uint64_t size, int want);

/* ---- the calls of the benchmarks ---- */

void sandbox_create(struct client *c, char ret_id[CLIENT_ID_MAX]);
void sandbox_create_as(struct client *c, const char *json, char ret_id[CLIENT_ID_MAX]);
void sandbox_delete(struct client *c, const char *id);
/* Runs what `json` says; dies unless its exit code is 0. */
void sandbox_exec(struct client *c, const char *id, const char *json);
/* A value of GET /metrics, by its name. */
double metric(struct client *c, const char *name);
/* Waits until the daemon does nothing of its own: none is torn down, and the pool of ready
 * sandboxes grows no more. Else that is measured, too, and not by both sides alike. */
void daemon_settle(struct client *c);

#define EXEC_TRUE "{\"argv\":[\"/bin/true\"]}"

#endif
