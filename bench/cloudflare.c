/* cloudflare.c - the Cloudflare plane: the frequent calls of an agent's client, each in turn with
 * the same work on the host. The latency of a PTY is in terminal.c. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 400
#define WARM_UP 20
#define AT "/v1/sandbox/bench"
#define EXEC AT "/exec"
#define EXIT_0 strlen("event: exit\ndata: {\"exit_code\":0}\n\n")
#define KIB 1024u
#define FILES 100

static struct client c;
static char dir[] = "/tmp/cove-bench-cloudflare-XXXXXX";

/* ---- ours ---- */

/* An exec is a stream; its length shows that the exit code was 0. */
static void silent(const char *json)
{
    uint64_t n = client_stream(&c, EXEC, "text/event-stream", json);

    if (n != EXIT_0)
        die("%s: %llu bytes of events", json, (unsigned long long)n);
}

static void exec_true(void)
{
    silent("{\"argv\":[\"true\"]}");
}

static void exec_login(void)
{
    silent("{\"argv\":[\"/bin/sh\",\"-lc\",\"true\"]}");
}

static void exec_session(void)
{
    c.extra = "Session-Id: bench\r\n";
    silent("{\"argv\":[\"true\"]}");
    c.extra = NULL;
}

static void read_file(void)
{
    if (client_fetch(&c, AT "/file/workspace/f") != KIB)
        die("a file of another size");
}

static void write_file(void)
{
    client_upload(&c, AT "/file/workspace/f", KIB, 200);
}

static void list_files(void)
{
    if (client_stream(&c, EXEC, "text/event-stream",
                      "{\"argv\":[\"ls\",\"-la\",\"/workspace/many\"]}") < FILES)
        die("nothing listed");
}

/* ---- the host ---- */

static void spawn_true(void)
{
    floor_ms((const char *const[]){"true", NULL});
}

static void spawn_login(void)
{
    floor_ms((const char *const[]){"/bin/sh", "-lc", "true", NULL});
}

static void spawn_ls(void)
{
    floor_ms((const char *const[]){"ls", "-la", dir, NULL});
}

static void host_path(char out[64])
{
    snprintf(out, 64, "%s/f", dir);
}

static void host_write(void)
{
    char path[64], bytes[KIB] = "";
    int fd;

    host_path(path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, KIB) != (ssize_t)KIB)
        die("%s", path);
    close(fd);
}

static void host_read(void)
{
    char path[64], bytes[KIB];
    int fd;

    host_path(path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, bytes, KIB) != (ssize_t)KIB)
        die("%s", path);
    close(fd);
}

/* ---- */

static const struct {
    const char *what, *peer;
    void (*ours)(void), (*theirs)(void);
    double target;
} cases[] = {
    {"cloudflare: exec [\"true\"]", "posix_spawn", exec_true, spawn_true, 2.0},
    {"cloudflare: exec sh -lc true, as the Agents SDK does", "posix_spawn", exec_login, spawn_login,
     0},
    {"cloudflare: [\"true\"] in a session", "posix_spawn", exec_session, spawn_true, 0},
    {"cloudflare: write 1 KiB", "the host's own disk", write_file, host_write, 0},
    {"cloudflare: read 1 KiB", "the host's own disk", read_file, host_read, 0},
    {"cloudflare: list 100 files (exec ls -la)", "posix_spawn", list_files, spawn_ls, 0},
};

static double timed(void (*work)(void))
{
    double start = now_ms();

    work();
    return now_ms() - start;
}

static void measure(size_t which)
{
    struct samples ours = {0}, theirs = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);

    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double mine = timed(cases[which].ours), floor = timed(cases[which].theirs);

        if (i >= WARM_UP) {
            samples_add(&ours, mine);
            samples_add(&theirs, floor);
        }
    }
    row_ratio(cases[which].what, &ours, cases[which].peer, &theirs, cases[which].target);
    samples_free(&ours);
    samples_free(&theirs);
}

static void make_files(void)
{
    char path[64];

    if (mkdtemp(dir) == NULL)
        die("mkdtemp");
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof(path), "%s/file-%d", dir, i);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    silent("{\"argv\":[\"bash\",\"-c\",\"mkdir many && touch many/file-{0..99}\"]}");
}

static void remove_files(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    if (system(command) != 0)
        die("%s", command);
}

int main(void)
{
    client_open(&c);
    make_files();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        measure(i);
    note_print(
        "cloudflare: the reference on a machine of this class: exec 4.6 ms, exec in a session "
        "12.4 ms, list 86 ms, kill 53 ms");
    remove_files();
    client_call(&c, "DELETE", AT, NULL, 204);
    client_close(&c);
    return 0;
}
