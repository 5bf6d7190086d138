/* record_v1.c - the records of release 0.1.0: a file DIR/records, an array of structs as the
 * compiler laid them out, in places of 1,024 bytes.
 *
 * That release treats every record that it cannot read as damage and deletes the sandbox, so it
 * must never see ours, wherever this is interrupted. The order:
 *
 *   1. `records` becomes a directory, by exchanging it with one: 0.1.0 refuses to start
 *   2. the new store is written under another name, flushed, and renamed
 *   3. the old file is moved into that directory, where it stays
 *
 * After a kill the next start continues with the missing step. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/file.h"
#include "keeper/life/record.h"
#include "keeper/stages.h"

#define OLD "records"
#define ASIDE "records.v1" /* the directory before the exchange, the old file after it */
#define KEPT OLD "/v1"
#define FRESH RECORD_STORE ".new"
#define OLD_PLACE 1024u
#define OLD_MAGIC 0x636f7665u

struct record_v1 {
    uint32_t magic, version, phase, stage;
    char id[32], boot_id[40], host_boot[40], template[64], layer[64], reason[256];
    uint32_t range, network;
    uint64_t cpu_milli, memory, pids, disk, nofile;
    uint64_t created_ms;
    uint64_t sum; /* of everything above */
};

_Static_assert(sizeof(struct record_v1) == 576, "as release 0.1.0 wrote it");

static const char *const stages_v1[] = {"cgroup", "ids",     "birth", "disk",
                                        "root",   "network", "init"};
static const enum phase phases_v1[] = {PHASE_BUILDING, PHASE_POOLED, PHASE_GIVEN,
                                       PHASE_STOPPED,  PHASE_DYING,  PHASE_IMPORT};

#define TAKE(to, from) str_fmt(to, sizeof(to), "%.*s", (int)sizeof(from) - 1, from)

/* 1: a record; 0: an empty place, or bytes that name no sandbox. */
static int convert(const struct record_v1 *v, struct record *ret)
{
    static const struct record_v1 none;
    bool whole = v->magic == OLD_MAGIC && v->version == 1 &&
                 v->sum == file_sum(v, offsetof(struct record_v1, sum)) &&
                 v->phase < ARRAY_LEN(phases_v1) && v->stage <= ARRAY_LEN(stages_v1);
    int stage;

    *ret = (struct record){.phase = PHASE_DAMAGED, .range = RANGE_NONE};
    TAKE(ret->id, v->id);
    if (memcmp(v, &none, sizeof(none)) == 0 || !id_is_valid(ret->id, sizeof(ret->id) - 1))
        return 0;
    if (!whole) {
        TAKE(ret->reason, "its record, written by 0.1.0, was damaged");
        return 1;
    }
    ret->phase = phases_v1[v->phase];
    stage = v->stage == 0 ? 0 : record_stage(stages_v1[v->stage - 1]);
    ret->stage = stage < 0 ? STAGE_COUNT : (uint32_t)stage;
    TAKE(ret->boot_id, v->boot_id);
    TAKE(ret->host_boot, v->host_boot);
    TAKE(ret->template, v->template);
    TAKE(ret->layer, v->layer);
    TAKE(ret->reason, v->reason);
    ret->range = v->range;
    ret->network = v->network;
    ret->limits = (struct limits){.cpu_milli = v->cpu_milli,
                                  .memory = v->memory,
                                  .pids = v->pids,
                                  .disk = v->disk,
                                  .nofile = v->nofile};
    ret->created_ms = v->created_ms;
    return 1;
}

static int write_store(struct keeper *k, struct err *e)
{
    autofd int from = openat(k->dir_fd, ASIDE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autofd int to = openat(k->dir_fd, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct record_v1 v = {0};
    struct record rec;
    uint32_t n = 0;

    if (from < 0 || to < 0)
        return err_sys(e, "convert the records");
    for (off_t at = 0;; at += OLD_PLACE) {
        ssize_t got = pread(from, &v, sizeof(v), at);
        autobuf struct buf out = BUF_INIT(RECORD_PLACE);

        if (got < 0)
            return err_sys(e, "read " ASIDE);
        if (got == 0)
            break;
        if (convert(&v, &rec) == 1) {
            if (record_encode(&rec, &out, e) < 0)
                return -1;
            if (pwrite(to, buf_data(&out), out.len, (off_t)n * RECORD_PLACE) != (ssize_t)out.len)
                return err_sys(e, "write " FRESH);
            n++;
        }
        memset(&v, 0, sizeof(v));
    }
    if (fsync(to) < 0 || renameat(k->dir_fd, FRESH, k->dir_fd, RECORD_STORE) < 0 ||
        fsync(k->dir_fd) < 0)
        return err_sys(e, "write " RECORD_STORE);
    log_info("%u records of release 0.1.0 were converted", n);
    return 0;
}

static bool is_there(struct keeper *k, const char *name, mode_t type)
{
    struct stat st;

    return fstatat(k->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

int records_upgrade(struct keeper *k, struct err *e)
{
    if (is_there(k, OLD, S_IFREG)) {
        if (mkdirat(k->dir_fd, ASIDE, 0700) < 0 && errno != EEXIST)
            return err_sys(e, "make " ASIDE);
        if (syscall(SYS_renameat2, k->dir_fd, ASIDE, k->dir_fd, OLD, RENAME_EXCHANGE) < 0 ||
            fsync(k->dir_fd) < 0)
            return err_sys(e, "exchange " OLD " and " ASIDE);
    } else if (mkdirat(k->dir_fd, OLD, 0700) < 0 && errno != EEXIST) {
        return err_sys(e, "make " OLD);
    }
    if (!is_there(k, ASIDE, S_IFREG))
        return 0;
    if (!is_there(k, RECORD_STORE, S_IFREG) && write_store(k, e) < 0)
        return -1;
    if (renameat(k->dir_fd, ASIDE, k->dir_fd, KEPT) < 0 || fsync(k->dir_fd) < 0)
        return err_sys(e, "keep the old records in " KEPT);
    return 0;
}
