/* test_init_group.c - frozen time, measured by init where the kernel does not count it. In a
 * real cgroup, made here: nothing else tells of a freeze. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/run/group.h"

#define TURNS 5000
#define MS 1000000u

static char dir[320];

/* False: this host has no cgroup v2, or we may not use it. */
static bool make_group(void)
{
    FILE *f = fopen("/proc/self/mounts", "re");
    char line[1024], at[256] = "", type[32] = "";

    while (f != NULL && strcmp(type, "cgroup2") != 0 && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "%*s %255s %31s", at, type) != 2)
            type[0] = '\0';
    if (f != NULL)
        fclose(f);
    snprintf(dir, sizeof(dir), "%s/cove-unit-%d", at, (int)getpid());
    return strcmp(type, "cgroup2") == 0 && mkdir(dir, 0755) == 0;
}

static void put(const char *name, const char *text)
{
    char path[400];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static pid_t sleeper(void)
{
    pid_t pid = fork();
    char text[16];

    if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        for (;;)
            pause();
    snprintf(text, sizeof(text), "%d", (int)pid);
    put("cgroup.procs", text);
    return pid;
}

static void until(struct loop *l, const struct groups *gs, bool frozen)
{
    struct err e;
    int turns = 0;

    while ((gs->freezes.since_ns != 0) != frozen && turns++ < TURNS)
        CHECK_INT(loop_turn(l, 1, &e), 0);
    CHECK(turns < TURNS);
}

TEST(frozen_time_counts_during_and_after_a_freeze)
{
    uint64_t start, counted, passed;
    struct groups gs;
    struct loop *l;
    struct err e;
    pid_t pid;
    int fd;

    if (!make_group())
        skip();
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid = sleeper();
    CHECK_INT(loop_new(&l, &e), 0);
    groups_init(&gs, l, fd, 0);
    drop_fd(&gs.stat_fd); /* as before Linux 6.18 */
    CHECK_INT(groups_watch_freezes(&gs, &e), 0);
    CHECK_INT(groups_frozen_ms(&gs), 0);
    start = clock_mono_ns();
    put("cgroup.freeze", "1");
    until(l, &gs, true);
    while (groups_frozen_ms(&gs) < 30)
        CHECK_INT(loop_turn(l, 1, &e), 0);
    put("cgroup.freeze", "0");
    until(l, &gs, false);
    passed = (clock_mono_ns() - start) / MS;
    counted = groups_frozen_ms(&gs);
    CHECK(counted >= 30 && counted <= passed);
    while (clock_mono_ns() < start + (passed + 30) * MS)
        CHECK_INT(loop_turn(l, 1, &e), 0);
    CHECK_INT(groups_frozen_ms(&gs), counted); /* it stands while they run */
    put("cgroup.freeze", "1");
    until(l, &gs, true);
    put("cgroup.freeze", "0");
    until(l, &gs, false);
    CHECK(groups_frozen_ms(&gs) >= counted);
    groups_remove(&gs, NULL);
    loop_free(l);
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    close(fd);
    CHECK_INT(rmdir(dir), 0);
}
