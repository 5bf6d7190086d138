/* host.h - the state of the keeper, and what its parts offer each other. */
#ifndef KEEPER_HOST_H
#define KEEPER_HOST_H

#include "base/cidr.h"
#include "keeper/conntrack.h"
#include "keeper/disk_reserve.h"
#include "keeper/forwarding.h"
#include "keeper/memory.h"
#include "keeper/nursery.h"
#include "keeper/sandbox.h"

#define TAG_LEN 8u

enum controller { CTRL_CPU, CTRL_MEMORY, CTRL_PIDS, CTRL_COUNT };

/* The cgroups of this daemon. A controller with fd -1 does not exist. */
struct cgroups {
    int v2_fd;         /* .../cove-TAG in the v2 hierarchy */
    char v2_path[256]; /* its path */
    int v1_fd
        [CTRL_COUNT]; /* .../cove-TAG in each v1 hierarchy; -1: v2 has the controller, or none does */
    bool v2_has[CTRL_COUNT];
    bool io, io_max; /* io.h: the disk is shared by weight; it can be limited */
};

#define DISK_SPARES 64u

struct disk {
    const struct disk_way *way;
    int fd;       /* directory with one subvolume or directory per sandbox */
    dev_t device; /* of the disks; 0: unknown, or more than one */
    uint32_t spares[DISK_SPARES], next_spare; /* emptied disks for new sandboxes */
    size_t nspares, nemptying;                /* nemptying: that may become spares */
    struct list removals;                     /* running removals (disk_remove) */
    int qgroups_fd;                           /* the counters of the quotas, in sysfs */
    bool simple; /* simple quotas (since Linux 6.7), far cheaper than full ones */
    struct reserve reserve;
};

struct ids {
    char dir[64]; /* /run/cove, except in tests */
    int fd;       /* `idranges` in it, shared by all daemons of the host */
    bool unswept; /* ids_sweep() waits for a sandbox whose range is unknown */
};

#define NETWORK_RESOLVERS 2u
#define NETWORK_ALLOWED 64u
#define NETWORK_LOCAL_MAX 512u

/* Of the network stage (network.h). */
struct network {
    bool egress;       /* sandboxes can have egress, and do unless they ask for none */
    char why_not[200]; /* the reason when they cannot */
    bool limits;       /* the kernel has what limits bandwidth */
    bool fresh;        /* no sandbox of an earlier daemon relies on our table */
    bool powerless;    /* nothing of ours is on the host either, and CAP_NET_ADMIN is dropped */
    uint32_t subnet, mtu;
    uint32_t resolvers[NETWORK_RESOLVERS];
    size_t nresolvers;
    struct cidr allowed[NETWORK_ALLOWED]; /* private ranges that the operator allows */
    size_t nallowed;
    struct cidr local[NETWORK_LOCAL_MAX]; /* networks of the host's interfaces (local.c) */
    size_t nlocal;
    struct mnl_socket *local_watch;
    struct loop_io local_io;
    struct forwarding forwarding;
    struct netlink *nl;
    struct mnl_socket *watch;
    struct loop_io watch_io;
    struct nft_ctx *nft;
    struct loop_timer beside_timer;
    bool looking, look_again; /* at other firewalls (beside.h) */
    char beside[240];         /* what is in the way of sandboxes; "": nothing */
    struct conntrack conntrack;
};

/* DIR/sandboxes (record.c). */
struct records {
    int fd;
    uint32_t n;     /* number of places */
    uint32_t *free; /* room for all places; the first nfree are free */
    uint32_t nfree;
};

/* How many sandboxes are in the states that life/states.c names for each. */
enum count {
    COUNT_POOLED,   /* ready for a create */
    COUNT_FILLING,  /* on their way into the pool */
    COUNT_STARTING, /* being made or booted for a client */
    COUNT_GIVEN,    /* clients', running or paused */
    COUNT_IMPORTS,  /* unpack a template */
    COUNT_TEARDOWN, /* in the teardown queue */
    COUNT_COUNT
};

#define PROOF_WAITERS 32u /* more are answered by the last proof */

/* Of the last sandbox that was built for the pool (life/proof.c). */
struct proof {
    bool ok;
    uint64_t at_ms;                  /* 0: there was none yet */
    char stage[16];                  /* that failed */
    uint64_t builds;                 /* only because someone asked */
    uint32_t waiting[PROOF_WAITERS]; /* seq of requests */
    size_t nwaiting;
    struct loop_timer late;
};

struct keeper {
    struct config config;
    struct loop *loop;
    char tag[TAG_LEN + 1];
    char dir[512]; /* the state directory, absolute */
    char host_boot[40];
    int dir_fd, run_fd, front_fd, lock_fd, listen_fd;
    int damaged_fd; /* DIR/damaged (quarantine.h) */
    struct records records;
    bool overlay_by_path; /* rootfs.c: an older kernel */
    bool relaxed;         /* the setting `fsync` */
    bool ending;          /* `cove stop --all`: all sandboxes are being stopped */
    char url[128];
    uid_t cove_uid;
    gid_t cove_gid;

    struct cgroups cgroups;
    struct memory_reserve memory;
    struct disk disk;
    struct ids ids;
    struct network network;
    struct nursery nursery;
    struct template *base; /* the default template */
    struct images *images; /* templates that were added */
    struct snapshots *snapshots;
    int init_fd;           /* sealed memfd of cove-init, 0111 */
    int helper_fd;         /* the same for cove-helper */
    struct mounts *mounts; /* the setting `mounts` */
    uint8_t *filter;       /* compiled seccomp filter */
    size_t filter_len;
    uint64_t filter_pass; /* filter.c: by which init's own calls are known */

    struct map sandboxes; /* all, in every state */
    uint64_t nsandboxes_max;
    struct list pool;           /* STATE_POOLED, the oldest first */
    size_t counts[COUNT_COUNT]; /* kept by sandbox_enter() */
    struct loop_later refill;
    struct loop_timer refill_soon; /* running: fills the pool at a quiet moment */
    struct loop_timer refill_wait; /* running: filling the pool failed; waits */
    unsigned refill_fails;
    struct proof proof;

    char key_hash[65];

    bool metering;     /* a sample is being taken (meter.c) */
    uint64_t nfronts;  /* fronts so far */
    struct link *link; /* to the front; NULL while there is none */
    struct front *front;
};

/* Every sandbox; the state of `sb` may change inside the loop, none may be freed. */
#define SANDBOX_EACH(k, sb)                                                                        \
    for (size_t i_ = 0; i_ < (k)->sandboxes.nslots; i_++)                                          \
        for (struct map_node *n_ = (k)->sandboxes.slots[i_];                                       \
             n_ != NULL && ((sb) = CONTAINER_OF(n_, struct sandbox, by_id), 1); n_ = n_->next)

/* The first half of coming up: configuration, privileges, the loop. */
int keeper_load(struct keeper *k, int argc, char *const *argv, struct err *e);
/* The second: everything up to serving, sandboxes of an earlier daemon included. */
int keeper_come_up(struct keeper *k, struct err *e);

/* Keeps the capabilities that a keeper needs and drops all others for good. */
int privileges_drop(struct keeper *k, struct err *e);
/* Drops one more, before there are threads. */
int privileges_drop_one(int cap, struct err *e);

/* Reads the boot id of the host, from its own /proc: before ours is mounted over it. */
int host_boot_read(struct keeper *k, struct err *e);
/* Opens and locks DIR and everything in it. */
int dirs_open(struct keeper *k, struct err *e);
/* The state of the process that the lock file names. GONE: also if another program has its pid. */
enum holder { HOLDER_GONE, HOLDER_DYING, HOLDER_ALIVE };
enum holder dirs_holder(pid_t pid);

int cgroup_open(struct keeper *k, struct err *e);
void cgroup_close_all(struct keeper *k); /* removes the daemon's own groups, if empty */
/* The pid of a sandbox's init, 0 if it has none. */
int cgroup_init_pid(struct sandbox *sb, pid_t *ret, struct err *e);
int cgroup_limit(struct sandbox *sb, struct err *e);
/* A bit for each controller in whose v1 hierarchy a sandbox has a group (boot_message.cgroups_v1). */
uint32_t cgroup_v1(const struct keeper *k);
/* Lets its memory go to the host's swap; only while it is paused. */
void cgroup_swap(struct sandbox *sb, bool allowed);
/* True when it has no process or no cgroup. False if that cannot be read. */
bool cgroup_is_empty(struct sandbox *sb);
/* Bytes that its processes wrote and the disk does not have yet; 0 if unknown. */
uint64_t cgroup_dirty(struct sandbox *sb);
/* Kills all processes of the sandbox. */
void cgroup_kill(struct sandbox *sb);
/* The v2 group to clone an init into; belongs to the caller. */
int cgroup_birth_fd(struct sandbox *sb, struct err *e);
/* Fds of the files to which a process writes "0" to join the v1 groups; -1 where there is no group.
 * They belong to the caller. */
int cgroup_open_v1(struct sandbox *sb, int ret[CTRL_COUNT], struct err *e);
int cgroup_own(struct sandbox *sb, struct err *e);
/* The file that counts oom kills (/dev/null without a memory limit); belongs to the
 * caller. */
int cgroup_oom_fd(struct sandbox *sb, struct err *e);
/* Oom kills so far; 0 if unknown. */
uint64_t cgroup_oom_kills(struct sandbox *sb);

int ids_open(struct keeper *k, struct err *e);
/* For an adopted sandbox: leases its range, also when /run/cove was lost. */
void ids_keep(struct sandbox *sb);
/* Gives back every range of this daemon that no sandbox has, when all ranges are known. */
void ids_sweep(struct keeper *k);
uid_t ids_base(const struct sandbox *sb);
/* Sets the range from the uid_map of its init. */
int ids_find(struct sandbox *sb, struct err *e);

/* One kind of disk of bounded size. */
enum disk_rest { DISK_GONE, DISK_EMPTY, DISK_STAYS };

struct disk_way {
    const char *name;
    const char *file; /* in DIR, once it was opened: then no other kind is tried */
    int (*open)(struct keeper *k, struct err *e);
    void (*close)(struct keeper *k);
    int (*make)(struct sandbox *sb, struct err *e);
    int (*limit)(struct sandbox *sb, struct err *e);
    /* Removes disk `name`; with `reuse` it may leave it empty instead, for `spare`. Called in a
     * thread. */
    enum disk_rest (*remove)(struct keeper *k, const char *name, bool reuse);
    void (*spare)(struct keeper *k, const char *name);
    /* Makes a volume of bounded size in a directory of the disks; no error if it exists. */
    int (*volume)(int dir, const char *name, uint64_t limit, struct err *e);
    /* Makes disk `to` a copy of disk `from`; *ret_bytes: its size. May take long, and is called in
     * a thread. After a failure part of `to` may exist. */
    int (*clone)(struct keeper *k, const char *from, const char *to, bool readonly,
                 uint64_t *ret_bytes, struct err *e);
    /* Bytes of disk `name`; 0 if they are not counted. Called in a thread. */
    uint64_t (*used)(struct keeper *k, const char *name);
    /* Opens the two counters from which init answers `df`. */
    int (*counters)(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e);
};
int disk_open(struct keeper *k, struct err *e);
void disk_close(struct keeper *k);
/* Fails while the disks are read-only or have too little space for a new sandbox. */
int disk_check(struct keeper *k, struct err *e);
int disk_limit(struct sandbox *sb, struct err *e);
int disk_counters(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e);
/* Removes disk `name` in a thread: it takes as long as its files demand. 0 once there is none; else
 * 1: call again, which also retries after a failure. */
int disk_remove(struct keeper *k, const char *name);
/* Removes emptied disks of an earlier keeper. A disk without a record is put into quarantine: the
 * front knows whether a client was told of it. */
void disk_sweep(struct keeper *k);

int records_open(struct keeper *k, struct err *e);
/* Answers `ok` when everything written before is durable. */
int records_flush(struct keeper *k, uint32_t seq, struct err *e);
/* Calls `fn` for each record, before there are sandboxes: `whole`, or damaged and with its id
 * alone. The place then belongs to the sandbox (sandbox.place), or is given to records_drop(). */
typedef int record_fn(struct keeper *k, const struct record *rec, uint32_t place, bool whole,
                      struct err *e);
int records_each(struct keeper *k, record_fn *fn, struct err *e);
/* Moves its bytes to DIR/damaged and frees the place. */
void records_drop(struct keeper *k, uint32_t place);

/* The compiled filter belongs to the keeper. */
int filter_compile(struct keeper *k, struct err *e);
int fsync_read(struct keeper *k, struct err *e); /* the setting */
int rootfs_open(struct keeper *k, struct err *e);

/* Takes the first id of a range for file access and as the owner of new files, and back.
 * Capabilities stay. */
int act_as(uid_t id, struct err *e);
void act_as_root(void);

#endif
