/* idrange.c - a private range of 65,536 user and group ids for each sandbox.
 *
 * Ranges are leased for the whole host, since several daemons may run on it: /run/cove/idranges is
 * an array with one tag per range, changed under a lock. Files on a sandbox's disk have ids from 0
 * on in every range (the mounts are mapped), so a range is free as soon as nothing runs in it.
 *
 * The number of a range is also the number of an address and of an interface, so everything of one
 * sandbox must be gone before the next gets its range. This holds wherever a keeper is killed:
 *
 *  - A range is leased before a record names it, and the record names it, with the boot id of the
 *    host, before anything is made with it. The next keeper gives back a lease that no record names.
 *  - A range is given back after everything made with it is gone (the stages above this one, and
 *    every process of the cgroup) and after the record no longer names it. In the other order a record
 *    could name the range of another sandbox: the next keeper would delete the interface of that one
 *    and give the range back twice.
 *  - A keeper gives back unnamed ranges only after it has read all records and taken down every
 *    sandbox whose range it does not know.
 *  - In any case, a range is not leased while a sandbox of ours has it or its interface exists.
 *
 * The file may be lost while daemons run (`rm -rf /run/cove`). Each daemon checks before use: the
 * first one makes a new file with the ranges of everything that runs on the host, and each daemon
 * enters its own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/host.h"
#include "keeper/network.h"
#include "keeper/stages.h"

#include <sys/prctl.h>

/* Above the ids that Debian, systemd and subuid files use, below 2^31. */
#define IDS_FIRST 0x70000000u
#define IDS_RANGES NETWORK_RANGES /* up to 0x7f000000 */
#define IDS_BYTES ((off_t)IDS_RANGES * TAG_LEN)
#define RUN_DIR "/run/cove"

static const char no_tag[TAG_LEN];
static const char unknown_tag[TAG_LEN] =
    "????????"; /* it runs, and its cgroup is not one of ours */

uid_t ids_base(const struct sandbox *sb)
{
    return IDS_FIRST + sb->rec.range * SANDBOX_IDS;
}

int ids_find(struct sandbox *sb, struct err *e)
{
    unsigned inside, base = 0, count = 0;
    char path[64];
    FILE *f;

    str_fmt(path, sizeof(path), "/proc/%d/uid_map", (int)sb->pid);
    f = fopen(path, "re");
    if (f == NULL)
        return err_sys(e, "open %s", path);
    if (fscanf(f, "%u %u %u", &inside, &base, &count) != 3 || inside != 0 || count != SANDBOX_IDS ||
        base < IDS_FIRST || (base - IDS_FIRST) % SANDBOX_IDS != 0 ||
        (base - IDS_FIRST) / SANDBOX_IDS >= IDS_RANGES) {
        fclose(f);
        return err_set(e, ERR_INTERNAL, "%s does not hold one of Cove's id ranges", path);
    }
    fclose(f);
    sb->rec.range = (base - IDS_FIRST) / SANDBOX_IDS;
    return 0;
}

/* ---- the file ---- */

static int tag_get(const struct keeper *k, uint32_t range, char tag[TAG_LEN])
{
    return pread(k->ids.fd, tag, TAG_LEN, (off_t)range * TAG_LEN) == TAG_LEN ? 0 : -1;
}

static int tag_put(const struct keeper *k, uint32_t range, const char *tag)
{
    return pwrite(k->ids.fd, tag, TAG_LEN, (off_t)range * TAG_LEN) == TAG_LEN ? 0 : -1;
}

static ssize_t read_text(const char *path, char *out, size_t room)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);

    out[n < 0 ? 0 : n] = '\0';
    return n;
}

/* Enters the range of this process, from its id map, with the tag of its daemon, from its cgroup.
 */
static void enter_process(char all[IDS_RANGES][TAG_LEN], const char *pid)
{
    char path[64], text[4096];
    const char *at;
    unsigned first;

    str_fmt(path, sizeof(path), "/proc/%.20s/uid_map", pid);
    if (read_text(path, text, sizeof(text)) <= 0 || sscanf(text, "%*u %u", &first) != 1 ||
        first < IDS_FIRST || (first - IDS_FIRST) / SANDBOX_IDS >= IDS_RANGES)
        return;
    first = (first - IDS_FIRST) / SANDBOX_IDS;
    if (memcmp(all[first], no_tag, TAG_LEN) != 0)
        return;
    str_fmt(path, sizeof(path), "/proc/%.20s/cgroup", pid);
    at = read_text(path, text, sizeof(text)) <= 0 ? NULL : strstr(text, "/cove-");
    at =
        at == NULL || strlen(at) < strlen("/cove-") + TAG_LEN ? unknown_tag : at + strlen("/cove-");
    memcpy(all[first], at, TAG_LEN);
}

/* The full size of the file means that this was done. */
static int fill(const struct keeper *k, struct err *e)
{
    char all[IDS_RANGES][TAG_LEN] = {0};
    DIR *d = opendir("/proc");

    if (d == NULL)
        return err_sys(e, "read the id ranges in use");
    if (pread(k->ids.fd, all, sizeof(all), 0) >= 0)
        for (struct dirent *de; (de = readdir(d)) != NULL;)
            if (de->d_name[0] >= '0' && de->d_name[0] <= '9')
                enter_process(all, de->d_name);
    closedir(d);
    if (pwrite(k->ids.fd, all, sizeof(all), 0) != (ssize_t)sizeof(all))
        return err_sys(e, "write %s/idranges", k->ids.dir);
    return 0;
}

/* False: another daemon has it. */
static bool enter(const struct sandbox *sb)
{
    char tag[TAG_LEN];

    if (tag_get(sb->k, sb->rec.range, tag) < 0 ||
        (memcmp(tag, no_tag, TAG_LEN) == 0 && tag_put(sb->k, sb->rec.range, sb->k->tag) < 0))
        log_warn("lease id range %u again: %s", sb->rec.range, strerror(errno));
    else if (memcmp(tag, no_tag, TAG_LEN) != 0 && memcmp(tag, sb->k->tag, TAG_LEN) != 0)
        log_error(
            "sandbox %s has the same user ids as a sandbox of daemon %.8s; stop and resume it",
            sb->rec.id, tag);
    else
        return true;
    return false;
}

/* Opens the file if it is closed or was removed, and locks it. */
static int locked(struct keeper *k, struct err *e)
{
    char path[sizeof(k->ids.dir) + 16];
    struct stat st, seen;
    struct sandbox *sb;
    bool lost = false;

    str_fmt(path, sizeof(path), "%s/idranges", k->ids.dir);
    for (;;) {
        if (k->ids.fd < 0 && mkdir(k->ids.dir, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make %s", k->ids.dir);
        if (k->ids.fd < 0)
            k->ids.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (k->ids.fd < 0)
            return err_sys(e, "open %s", path);
        if (flock(k->ids.fd, LOCK_EX) < 0) {
            if (errno == EINTR)
                continue;
            return err_sys(e, "lock the id ranges");
        }
        if (fstat(k->ids.fd, &st) == 0 && stat(path, &seen) == 0 && seen.st_ino == st.st_ino &&
            seen.st_dev == st.st_dev)
            break;
        drop_fd(&k->ids.fd);
        lost = true;
    }
    if (st.st_size < IDS_BYTES && fill(k, e) < 0) {
        flock(k->ids.fd, LOCK_UN);
        return -1;
    }
    if (lost) {
        log_warn("%s was removed; writing it again", path);
        SANDBOX_EACH(k, sb)
        if (sb->rec.range < IDS_RANGES)
            enter(sb);
    }
    return 0;
}

static void unlocked(struct keeper *k)
{
    flock(k->ids.fd, LOCK_UN);
}

int ids_open(struct keeper *k, struct err *e)
{
    if (k->ids.dir[0] == '\0')
        str_fmt(k->ids.dir, sizeof(k->ids.dir), "%s", RUN_DIR);
    if (locked(k, e) < 0)
        return -1;
    unlocked(k);
    return 0;
}

/* ---- leases ---- */

/* The sandbox of ours that has this range, other than `but`. */
static struct sandbox *user_of(struct keeper *k, uint32_t range, const struct sandbox *but)
{
    struct sandbox *sb;

    SANDBOX_EACH(k, sb)
    if (sb->rec.range == range && sb != but)
        return sb;
    return NULL;
}

static int lease(struct keeper *k, uint32_t *ret, struct err *e)
{
    char all[IDS_RANGES][TAG_LEN], link[IFNAMSIZ];

    if (pread(k->ids.fd, all, sizeof(all), 0) != (ssize_t)sizeof(all))
        return err_sys(e, "read the id ranges");
    for (uint32_t i = 0; i < IDS_RANGES; i++) {
        if (memcmp(all[i], no_tag, TAG_LEN) != 0 || user_of(k, i, NULL) != NULL)
            continue;
        network_name(&(struct sandbox){.k = k, .rec.range = i}, link);
        if (if_nametoindex(link) != 0)
            continue;
        if (tag_put(k, i, k->tag) < 0)
            return err_sys(e, "lease an id range");
        *ret = i;
        return 0;
    }
    return err_set(e, ERR_UNAVAILABLE, "all %u id ranges of this host are in use", IDS_RANGES);
}

int idrange_up(struct sandbox *sb, struct err *e)
{
    int r;

    if (locked(sb->k, e) < 0)
        return -1;
    r = lease(sb->k, &sb->rec.range, e);
    unlocked(sb->k);
    /* Saved together with the range: a range of another boot means no range. */
    if (r == 0)
        str_fmt(sb->rec.host_boot, sizeof(sb->rec.host_boot), "%s", sb->k->host_boot);
    return r < 0 ? r : cgroup_own(sb, e);
}

static void give_back(struct keeper *k, uint32_t range)
{
    char tag[TAG_LEN];

    if (tag_get(k, range, tag) == 0 && memcmp(tag, k->tag, TAG_LEN) == 0 &&
        tag_put(k, range, no_tag) < 0)
        log_warn("give back id range %u: %s", range, strerror(errno));
}

/* If the record cannot be written it still names the range: then the lease stays. */
int idrange_down(struct sandbox *sb)
{
    uint32_t range = sb->rec.range;
    struct err e;

    /* An init that was being cloned when its keeper was killed: we have no pidfd, so the stage
     * above cannot have waited for its death. */
    if (!cgroup_is_empty(sb)) {
        cgroup_kill(sb);
        return 1;
    }
    if (range < IDS_RANGES) {
        sb->rec.range = RANGE_NONE;
        /* A record in quarantine is not changed; if it names the range, settle() notices. */
        if (sb->rec.phase != PHASE_DAMAGED && record_save(sb, false, &e) < 0) {
            log_warn("sandbox %s: id range %u stays leased: %s", sb->rec.id, range, e.msg);
        } else if (locked(sb->k, &e) < 0) {
            log_warn("sandbox %s: id range %u stays leased: %s", sb->rec.id, range, e.msg);
        } else {
            give_back(sb->k, range);
            unlocked(sb->k);
        }
    }
    if (sb->k->ids.unswept)
        ids_sweep(sb->k);
    return 0;
}

/* ---- after a restart ---- */

/* Release 0.1.0 gave a range back before its record was changed: two records may name it. The stale
 * one has an empty cgroup. If both are empty, both go down, and leftovers of either are removed
 * under one name. */
static void settle(struct sandbox *a, struct sandbox *b)
{
    struct sandbox *stale = cgroup_is_empty(a) ? a : b, *owner = stale == a ? b : a;

    if (!cgroup_is_empty(stale)) {
        log_error("sandboxes %s and %s have the same user ids; stop and resume them", a->rec.id,
                  b->rec.id);
        return;
    }
    log_warn("sandbox %s: its id range now belongs to %s", stale->rec.id, owner->rec.id);
    if (cgroup_is_empty(owner))
        owner->rec.network |= stale->rec.network;
    stale->rec.range = RANGE_NONE;
}

void ids_keep(struct sandbox *sb)
{
    struct sandbox *other = sb->rec.range < IDS_RANGES ? user_of(sb->k, sb->rec.range, sb) : NULL;
    struct err e;

    if (other != NULL)
        settle(sb, other);
    if (sb->rec.range >= IDS_RANGES)
        return;
    if (locked(sb->k, &e) < 0) {
        log_warn("sandbox %s: %s", sb->rec.id, e.msg);
        return;
    }
    enter(sb);
    unlocked(sb->k);
}

void ids_sweep(struct keeper *k)
{
    struct sandbox *sb;
    struct err e;

    k->ids.unswept = false;
    SANDBOX_EACH(k, sb)
    /* It may have ids, and its record does not name them. (The range of a running one in
         * quarantine was read from the kernel; the others there have none.) */
    if (sb->rec.range == RANGE_NONE && sb->rec.stage > STAGE_IDS + 1 &&
        sb->rec.phase != PHASE_DAMAGED)
        k->ids.unswept = true;
    if (k->ids.unswept)
        return; /* called again by idrange_down() */
    if (locked(k, &e) < 0) {
        log_warn("%s", e.msg);
        return;
    }
    for (uint32_t i = 0; i < IDS_RANGES; i++)
        if (user_of(k, i, NULL) == NULL)
            give_back(k, i);
    unlocked(k);
}

/* ---- acting as the first id of a range ---- */

/* Raw system calls: glibc's would change all threads. With SECBIT_NO_SETUID_FIXUP the capabilities
 * stay. */
int act_as(uid_t id, struct err *e)
{
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
        return err_sys(e, "keep capabilities across a change of id");
    if (syscall(SYS_setresgid, -1, id, -1) < 0 || syscall(SYS_setresuid, -1, id, -1) < 0) {
        int saved = errno;

        act_as_root();
        errno = saved;
        return err_sys(e, "act as id %u", id);
    }
    return 0;
}

void act_as_root(void)
{
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0)
        abort(); /* continuing with the wrong id would be worse */
}
