/* session.c - commands in a session over HTTP, and the same in a bare bash over its fds.
 *
 * A command of ours wakes a process six times (front, init, bash and back), a bare one twice.
 * So the ratio of the first row also depends on what idle cores do. A bare bash on its client's
 * core takes half the time, and stays on a core for a while: with one pair for all rounds the
 * ratio was 2.3 to 4.0, with fifty pairs 2.4 to 2.8. Measured:
 *
 *   cores                            bare bash       ratio
 *   that sleep when idle             0.08-0.12 ms    2.4-2.8
 *   kept awake by other work         0.06 ms         3.3-3.7
 *   batches of 4,000, not in turn                    2.0-2.8
 *   batches of 2 to 1,000            0.045 ms        4-6 (the kernel leaves it on one core)
 *
 * So a `yes` here holds for a quiet machine only. Three C programs that copy their input to
 * their output in place of client, front and init take 0.115 ms on two cores and 0.07 on one; we
 * take 0.19 to 0.25 and 0.18. A client that waits between its commands finds cold caches, and
 * three processes have more to load than one: hence the second row. 20 ms apart those three
 * programs take 0.62 to 0.69 ms, 3.1 to 3.4 times as long as a bare bash. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 5000
#define PLACES 50 /* sessions one after the other, each beside a bare bash of its own */
#define WARM_UP 30
#define APART_ROUNDS 200
#define APART_PLACES 4
#define APART_US 20000
#define FLOODS 5
#define TEXTS 100
#define TEXT_BYTES (64u << 10)
#define FLOOD                                                                                      \
    "for ((i = 0; i < 50000; i++)); do echo \"line $i of some more than one hundred bytes, so "    \
    "that fifty thousand of them are five megabytes, all in all\"; done"
#define DONE "done-with-it\n"

extern char **environ;

/* ---- a bare bash ---- */

struct bare {
    pid_t pid;
    int in, out, err, status; /* the last two are fds 8 and 9 to it */
};

static void bare_open(struct bare *b)
{
    static char *const argv[] = {(char *)"bash", (char *)"--norc", (char *)"--noprofile", NULL};
    posix_spawn_file_actions_t fa;
    int in[2], out[2], err[2], status[2];

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
        pipe2(status, O_CLOEXEC) < 0)
        die("pipe");
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    posix_spawn_file_actions_adddup2(&fa, err[1], 8);
    posix_spawn_file_actions_adddup2(&fa, status[1], 9);
    if (posix_spawnp(&b->pid, "bash", &fa, NULL, argv, environ) != 0)
        die("bash");
    posix_spawn_file_actions_destroy(&fa);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    close(status[1]);
    b->in = in[1];
    b->out = out[0];
    b->err = err[0];
    b->status = status[0];
}

static void bare_close(struct bare *b)
{
    close(b->in);
    close(b->out);
    close(b->err);
    close(b->status);
    waitpid(b->pid, NULL, 0);
}

/* Sends it and reads until `end` was printed; returns the number of bytes. */
static size_t bare_run(struct bare *b, const char *text, const char *end)
{
    static char buf[1 << 16];
    size_t n = strlen(text), total = 0, tail = strlen(end), have = 0;
    ssize_t got;

    if (write(b->in, text, n) != (ssize_t)n)
        die("write to bash");
    while ((got = read(b->out, buf + have, sizeof(buf) - have)) > 0) {
        have += (size_t)got;
        total += (size_t)got;
        if (have >= tail && memcmp(buf + have - tail, end, tail) == 0)
            return total;
        if (have > sizeof(buf) / 2) {
            memmove(buf, buf + have - tail, tail);
            have = tail;
        }
    }
    die("bash ended");
}

/* As a session runs a command: no stdin, separate stdout and stderr, and its status. */
static void bare_builtin(struct bare *b)
{
    static const char text[] = "{ echo x; } </dev/null 2>&8; echo $? >&9\n";
    char got[16];

    if (write(b->in, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1 ||
        read(b->status, got, sizeof(got)) != 2 || read(b->out, got, sizeof(got)) != 2)
        die("bash ended");
}

/* ---- a session ---- */

struct ours {
    struct client c;
    char id[CLIENT_ID_MAX], exec[256];
};

static void ours_run(struct ours *o, const char *json)
{
    client_call(&o->c, "POST", o->exec, json, 200);
    if (strstr(o->c.body, "\"exit_code\":0") == NULL)
        die("a command failed: %.200s", o->c.body);
}

static void session_open(struct ours *o)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/sessions", o->id);
    client_call(&o->c, "POST", path, "{\"id\":\"bench\"}", 201);
    snprintf(o->exec, sizeof(o->exec), "%s/bench/exec", path);
}

static void session_close(struct ours *o)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/sessions/bench", o->id);
    client_call(&o->c, "DELETE", path, NULL, 204);
}

struct turns {
    size_t rounds, places, warm_up;
    useconds_t apart_us;
};

/* A sleep of 0 takes 50 us: skip it. */
static double start_after(useconds_t pause_us)
{
    if (pause_us != 0)
        usleep(pause_us);
    return now_ms();
}

static void builtin_turns(struct ours *o, const struct turns *t, struct samples *ours,
                          struct samples *theirs)
{
    size_t rounds = t->warm_up + t->rounds / t->places;
    struct bare b;

    session_open(o);
    bare_open(&b);
    for (size_t i = 0; i < rounds; i++) {
        double start = start_after(t->apart_us), end, again;

        ours_run(o, "{\"command\":\"echo x\"}");
        end = now_ms();
        again = start_after(t->apart_us);
        bare_builtin(&b);
        if (i < t->warm_up)
            continue;
        samples_add(theirs, now_ms() - again);
        samples_add(ours, end - start);
    }
    bare_close(&b);
    session_close(o);
}

static void builtin_row(struct ours *o, const char *what, const struct turns *t)
{
    struct samples ours = {0}, theirs = {0};

    for (size_t i = 0; i < t->places; i++)
        builtin_turns(o, t, &ours, &theirs);
    row_ratio(what, &ours, "bare bash over fds, status too", &theirs, 3);
    samples_free(&ours);
    samples_free(&theirs);
}

static void builtin_rows(struct ours *o)
{
    const struct turns close = {bench_count("BENCH_ROUNDS", ROUNDS), PLACES, WARM_UP, 0};
    const struct turns apart = {APART_ROUNDS, APART_PLACES, 1, APART_US};

    builtin_row(o, "builtin in a session", &close);
    builtin_row(o, "builtin in a session, each 20 ms after the last", &apart);
}

static void flood_row(struct ours *o, struct bare *b)
{
    struct samples ours = {0}, theirs = {0};
    char json[1024];

    snprintf(json, sizeof(json), "{\"command\":\"%s\"}",
             "for ((i = 0; i < 50000; i++)); do echo \\\"line $i of some more than one hundred "
             "bytes, so that fifty thousand of them are five megabytes, all in all\\\"; done");
    for (size_t i = 0; i < FLOODS; i++) {
        double start = now_ms(), between;
        uint64_t n = client_stream(&o->c, o->exec, "application/octet-stream", json);
        size_t m;

        between = now_ms();
        m = bare_run(b, FLOOD "; echo " DONE, DONE);
        samples_add(&theirs, now_ms() - between);
        samples_add(&ours, between - start);
        if (n + strlen(DONE) != m)
            die("%llu bytes instead of %zu", (unsigned long long)n, m - strlen(DONE));
    }
    row_ratio("5 MB of lines in a session", &ours, "bare bash", &theirs, 2);
    samples_free(&ours);
    samples_free(&theirs);
}

/* The same lines for both: ours in the request, bash's in a file that it sources. */
static char *make_text(const char *line, const char *newline, size_t bytes)
{
    char *text = calloc(1, 2 * bytes + 256), *at = text;

    for (size_t n = 0; n < bytes; n += strlen(line) + 1)
        at += sprintf(at, "%s%s", line, newline);
    return text;
}

static void text_row(struct ours *o, struct bare *b)
{
    static const char line[] = "v=0123456789; : $v is one of many lines of a long command";
    char *json = make_text(line, "\\n", TEXT_BYTES), *file = make_text(line, "\n", TEXT_BYTES);
    char path[] = "/tmp/bench-session.XXXXXX", *body = malloc(strlen(json) + 64), source[128];
    struct samples ours = {0}, theirs = {0};
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, file, strlen(file)) != (ssize_t)strlen(file))
        die("%s", path);
    sprintf(body, "{\"command\":\"%s\"}", json);
    snprintf(source, sizeof(source), ". %s; echo x\n", path);
    for (size_t i = 0; i < TEXTS; i++) {
        double start = now_ms(), between;

        ours_run(o, body);
        between = now_ms();
        bare_run(b, source, "x\n");
        samples_add(&theirs, now_ms() - between);
        samples_add(&ours, between - start);
    }
    row_ratio("64 KiB of command in a session", &ours, "bare bash sources it", &theirs, 2);
    unlink(path);
    close(fd);
    samples_free(&ours);
    samples_free(&theirs);
    free(body);
    free(json);
    free(file);
}

int main(void)
{
    struct ours o;
    struct bare b;

    client_open(&o.c);
    sandbox_create(&o.c, o.id);
    daemon_settle(&o.c);
    builtin_rows(&o);
    session_open(&o);
    bare_open(&b);
    flood_row(&o, &b);
    text_row(&o, &b);
    bare_close(&b);
    sandbox_delete(&o.c, o.id);
    client_close(&o.c);
    return 0;
}
