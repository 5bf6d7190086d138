/* cgroup.c - a cgroup for commands, where this user may make one: as root, in a session of systemd
 * that delegates, in a container with a writable cgroup2. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sha256.h"
#include "base/str.h"
#include "host/internal.h"

#define LINE_ROOM 4096u

/* Where the cgroup2 hierarchy is mounted, and which of its directories is there. */
static bool find_mount(char *ret_at, char *ret_root, size_t room)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[LINE_ROOM], root[LINE_ROOM], at[LINE_ROOM];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
        if (strstr(line, " - cgroup2 ") != NULL &&
            sscanf(line, "%*s %*s %*s %4095s %4095s", root, at) == 2)
            found = strlen(root) < room && strlen(at) < room;
    if (f != NULL)
        fclose(f);
    if (found) {
        strcpy(ret_at, at);
        strcpy(ret_root, root);
    }
    return found;
}

static bool own_path(char *out, size_t room)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[LINE_ROOM];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, "0::", 3) == 0 && strlen(line) < room) {
            line[strcspn(line, "\n")] = '\0';
            strcpy(out, line + 3);
            found = true;
        }
    if (f != NULL)
        fclose(f);
    return found;
}

/* The same for each server of one state directory: an init that is adopted has its groups there. */
static void name_of(const struct host *h, char out[9])
{
    char hex[SHA256_HEX];
    struct sha256 sum;

    sha256_init(&sum);
    sha256_add(&sum, h->state, strlen(h->state));
    sha256_hex(&sum, hex);
    str_fmt(out, 9, "%.8s", hex);
}

void cgroup_begin(struct host *h)
{
    char at[256], root[256], own[256];
    const char *below = own;
    char name[9];

    h->cgroup_fd = -1;
    if (!h->o->cgroups || !find_mount(at, root, sizeof(at)) || !own_path(own, sizeof(own)))
        return;
    if (strcmp(root, "/") != 0 && strncmp(own, root, strlen(root)) == 0)
        below = own + strlen(root);
    name_of(h, name);
    str_fmt(h->cgroup_path, sizeof(h->cgroup_path), "%s%s/cove-host-%s", at,
            strcmp(below, "/") == 0 ? "" : below, name);
    if (mkdir(h->cgroup_path, 0755) < 0 && errno != EEXIST)
        return;
    h->cgroup_fd = open(h->cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h->cgroup_fd >= 0 && faccessat(h->cgroup_fd, "cgroup.kill", W_OK, 0) == 0 &&
        faccessat(h->cgroup_fd, "../cgroup.procs", W_OK, 0) == 0)
        return;
    drop_fd(&h->cgroup_fd);
    rmdir(h->cgroup_path);
}

static int visit(int at, const char *name, int depth);

/* Its directories, deepest first: a group that a process still dies in stays, and the next end
 * removes it. */
static void empty(int fd, int depth)
{
    DIR *d = fdopendir(fd);

    if (d == NULL) {
        close(fd);
        return;
    }
    for (struct dirent *de; (de = readdir(d)) != NULL;)
        if (de->d_type == DT_DIR && de->d_name[0] != '.')
            visit(dirfd(d), de->d_name, depth - 1);
    closedir(d);
}

static int visit(int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && depth > 0)
        empty(fd, depth);
    else
        drop_fd(&fd);
    return unlinkat(at, name, AT_REMOVEDIR);
}

int cgroup_run(struct host *h)
{
    if (h->cgroup_fd < 0)
        return -1;
    visit(h->cgroup_fd, "run", 3); /* of an init that was killed with its server */
    if (mkdirat(h->cgroup_fd, "run", 0755) < 0 && errno != EEXIST)
        return -1;
    return openat(h->cgroup_fd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cgroup_end(struct host *h)
{
    if (h->cgroup_fd < 0)
        return;
    visit(h->cgroup_fd, "run", 3);
    drop_fd(&h->cgroup_fd);
    if (rmdir(h->cgroup_path) < 0)
        log_warn("remove %s: %s", h->cgroup_path, strerror(errno));
}
