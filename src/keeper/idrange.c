/* idrange.c - a private range of 65,536 user and group ids for each sandbox.
 *
 * Ranges are leased for the whole host, since several daemons may run on it:
 * /run/cove/idranges is an array with one tag per range, changed under a lock. A
 * file on a sandbox's disk carries ids from 0 on whatever the range is (the
 * mounts are mapped), so a range is free again as soon as nothing runs in it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/log.h"
#include "keeper/compat.h"
#include "keeper/host.h"

#include <sys/prctl.h>

/* Above what Debian, systemd and subuid files hand out, below 2^31. */
#define IDS_FIRST 0x70000000u
#define IDS_RANGES NETWORK_RANGES /* up to 0x7f000000 */

static int locked(struct keeper *k)
{
    int r;

    do
        r = flock(k->ids.fd, LOCK_EX);
    while (r < 0 && errno == EINTR);
    return r;
}

int ids_open(struct keeper *k, struct err *e)
{
    if (mkdir("/run/cove", 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make /run/cove");
    k->ids.fd = open("/run/cove/idranges", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (k->ids.fd < 0 || ftruncate(k->ids.fd, (off_t)IDS_RANGES * TAG_LEN) < 0)
        return err_sys(e, "/run/cove/idranges");
    return 0;
}

uid_t ids_base(const struct sandbox *sb)
{
    return IDS_FIRST + sb->rec.range * SANDBOX_IDS;
}

static int lease(struct keeper *k, uint32_t *ret, struct err *e)
{
    static const char none[TAG_LEN];
    char all[IDS_RANGES][TAG_LEN];

    if (pread(k->ids.fd, all, sizeof(all), 0) != (ssize_t)sizeof(all))
        return err_sys(e, "read id ranges");
    for (uint32_t i = 0; i < IDS_RANGES; i++) {
        if (memcmp(all[i], none, TAG_LEN) != 0)
            continue;
        if (pwrite(k->ids.fd, k->tag, TAG_LEN, (off_t)i * TAG_LEN) != TAG_LEN)
            return err_sys(e, "lease an id range");
        *ret = i;
        return 0;
    }
    return err_set(e, ERR_UNAVAILABLE, "all %u id ranges of this host are taken", IDS_RANGES);
}

int idrange_up(struct sandbox *sb, struct err *e)
{
    int r;

    if (locked(sb->k) < 0)
        return err_sys(e, "lock id ranges");
    r = lease(sb->k, &sb->rec.range, e);
    flock(sb->k->ids.fd, LOCK_UN);
    return r < 0 ? r : cgroup_own(sb, e);
}

static void give_back(struct keeper *k, uint32_t range)
{
    static const char none[TAG_LEN];
    char tag[TAG_LEN];
    off_t at = (off_t)range * TAG_LEN;

    if (pread(k->ids.fd, tag, TAG_LEN, at) == TAG_LEN && memcmp(tag, k->tag, TAG_LEN) == 0 &&
        pwrite(k->ids.fd, none, TAG_LEN, at) != TAG_LEN)
        log_warn("give back id range %u: %s", range, strerror(errno));
}

static bool in_use(struct keeper *k, uint32_t range)
{
    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.range == range)
                return true;
        }
    return false;
}

int idrange_down(struct sandbox *sb)
{
    if (locked(sb->k) < 0)
        return 1;
    if (sb->rec.range != RANGE_NONE)
        give_back(sb->k, sb->rec.range);
    sb->rec.range = RANGE_NONE;
    flock(sb->k->ids.fd, LOCK_UN);
    return 0;
}

void ids_keep(struct sandbox *sb)
{
    static const char none[TAG_LEN];
    off_t at = (off_t)sb->rec.range * TAG_LEN;
    char tag[TAG_LEN];

    if (sb->rec.range >= IDS_RANGES || locked(sb->k) < 0)
        return;
    if (pread(sb->k->ids.fd, tag, TAG_LEN, at) != TAG_LEN)
        log_warn("id range %u: %s", sb->rec.range, strerror(errno));
    else if (memcmp(tag, none, TAG_LEN) == 0 &&
             pwrite(sb->k->ids.fd, sb->k->tag, TAG_LEN, at) != TAG_LEN)
        log_warn("lease id range %u again: %s", sb->rec.range, strerror(errno));
    else if (memcmp(tag, none, TAG_LEN) != 0 && memcmp(tag, sb->k->tag, TAG_LEN) != 0)
        log_error("sandbox %s shares its ids with one of daemon %.8s: restart it", sb->rec.id, tag);
    flock(sb->k->ids.fd, LOCK_UN);
}

void ids_sweep(struct keeper *k)
{
    if (locked(k) < 0)
        return;
    for (uint32_t i = 0; i < IDS_RANGES; i++)
        if (!in_use(k, i))
            give_back(k, i);
    flock(k->ids.fd, LOCK_UN);
}

/* Raw system calls: glibc's would change every thread, and only this one may
 * act as somebody else. With SECBIT_NO_SETUID_FIXUP the capabilities stay. */
int become(uid_t id, struct err *e)
{
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
        return err_sys(e, "keep capabilities");
    if (syscall(SYS_setresgid, -1, id, -1) < 0 || syscall(SYS_setresuid, -1, id, -1) < 0) {
        int saved = errno;

        become_root();
        errno = saved;
        return err_sys(e, "act as id %u", id);
    }
    return 0;
}

void become_root(void)
{
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0)
        abort(); /* going on as somebody else would be worse than ending */
}
