/* git.c - git status of 10,000 files, over HTTP as JSON, next to the same git without Cove:
 * on the host, and as a plain exec in the same sandbox, which is on the same disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/bench.h"
#include "bench/lib/client.h"

#define ROUNDS 60
#define WARM_UP 5
#define TARGET_HOST 2.0 /* overlay on btrfs and a seccomp filter, against a plain disk */
#define TARGET_EXEC 1.2

/* 100 directories of 100 files, 50 of which differ. */
#define MAKE                                                                                       \
    "git init -q r && cd r && for d in $(seq 100); do mkdir d$d; for f in $(seq 100); do "         \
    "echo $d $f > d$d/file$f; done; done; git add . && git -c user.name=b -c user.email=b commit " \
    "-qm all; for d in $(seq 50); do echo more >> d$d/file1; done; git status >/dev/null"

static const char *const status[] = {
    "git", "-C", NULL, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", NULL};

static void make_here(char dir[64])
{
    char script[1024];
    const char *argv[] = {"sh", "-c", script, NULL};

    strcpy(dir, "/tmp/cove-bench-git.XXXXXX");
    if (mkdtemp(dir) == NULL)
        die("mkdtemp failed");
    snprintf(script, sizeof(script), "cd %s && " MAKE, dir);
    if (floor_run(argv) != 0)
        die("git on the host failed");
}

static void remove_here(const char *dir)
{
    const char *argv[] = {"rm", "-rf", dir, NULL};

    floor_run(argv);
}

int main(void)
{
    struct samples ours = {0}, bare = {0}, inside = {0};
    size_t rounds = bench_count("BENCH_ROUNDS", ROUNDS);
    char id[CLIENT_ID_MAX], dir[64], repo[80], path[128];
    const char *argv[sizeof(status) / sizeof(status[0])];
    struct client c;

    client_open(&c);
    sandbox_create(&c, id);
    sandbox_exec(&c, id, "{\"command\":\"" MAKE "\"}");
    make_here(dir);
    snprintf(repo, sizeof(repo), "%s/r", dir);
    memcpy(argv, status, sizeof(status));
    argv[2] = repo;
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/git/status?path=r", id);
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double start = now_ms(), took, plain;

        client_call(&c, "GET", path, NULL, 200);
        took = now_ms() - start;
        start = now_ms();
        sandbox_exec(&c, id,
                     "{\"argv\":[\"git\",\"-C\",\"r\",\"status\",\"--porcelain=v2\",\"-z\","
                     "\"--branch\",\"--untracked-files=all\"]}");
        plain = now_ms() - start;
        if (i < WARM_UP) {
            floor_ms(argv);
            continue;
        }
        samples_add(&ours, took);
        samples_add(&inside, plain);
        samples_add(&bare, floor_ms(argv));
    }
    row_ratio("git status of 10,000 files", &ours, "git on the host", &bare, TARGET_HOST);
    row_ratio("git status of 10,000 files", &ours, "the same by exec", &inside, TARGET_EXEC);
    remove_here(dir);
    sandbox_delete(&c, id);
    client_close(&c);
    return 0;
}
