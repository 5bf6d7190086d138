/* sandbox.h - one sandbox in the keeper: its state, its record, its stages.
 *
 * The record on disk is written before each stage, so that a keeper that starts after a
 * kill -9 finds everything that may exist. A sandbox belongs to the keeper's table until
 * its teardown frees it. */
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

/* For sandbox.ask: the front that asked is gone. Never a seq of a front. */
#define ASK_FORGOTTEN UINT32_MAX

/* The state as a record has it, by name (phase_name): it decides what the next keeper
 * does with the sandbox. */
enum phase {
    PHASE_BUILDING, /* the next keeper deletes it */
    PHASE_POOLED,   /* likewise */
    PHASE_GIVEN,    /* a client's, running; the next keeper adopts it */
    PHASE_STOPPED,  /* a client's, not running; the next keeper ends what runs and keeps the disk */
    PHASE_DYING,    /* the next keeper goes on deleting it */
    PHASE_IMPORT,   /* the next keeper deletes it */
    PHASE_DAMAGED,  /* in quarantine (quarantine.h) */
    PHASE_COUNT
};
const char *phase_name(enum phase p);

/* The state of a sandbox. life/states.c has one row for each: its phase, where it is
 * counted, and the reaction to every event. */
enum state {
    STATE_NEW,              /* allocated, or read from a record and not yet adopted */
    STATE_FILLING,          /* stages go up, for the pool */
    STATE_CREATING,         /* stages go up, for a client */
    STATE_PREPARING,        /* stages go up, for an import */
    STATE_BOOTING,          /* a stopped one: stages go up, for a client */
    STATE_POOLED,           /* runs, ready for the next create */
    STATE_RUNNING,          /* a client's */
    STATE_PAUSING,          /* its commands are being frozen */
    STATE_PAUSED,           /* they are frozen */
    STATE_IMPORTING,        /* cove-helper unpacks a template in it */
    STATE_COMMITTING,       /* an import: killed, becomes a template when its init is dead */
    STATE_STOPPING,         /* stages go down, the disk stays */
    STATE_REBOOTING,        /* the same; it boots when they are down */
    STATE_STOPPED,          /* stages are down, the disk is there */
    STATE_KILLED,           /* to be deleted: killed, its init is not dead yet */
    STATE_DELETING,         /* stages go down, then disk and record */
    STATE_DAMAGED,          /* in quarantine; what runs in it runs on */
    STATE_DAMAGED_STOPPING, /* the same, under `cove stop --all` */
    STATE_COUNT
};

enum freeze { FREEZE_COMMANDS, FREEZE_ALL, FREEZE_COUNT }; /* freezer.h */

enum network_bits {
    NETWORK_EGRESS = 1, /* network access; without it loopback only */
    NETWORK_RULED = 2,  /* the firewall may have rules of its own */
};

/* The record, as record.c reads and writes it. */
#define PLACE_NONE UINT32_MAX
struct record {
    uint32_t phase;
    uint32_t stage; /* stages that may be up: 0..STAGE_COUNT */
    char id[32];
    char boot_id[40];
    char host_boot[40]; /* the host's boot id when `range` was leased: another means a reboot */
    char template[64];  /* the name that was requested */
    char layer[64];     /* the version that its disk is a layer on */
    char reason[256];   /* why it is stopped */
    uint32_t range;     /* leased range of ids, counted from 0, or RANGE_NONE */
    uint32_t network;   /* bits of enum network_bits */
    struct limits limits;
    uint64_t created_ms;
    uint32_t told;     /* a client was told of it: if it has no row, the row was lost */
    uint32_t relaxed;  /* its next root is mounted without fsync (base/fsync.h) */
    char unsynced[40]; /* the host's boot id while it has written without fsync; "": all is out */
    uint64_t lost_ms;  /* when a keeper found that writes may be missing; 0: never */
};

struct sandbox {
    struct keeper *k;
    struct record rec;
    struct map_node by_id;
    enum state state;       /* changed by sandbox_enter() alone */
    struct list pool_link;  /* STATE_POOLED: in the pool */
    struct list birth_link; /* in one of the nursery's lists while its init is being born */

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
    struct job *sync; /* of a relaxed one, after its root is closed */
    struct loop_io pid_io, boot_io;
    struct loop_timer timer; /* boot deadline, then pausing, then teardown retries */
    unsigned retries;
    unsigned nmounts;      /* mount.h */
    uint64_t pause_by_ms;  /* STATE_PAUSING: gives up then */
    bool born_again;       /* a nursery was lost with it once already */
    struct taking *taking; /* a snapshot of it (snapshot_take.c) */
    char clone_of[64];     /* the disk that its own is cloned from; "": none */
    char *commit;          /* STATE_COMMITTING: the frame of the request */
    size_t commit_len;

    struct kept_rules {
        char *mem; /* belongs to the sandbox */
        uint32_t len;
    } rules; /* wire/rules.h; for an adopted sandbox only after the front sent them */

    bool quiet;    /* its network never sent a packet */
    uint64_t walk; /* conntrack.h: the walk that forgets its connections, 0: none yet */
    uint32_t ask;  /* seq of the request that is not answered, 0: none */
};

/* Its stages are going up. */
bool sandbox_is_starting(const struct sandbox *sb);
/* Its disk exists when its stages go up, and stays when they go down. */
bool sandbox_keeps_disk(const struct sandbox *sb);

struct sandbox *sandbox_new(struct keeper *k, const char *id, struct err *e);
void sandbox_free(struct sandbox *sb);

/* record.c */
int record_save(struct sandbox *sb, bool durable, struct err *e);
void record_remove(struct sandbox *sb);
/* Writes a copy of the record to the sandbox's disk when the disk is made: it still tells
 * which template the files belong to when the record is damaged. */
void record_copy(struct sandbox *sb, bool only_if_missing);
/* -1: there is no copy, or it is damaged too. */
int record_copy_read(struct keeper *k, const char *id, struct record *ret);

#endif
