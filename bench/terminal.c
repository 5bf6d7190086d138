/* terminal.c - the time from a key press to the program's answer: over a WebSocket, and over
 * a pty on the host. The program is the same, `cat` on a raw terminal. */
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 2000
#define WARM_UP 100
#define P99 99.0
#define PROGRAM "stty raw -echo; printf '\\001'; exec cat"

/* ---- on the host ---- */

struct bare {
    int master;
    pid_t pid;
};

static void bare_read(const struct bare *b)
{
    char c;

    if (read(b->master, &c, 1) != 1)
        die("pty: %s", strerror(errno));
}

static void bare_open(struct bare *b)
{
    b->pid = forkpty(&b->master, NULL, NULL, NULL);
    if (b->pid < 0)
        die("forkpty: %s", strerror(errno));
    if (b->pid == 0) {
        execl("/bin/bash", "bash", "-c", PROGRAM, (char *)NULL);
        _exit(127);
    }
    bare_read(b);
}

static double bare_key(const struct bare *b)
{
    double start = now_ms();

    if (write(b->master, "k", 1) != 1)
        die("pty: %s", strerror(errno));
    bare_read(b);
    return now_ms() - start;
}

static void bare_close(struct bare *b)
{
    kill(b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    close(b->master);
}

/* ---- over a WebSocket ---- */

/* Frames of a server until one binary byte has come. */
static void ws_read(struct client *c)
{
    for (;;) {
        unsigned char head[2];
        size_t n;
        char skip[125];

        client_bytes(c, head, 2);
        n = head[1];
        if (n > sizeof(skip))
            die("a frame of more than %zu bytes", sizeof(skip));
        client_bytes(c, skip, n);
        if (head[0] == 0x82 && n > 0)
            return;
    }
}

static double ws_key(struct client *c)
{
    /* One byte, masked with zeros. */
    static const char frame[] = {(char)0x82, (char)0x81, 0, 0, 0, 0, 'k'};
    double start = now_ms();

    if (write(c->fd, frame, sizeof(frame)) != (ssize_t)sizeof(frame))
        die("WebSocket: %s", strerror(errno));
    ws_read(c);
    return now_ms() - start;
}

static void ws_open(struct client *c, const char *sandbox)
{
    struct client ask;
    char path[160];

    client_open(&ask);
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/terminals", sandbox);
    client_call(&ask, "POST", path,
                "{\"id\":\"bench\",\"command\":\"stty raw -echo; printf '\\\\001'; exec cat\"}",
                201);
    client_close(&ask);
    client_open(c);
    strcat(path, "/bench/connect");
    client_upgrade(c, path);
    ws_read(c);
}

/* The same program on the PTY of the Cloudflare plane. */
#define CLOUDFLARE "/v1/sandbox/benchpty"

static void cloudflare_open(struct client *c)
{
    client_open(c);
    client_stream(c, CLOUDFLARE "/exec", "text/event-stream",
                  "{\"argv\":[\"bash\",\"-c\",\"echo '#!/bin/bash' >echo; echo 'stty raw -echo; "
                  "printf x; exec cat' >>echo; chmod 755 echo\"]}");
    client_upgrade(c, CLOUDFLARE "/pty?shell=/workspace/echo");
    ws_read(c);
}

/* ---- */

static void tell(struct samples *ours, struct samples *theirs)
{
    char result[BENCH_TEXT_MAX];

    row_ratio("echo of a key, over a WebSocket", ours, "bare pty", theirs, 0);
    snprintf(result, sizeof(result), "%.3f ms more at the median, %.3f ms at p99",
             samples_at(ours, 50) - samples_at(theirs, 50),
             samples_at(ours, P99) - samples_at(theirs, P99));
    note_print("echo of a key: %s; a screen shows a new picture every 16 ms", result);
}

int main(void)
{
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);
    struct samples ours = {0}, theirs = {0}, plane = {0};
    struct client control, c, pty;
    char id[CLIENT_ID_MAX];
    struct bare b;

    client_open(&control);
    sandbox_create(&control, id);
    ws_open(&c, id);
    cloudflare_open(&pty);
    bare_open(&b);
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double mine = ws_key(&c), bare = bare_key(&b), through = ws_key(&pty);

        if (i < WARM_UP)
            continue;
        samples_add(&ours, mine);
        samples_add(&theirs, bare);
        samples_add(&plane, through);
    }
    tell(&ours, &theirs);
    row_ratio("cloudflare: echo of a key on the PTY", &plane, "bare pty", &theirs, 0);
    samples_free(&ours);
    samples_free(&plane);
    samples_free(&theirs);
    bare_close(&b);
    client_close(&c);
    client_close(&pty);
    sandbox_delete(&control, id);
    client_call(&control, "DELETE", CLOUDFLARE, NULL, 204);
    client_close(&control);
    return 0;
}
