/* sandbox.h - one sandbox as the keeper sees it, and the list of stages that
 * bring it up and take it down.
 *
 * The keeper's record on disk is written before each stage, so that whoever
 * comes after a kill -9 finds everything that may exist. A sandbox belongs to the
 * keeper's table until teardown frees it. */
#ifndef KEEPER_SANDBOX_H
#define KEEPER_SANDBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "config/config.h"
#include "loop/loop.h"
#include "wire/boot.h"
#include "wire/keeper.h"

#define SANDBOX_IDS 65536u /* user and group ids of one sandbox */
#define RANGE_NONE UINT32_MAX
#define SANDBOX_PTYS 64u /* /dev/pts max=; the host's kernel.pty.max is shared by all */
/* Of compiled seccomp filters, at most: 64 (init/syscalls/filters.h) of 4,096 instructions, which
 * take up to 18 bytes each. */
#define SANDBOX_FILTER_BYTES (5u << 20)

struct keeper;

/* For sandbox.ask: somebody asked, but that front is gone. Never a seq of a front. */
#define ASK_FORGOTTEN UINT32_MAX

/* What a sandbox is to the keeper. The phase is in the record: it decides what a
 * new keeper does with it. */
enum phase {
    PHASE_BUILDING, /* stages are going up; a new keeper tears it down */
    PHASE_POOLED,   /* complete and running, nobody's; a new keeper may use it */
    PHASE_GIVEN,    /* somebody's, running; a new keeper adopts it */
    PHASE_STOPPED,  /* somebody's, nothing runs, the disk is there */
    PHASE_DYING,    /* being torn down; a new keeper goes on with that */
    PHASE_IMPORT,   /* unpacks a template, for this front only; a new keeper tears it down */
    PHASE_DAMAGED,  /* in quarantine (quarantine.h): what there is of it stays as it is */
    PHASE_COUNT
};
const char *phase_name(enum phase p);

enum freeze { FREEZE_COMMANDS, FREEZE_ALL, FREEZE_COUNT }; /* freezer.h */

enum network_bits {
    NETWORK_EGRESS = 1, /* a way out; without it: loopback only */
    NETWORK_RULED = 2,  /* rules of its own may stand in the firewall */
};

/* The record, as record.c reads and writes it. */
#define PLACE_NONE UINT32_MAX
struct record {
    uint32_t phase;
    uint32_t stage; /* stages that may be up: 0..STAGE_COUNT */
    char id[32];
    char boot_id[40];
    char host_boot[40]; /* the host's boot id when `range` was leased: another means a reboot */
    char template[64];  /* the name asked for */
    char layer[64];     /* the version of it that this disk stands on */
    char reason[256];   /* why it is stopped */
    uint32_t range;     /* leased range of ids, counted from 0, or RANGE_NONE */
    uint32_t network;   /* bits of enum network_bits */
    struct limits limits;
    uint64_t created_ms;
    uint32_t told; /* a client knows of it: without a row it is a sandbox whose row was lost */
};

struct sandbox {
    struct keeper *k;
    struct record rec;
    struct map_node by_id;
    struct list link; /* in the pool, or in the teardown queue */
    struct list birth_link;

    pid_t pid;      /* init, as we see it; 0 if none */
    int pidfd;      /* -1 if none */
    uint32_t place; /* of the record, since the first save; or PLACE_NONE */
    int boot_fd;    /* our end of the boot pair, until init has answered */
    int userns_fd;  /* only while stages go up */
    int root_fd;    /* the overlay; -1 after adoption */
    struct {
        int set, events; /* opened when first used */
    } freezer[FREEZE_COUNT];
    atomic_int root_closed;
    struct loop_io pid_io, boot_io;
    struct loop_timer timer; /* boot deadline, then pausing, then teardown retries */
    unsigned retries;
    unsigned nmounts;      /* mount.h */
    uint64_t pause_by_ms;  /* when freezing it is given up */
    bool rising;           /* its stages go up, or wait to */
    bool birthing;         /* somewhere in the nursery's lists */
    bool born_again;       /* a nursery was lost with it */
    bool asked;            /* counted in the keeper's nasked */
    bool reboot;           /* `ask` is to boot it as soon as it is down */
    bool keep_disk;        /* going down ends in PHASE_STOPPED, with the disk */
    bool paused;           /* its commands are frozen, or are to be (pause.c) */
    bool import;           /* its root is a bare directory for cove-helper to work in */
    struct taking *taking; /* a snapshot of it (snapshot_take.c) */
    char clone_of[64];     /* the disk that its own begins as; "": empty */
    char *commit;          /* the frame of the commit that awaits the death of an import */
    size_t commit_len;

    struct kept_rules {
        char *mem; /* belongs to the sandbox */
        uint32_t len;
    } rules; /* wire/rules.h; of an adopted one only once the front has said them */

    bool quiet;    /* nothing ever came out of its network */
    uint64_t walk; /* conntrack.h: by which it is forgotten, 0: none yet */
    uint32_t ask;  /* seq of the request that waits for this, 0: none */
};

struct stage {
    const char *name;
    /* 0: up. 1: it will be, and then calls sandbox_go_on(), or sandbox_failed(). */
    int (*up)(struct sandbox *sb, struct err *e);
    /* Idempotent: also called for a stage that may or may not have been up.
     * 0: gone. 1: not yet, call again. Never fails for good. */
    int (*down)(struct sandbox *sb);
};

extern const struct stage stages[];
extern const unsigned stage_count;

/* The stages, one file each. */
int cgroup_up(struct sandbox *sb, struct err *e);
int cgroup_down(struct sandbox *sb);
int idrange_up(struct sandbox *sb, struct err *e);
int idrange_down(struct sandbox *sb);
int birth_up(struct sandbox *sb, struct err *e);
int birth_down(struct sandbox *sb);
/* For the nursery. */
int birth_socket(struct sandbox *sb, struct err *e);
void birth_born(struct sandbox *sb, pid_t pid, int pidfd);
void birth_failed(struct sandbox *sb, struct err *e);
/* Init was there and is dead, and with it everything in its pid namespace. */
bool birth_is_over(const struct sandbox *sb);
/* `name` is uid_map or gid_map: ids from `inside` on are those from `base` on, `count` of them. */
int birth_map(pid_t pid, const char *name, unsigned inside, unsigned base, unsigned count,
              struct err *e);
int disk_up(struct sandbox *sb, struct err *e);
int disk_down(struct sandbox *sb);
int rootfs_up(struct sandbox *sb, struct err *e);
int rootfs_down(struct sandbox *sb);
/* A detached mount of its own /dev. */
int devfs_make(const struct sandbox *sb, struct err *e);
int network_up(struct sandbox *sb, struct err *e);
int network_down(struct sandbox *sb);
int init_up(struct sandbox *sb, struct err *e);
int init_down(struct sandbox *sb);

struct sandbox *sandbox_new(struct keeper *k, const char *id, struct err *e);
void sandbox_free(struct sandbox *sb);
/* Runs the stages from where it is; on failure they are left to the teardown queue.
 * After success it goes on by itself: sandbox_booted() or sandbox_failed() is called. */
int sandbox_up(struct sandbox *sb, struct err *e);
/* The same for a stage that has waited. */
void sandbox_go_on(struct sandbox *sb);
/* One attempt to take down the stages from the top; 0 when all are gone. */
int sandbox_down(struct sandbox *sb);

/* record.c */
int record_save(struct sandbox *sb, bool durable, struct err *e);
void record_remove(struct sandbox *sb);
/* A copy of the record as it is when the disk is made, on that disk: what the files stand on
 * can be read there when the record cannot. */
void record_copy(struct sandbox *sb, bool only_if_missing);
/* -1: there is none, or it is damaged too. */
int record_copy_read(struct keeper *k, const char *id, struct record *ret);

#endif
