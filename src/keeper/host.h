/* host.h - the keeper's own state: what it opened, what the host offers. */
#ifndef KEEPER_HOST_H
#define KEEPER_HOST_H

#include "base/cidr.h"
#include "keeper/conntrack.h"
#include "keeper/disk_reserve.h"
#include "keeper/forwarding.h"
#include "keeper/nursery.h"
#include "keeper/sandbox.h"

#define TAG_LEN 8u

enum controller { CTRL_CPU, CTRL_MEMORY, CTRL_PIDS, CTRL_COUNT };

/* Where the cgroups of this daemon are. A controller with fd -1 is not there. */
struct cgroups {
    int v2_fd;             /* .../cove-TAG in the v2 hierarchy */
    char v2_path[256];     /* the same as a path */
    int v1_fd[CTRL_COUNT]; /* .../cove-TAG in each v1 hierarchy; -1: v2 has it or nobody */
    bool v2_has[CTRL_COUNT];
    bool io, io_max; /* io.h: the disk is shared by weight; it can be limited */
};

#define DISK_SPARES 64u

struct disk {
    const struct disk_way *way;
    int fd;       /* directory that holds one subvolume or directory per sandbox */
    dev_t device; /* that they are on; 0: not known, or more than one */
    uint32_t spares[DISK_SPARES], next_spare; /* emptied disks, to be used again */
    size_t nspares, nemptying;                /* nemptying: that may become spares */
    struct list removals;                     /* under way, see disk_remove() */
    int qgroups_fd;                           /* directory of the quotas' counters in sysfs */
    bool simple; /* simple quotas (since 6.7): far cheaper than the full ones */
    struct reserve reserve;
};

struct ids {
    char dir[64]; /* /run/cove, unless a test says otherwise */
    int fd;       /* `idranges` in it, shared by all daemons of the host */
    bool unswept; /* ids_sweep() waits for a sandbox whose range is not known */
};

#define NETWORK_RESOLVERS 2u
#define NETWORK_ALLOWED 64u

/* The network stage's; see network.h. */
struct network {
    bool egress;       /* sandboxes can have it, and do unless they ask for none */
    char why_not[200]; /* when not */
    bool limits;       /* the kernel has what limits bandwidth */
    bool powerless;    /* nor is anything of ours on the host, and CAP_NET_ADMIN is gone */
    uint32_t subnet, mtu;
    uint32_t resolvers[NETWORK_RESOLVERS];
    size_t nresolvers;
    struct cidr allowed[NETWORK_ALLOWED]; /* by the operator, of what is private */
    size_t nallowed;
    struct forwarding forwarding;
    struct netlink *nl;
    struct mnl_socket *watch;
    struct loop_io watch_io;
    struct nft_ctx *nft;
    struct conntrack conntrack;
};

/* DIR/sandboxes (record.c). */
struct records {
    int fd;
    uint32_t n;     /* places there are */
    uint32_t *free; /* room for all of them; the first nfree are free places */
    uint32_t nfree;
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
    bool ending;          /* `cove stop --all`: nothing is to run on */
    char url[128];
    uid_t cove_uid;
    gid_t cove_gid;

    struct cgroups cgroups;
    struct disk disk;
    struct ids ids;
    struct network network;
    struct nursery nursery;
    struct template *base; /* the default template */
    struct images *images; /* the others */
    struct snapshots *snapshots;
    int init_fd;           /* sealed memfd of cove-init, 0111 */
    int helper_fd;         /* the same of cove-helper */
    struct mounts *mounts; /* that the operator allows */
    uint8_t *filter;       /* compiled seccomp filter */
    size_t filter_len;
    uint64_t filter_pass; /* filter.c: by which init's own calls are known */

    struct map sandboxes; /* all, whatever their phase */
    uint64_t nsandboxes_max;
    struct list pool;        /* PHASE_POOLED */
    size_t npool, nbuilding; /* ready; on their way into the pool */
    struct list dying;
    size_t ndying, ngiven;
    size_t nasked;   /* being made or booted for somebody: they will be given */
    size_t nimports; /* throw-away sandboxes that unpack templates */
    struct loop_later refill;
    struct loop_timer refill_soon; /* running: it is filled once all is quiet */
    struct loop_timer refill_wait; /* running: filling the pool failed a moment ago */
    unsigned refill_fails;

    char key_hash[65];

    bool metering;     /* a sample is being taken (meter.c) */
    uint64_t nfronts;  /* that there were so far */
    struct link *link; /* to the front; NULL while there is none */
    struct front *front;
};

/* The first half of coming up: configuration, privileges, the loop. */
int keeper_load(struct keeper *k, int argc, char *const *argv, struct err *e);
/* The second: everything up to serving, sandboxes of an earlier daemon included. */
int keeper_come_up(struct keeper *k, struct err *e);

/* Keeps the capabilities a keeper needs, for good, and drops the others. */
int privileges_drop(struct keeper *k, struct err *e);
/* One more of them, before there are threads. */
int privileges_give_up(int cap, struct err *e);

/* Which boot of the host this is, as its /proc says: before ours is mounted over it. */
int host_boot_read(struct keeper *k, struct err *e);
/* Opens DIR and everything in it, locked. */
int dirs_open(struct keeper *k, struct err *e);
/* What the process is that the lock file names. GONE: also if another program has its pid. */
enum holder { HOLDER_GONE, HOLDER_DYING, HOLDER_ALIVE };
enum holder dirs_holder(pid_t pid);

int cgroup_open(struct keeper *k, struct err *e);
void cgroup_close_all(struct keeper *k); /* removes the daemon's own groups, if empty */
/* The pid of a sandbox's init, 0 if it has none. */
int cgroup_init_pid(struct sandbox *sb, pid_t *ret, struct err *e);
int cgroup_limit(struct sandbox *sb, struct err *e);
/* Whether its memory may go to the host's swap; only while it is paused. */
void cgroup_swap(struct sandbox *sb, bool allowed);
/* True when no process is left in it, or it is not there; what cannot be seen may be there. */
bool cgroup_is_empty(struct sandbox *sb);
/* Bytes that its processes wrote and that are not on the disk yet; 0 if unknown. */
uint64_t cgroup_dirty(struct sandbox *sb);
/* Kills everything in the sandbox. */
void cgroup_kill(struct sandbox *sb);
/* The v2 group to be born into; belongs to the caller. */
int cgroup_birth_fd(struct sandbox *sb, struct err *e);
/* Fds of what a process writes "0" to in order to join the v1 groups; -1 where there
 * is none. They belong to the caller. */
int cgroup_open_v1(struct sandbox *sb, int ret[CTRL_COUNT], struct err *e);
int cgroup_own(struct sandbox *sb, struct err *e);
/* The file that counts oom kills (/dev/null without a memory limit); belongs to the
 * caller. */
int cgroup_oom_fd(struct sandbox *sb, struct err *e);
/* Oom kills so far; 0 if unknown. */
uint64_t cgroup_oom_kills(struct sandbox *sb);

int ids_open(struct keeper *k, struct err *e);
/* For an adopted sandbox: its range is leased, also when /run/cove was lost. */
void ids_keep(struct sandbox *sb);
/* Gives back every range of this daemon that no sandbox has, as soon as that is certain. */
void ids_sweep(struct keeper *k);
uid_t ids_base(const struct sandbox *sb);
/* The range that its init runs in, by what the kernel says of it. */
int ids_find(struct sandbox *sb, struct err *e);

/* One way to give a sandbox a disk of bounded size. */
enum disk_rest { DISK_GONE, DISK_EMPTY, DISK_STAYS };

struct disk_way {
    const char *name;
    const char *file; /* in DIR, once it was opened: no other way has those disks */
    int (*open)(struct keeper *k, struct err *e);
    void (*close)(struct keeper *k);
    int (*make)(struct sandbox *sb, struct err *e);
    int (*limit)(struct sandbox *sb, struct err *e);
    /* What there is of disk `name` goes; with `reuse` it may be left empty instead, for
     * `spare` to put by. Called in a worker. */
    enum disk_rest (*remove)(struct keeper *k, const char *name, bool reuse);
    void (*spare)(struct keeper *k, const char *name);
    /* A volume of bounded size in a directory of the disks; fine if it is there. */
    int (*volume)(int dir, const char *name, uint64_t limit, struct err *e);
    /* Makes disk `to` what disk `from` is now; *ret_bytes: how much that is. May take its
     * time, and is called in a worker. On failure something may be left of `to`. */
    int (*clone)(struct keeper *k, const char *from, const char *to, bool readonly,
                 uint64_t *ret_bytes, struct err *e);
    /* Bytes of disk `name`; 0 if nobody counts them. Called in a worker. */
    uint64_t (*used)(struct keeper *k, const char *name);
    /* Opens the two counters that init answers `df` from. */
    int (*counters)(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e);
};
int disk_open(struct keeper *k, struct err *e);
void disk_close(struct keeper *k);
/* Fails where nothing that is made now would stay, or too little space is left for it. */
int disk_check(struct keeper *k, struct err *e);
int disk_limit(struct sandbox *sb, struct err *e);
int disk_counters(struct sandbox *sb, int *ret_used, int *ret_quota, struct err *e);
/* Takes disk `name` away, which takes as long as a tenant cared to make it: a worker does
 * it. 0 once there is none; until then 1, and asking again begins what failed anew. */
int disk_remove(struct keeper *k, const char *name);
/* Removes emptied disks of an earlier keeper. A disk without a record is put into quarantine:
 * the front knows whether a client was ever told of it. */
void disk_sweep(struct keeper *k);

int records_open(struct keeper *k, struct err *e);
/* Answers `ok` when what was written before is durable. */
int records_flush(struct keeper *k, uint32_t seq, struct err *e);
/* Each record, once, before there are any sandboxes: `whole`, or damaged and only with its id.
 * The place then belongs to the sandbox (sandbox.place), or is given to records_drop(). */
typedef int record_fn(struct keeper *k, const struct record *rec, uint32_t place, bool whole,
                      struct err *e);
int records_each(struct keeper *k, record_fn *fn, struct err *e);
/* Keeps its bytes in DIR/damaged and frees the place. */
void records_drop(struct keeper *k, uint32_t place);

/* The compiled filter belongs to the keeper. */
int filter_compile(struct keeper *k, struct err *e);
int embed_init_fd(struct err *e);
int embed_helper_fd(struct err *e);
int rootfs_open(struct keeper *k, struct err *e);

/* Becomes, for file access and as the maker of things, the first id of a range,
 * and back. Capabilities stay. */
int become(uid_t id, struct err *e);
void become_root(void);

#endif
