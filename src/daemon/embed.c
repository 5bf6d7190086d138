/* embed.c - cove-init and cove-helper, carried inside this binary, as files to execute.
 *
 * A sealed memfd, its maker's (of `cove serve`: host root's), mode 0111: executable by all, readable by
 * no user inside. The kernel then marks its process as not to be dumped by anyone
 * without capabilities on the host: no ptrace, no /proc/1/mem, no fds, not even
 * for root inside (PR_SET_DUMPABLE alone would not hold that). All inits share
 * its pages. */
#include "daemon/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

extern const char cove_init_start[], cove_init_end[];     /* from init_blob.S */
extern const char cove_helper_start[], cove_helper_end[]; /* from helper_blob.S */

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);

        if (w < 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

static int program_fd(const char *name, const char *start, const char *end, struct err *e)
{
    autofd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    autofd int ro = -1;
    char path[32];

    if (fd < 0 || write_all(fd, start, (size_t)(end - start)) < 0 || fchmod(fd, 0111) < 0)
        return err_sys(e, "create the memfd of %s", name);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return err_sys(e, "seal the memfd of %s", name);
    /* A file that is open for writing does not execute. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ro = open(path, O_RDONLY | O_CLOEXEC);
    if (ro < 0 && errno == EACCES && fchmod(fd, 0555) == 0) /* without root's power over files */
        ro = open(path, O_RDONLY | O_CLOEXEC);
    return ro < 0 ? err_sys(e, "reopen the memfd of %s", name) : take_fd(&ro);
}

int embed_init_fd(struct err *e)
{
    return program_fd("cove-init", cove_init_start, cove_init_end, e);
}

int embed_helper_fd(struct err *e)
{
    return program_fd("cove-helper", cove_helper_start, cove_helper_end, e);
}
