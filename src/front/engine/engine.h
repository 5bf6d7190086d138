/* engine.h - sandboxes and the operations on them, for all planes.
 *
 * The only code that talks to the keeper. Planes decode a request, call the engine and
 * encode the answer. All calls are made on the loop's thread. Answers come by callback,
 * never from inside the call itself, also if it fails at once. A row in the store is
 * durable before the callback reports success.
 *
 * Two lists, one writer each: the keeper's list has the sandboxes that exist, the store's
 * rows those that clients were told of. At start the two are joined: a sandbox without a
 * row is destroyed, a row without a sandbox becomes `stopped` with the reason, and a
 * sandbox with a row is adopted. */
#ifndef FRONT_ENGINE_ENGINE_H
#define FRONT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cidr.h"
#include "base/err.h"
#include "base/fsync.h"
#include "base/limits.h"
#include "config/config.h"
#include "loop/loop.h"

struct engine;
struct quota_book;
struct snapshot;
struct store;

/* Which sandbox, and for which key: a call of the engine finds the sandbox only if it belongs to
 * the key. A plane makes the ref of a request in one place (front/plane/call.h); handlers pass it
 * on. Where a header says so, `id` is that of a snapshot. A value: copy it; the strings are
 * borrowed for the call. */
struct ref {
    struct engine *engine;
    const char *key, *id;
};
/* The same key's, with another id. */
static inline struct ref ref_with(struct ref r, const char *id)
{
    return (struct ref){r.engine, r.key, id};
}

#define ENGINE_METADATA_MAX (16u << 10) /* bytes of JSON, one sandbox */
#define ENGINE_ENV_MAX (64u << 10)      /* bytes of a sandbox's environment */
#define ENGINE_KEY_MAX 32u
#define ENGINE_ID_MAX 32u           /* characters of a sandbox's id */
#define ENGINE_PLANE_MAX (4u << 10) /* bytes that a plane keeps with a sandbox */
#define ENGINE_NAME_MAX 128u        /* bytes of the name of a sandbox */
#define ENGINE_CHOSEN_MAX 63u       /* of them, if a client of the native API chose it */
#define ENGINE_CANDIDATES_MAX 8u    /* ids listed for a prefix that several begin with */
#define ENGINE_USER_MAX 64u         /* bytes of the name of a user inside */
#define ENGINE_PATH_MAX 4096u       /* bytes of a path inside */

struct engine_bytes {
    const char *p;
    size_t len;
};
/* The next of several strings, each with its NUL; NULL after the last. *at begins at 0. */
static inline const char *engine_word_next(const struct engine_bytes *words, size_t *at)
{
    const char *word = words->p + *at;

    if (*at >= words->len)
        return NULL;
    *at += strlen(word) + 1;
    return word;
}

/* damaged: the keeper could not read its record; only recover and delete are allowed. */
enum sandbox_state {
    SANDBOX_RUNNING,
    SANDBOX_PAUSED,
    SANDBOX_STOPPED,
    SANDBOX_DAMAGED,
    SANDBOX_STATE_COUNT
};
#define SANDBOX_BIT(state) (1u << (state))
const char *sandbox_state_name(enum sandbox_state s); /* "running", "paused"... */

/* Action when the lifetime ends. The numbers are stored in the database. */
enum sandbox_end { SANDBOX_END_DELETE, SANDBOX_END_STOP, SANDBOX_END_PAUSE, SANDBOX_END_COUNT };
const char *sandbox_end_name(enum sandbox_end s); /* "delete", "stop", "pause" */

/* Which destinations a sandbox with a network may reach: an allow that matches decides first,
 * then a deny; everything else is allowed. The operator's own rules come before these. */
#define ENGINE_RULES_MAX 256u
struct sandbox_rule {
    struct cidr to;
    bool deny;
};

struct sandbox {
    const char *id;
    const char *key;  /* id of the API key that created it; only that key sees it */
    const char *name; /* given by its key; "": none */
    enum sandbox_state state;
    const char *template;
    const char *snapshot; /* id of the snapshot it was created from, or "" */
    const char *network;  /* "egress", or "none": loopback only */
    uint32_t address;     /* while it runs; 0: none */
    const struct sandbox_rule *rules;
    size_t nrules;
    const char *metadata; /* JSON object of strings, as given; "{}" */
    const char *plane;    /* data of the plane that created it, or "" */
    const char *env;      /* strv bytes: NAME=value, each with its NUL */
    size_t env_len;
    const char *image; /* settings of its template's image: user, workdir, then env, each with */
    size_t image_len;  /* its NUL; 0: not from an image */
    struct limits limits;
    uint64_t created_ms, ends_ms; /* ends_ms 0: never; always 0 while it is paused */
    uint64_t changed_ms;          /* when it last became running, paused or stopped */
    uint64_t timeout_ms;          /* as given at creation; 0: none */
    enum sandbox_end on_timeout;
    bool auto_resume; /* a command resumes it while it is paused */
    uint64_t idle_ms; /* idle time after which it is paused; 0: never */
    bool log_output;  /* output of commands is kept in its log */
    enum fsync fsync; /* of its next boot */
    uint64_t lost_ms; /* when the server found that its last writes may be missing; 0: never */
    bool guarded;     /* its ports are open only to clients that have their token (tunnels below) */
    const char *boot_id;
    const char *reason; /* why it is stopped or damaged, else "" */
};

struct engine_opts {
    struct loop *loop;
    const struct config *config; /* must outlive the engine */
    struct store *store;         /* must outlive the engine */
    struct quota_book *quotas;   /* must outlive the engine; NULL: no key has a limit */
    int keeper_fd, run_fd;       /* must outlive the engine... */
    int state_fd;                /* ...like this: DIR/front */
    const char *
        first_key; /* id of the key that gets sandboxes without a row, after the database was lost */
    bool host;     /* the one sandbox is this machine (docs/host-mode.md) */
    /* Called once, when the join is done and requests may be served. */
    void (*on_ready)(void *arg);
    /* The keeper closed the connection, or sent an invalid message: the front must exit. */
    void (*on_lost)(void *arg, const struct err *why);
    void *arg;
};

int engine_new(const struct engine_opts *opts, struct engine **ret, struct err *e);
void engine_free(struct engine *g);
bool engine_is_ready(const struct engine *g);
/* Calls fn when a sandbox stops running (paused, stopped, deleted) or its network rules change: what
 * holds idle connections into it closes them then. One listener; NULL: none. */
void engine_on_leave(struct engine *g, void (*fn)(void *arg, const char *id), void *arg);
/* Tells the keeper that requests are being served. */
void engine_serving(struct engine *g);
const struct config *engine_config(const struct engine *g);

/* For its own key. */
static inline struct ref sandbox_ref(struct engine *g, const struct sandbox *s)
{
    return (struct ref){g, s->key, s->id};
}

/* `e` is NULL on success. */
typedef void engine_done_cb(void *arg, const struct err *e);
typedef void engine_prepare(struct engine *g, const struct sandbox *s, engine_done_cb *done,
                            void *arg);

/* Whether output of commands is kept in its log. */
enum create_log { CREATE_LOG_DEFAULT, CREATE_LOG_OUTPUT, CREATE_LOG_NO_OUTPUT };

struct create_opts { /* all borrowed for the call */
    const char *key;
    const char *name; /* engine_create_named() and engine_named() only... */
    engine_prepare
        *prepare; /* ...which calls this for a new sandbox before it is handed out; or NULL */
    const char
        *template; /* NULL: "base". The id or name of a snapshot, if no template has that name */
    const char *snapshot; /* id or name, instead of a template; or NULL */
    const char *network;  /* NULL: the default of this server */
    const struct sandbox_rule *rules;
    size_t nrules;
    const char *metadata; /* JSON object of strings, or NULL */
    const char *plane;    /* data of the plane, stored unchanged; or NULL */
    const char *env;      /* strv bytes */
    size_t env_len;
    struct limits limits; /* 0: the configured default */
    uint64_t timeout_ms;  /* 0: never */
    enum sandbox_end on_timeout;
    bool auto_resume;
    bool guarded;     /* its ports are open only to clients that have their token */
    uint64_t idle_ms; /* idle time after which it is paused; 0: never */
    enum create_log log_output;
    enum fsync fsync; /* or FSYNC_SETTING */
};

/* `s` is borrowed for the call; NULL on failure. ERR_UNAVAILABLE when full. */
typedef void engine_sandbox_cb(void *arg, const struct sandbox *s, const struct err *e);

/* Creates of one key that the keeper has concurrently: as many as keep it busy. Further ones wait here, for
 * the keeper takes them in order, and those of other keys would come after all of them. */
#define ENGINE_CREATES_SHARE 32u

void engine_create(struct engine *g, const struct create_opts *o, engine_sandbox_cb *cb, void *arg);
/* NULL if there is none, or it is another key's. Points into the engine until
 * the next turn of the loop. */
const struct sandbox *engine_get(struct ref ref);
/* The same for any key: for callers that checked another credential than a key. */
const struct sandbox *engine_find(struct engine *g, const char *id);
/* The sandbox that has `name` within o->key, created from `o` if there is none. Concurrent callers
 * get the same sandbox; the name survives restarts. ERR_GONE if another caller deletes the name
 * while its sandbox is being created: the caller may try again. */
void engine_named(struct engine *g, const char *name, const struct create_opts *o,
                  engine_sandbox_cb *cb, void *arg);
/* As engine_get(): never creates one; NULL also while it is being created. */
const struct sandbox *engine_by_name(struct engine *g, const char *key, const char *name);
/* The sandbox of ref.key that ref.id means: an id, else a name, else the only id with that prefix.
 * *ret is NULL if there is none; ERR_CONFLICT if several ids have the prefix: the message lists
 * them. */
int engine_resolve(struct ref ref, const struct sandbox **ret, struct err *e);
/* Creates a sandbox with the name o->name; ERR_CONFLICT if the key already has one of that name. */
void engine_create_named(struct engine *g, const struct create_opts *o, engine_sandbox_cb *cb,
                         void *arg);
/* Waits first for a sandbox that is being created. Succeeds for an unknown name. */
void engine_delete_named(struct engine *g, const char *key, const char *name, engine_done_cb *cb,
                         void *arg);
/* Answers when nothing of it runs any more and no restart can bring it back. */
void engine_delete(struct ref ref, engine_done_cb *cb, void *arg);
/* With `memory` its processes are frozen. Without, they are killed and it is stopped, also if it is
 * paused. ERR_CONFLICT if it does not run, or another operation on it is under way. */
void engine_pause(struct ref ref, bool memory, engine_sandbox_cb *cb, void *arg);

/* Lifetime after a resume. */
enum resume_end {
    RESUME_AS_MADE,  /* the lifetime given at creation, from now; one that stopped by itself keeps
                     * its end */
    RESUME_FOR,      /* timeout_ms from now, 0: no limit */
    RESUME_COLD_FOR, /* the same, but its processes are dropped: it boots again */
    RESUME_WAKE,     /* as RESUME_AS_MADE, but at least ENGINE_WAKE_MS */
};
#define ENGINE_WAKE_MS (300u * 1000u)
/* Unfreezes a paused sandbox, or boots a stopped one on its disk. Waits first for a pause or stop
 * that is under way. ERR_CONFLICT if it runs. */
void engine_resume(struct ref ref, enum resume_end end, uint64_t timeout_ms, engine_sandbox_cb *cb,
                   void *arg);
/* A damaged sandbox becomes usable: it continues to run if its init does, else it is stopped and
 * keeps its files. ERR_CONFLICT if it is not damaged, or too little of it is left. */
void engine_recover(struct ref ref, engine_sandbox_cb *cb, void *arg);
/* As engine_resume(), but succeeds for one that runs, whose lifetime is only ever extended; its
 * changed_ms tells whether it was resumed. Without `memory` as RESUME_COLD_FOR. */
void engine_connect(struct ref ref, bool memory, uint64_t timeout_ms, engine_sandbox_cb *cb,
                    void *arg);
/* Resumes it if it is paused and has auto_resume; ERR_CONFLICT if it has not. Starting a command
 * does this by itself. */
void engine_wake(struct ref ref, engine_sandbox_cb *cb, void *arg);

/* Whether anyone uses it now: a conversation with its init that is not our own, or a hold. */
bool engine_is_used(struct ref ref);
/* Answers when no create of the key is under way, for a key that may not begin others. */
void engine_creates_settled(struct engine *g, const char *key, engine_done_cb *done, void *arg);

/* It is used in a way that its init does not see, so it is not idle. May be called for one that
 * was deleted meanwhile. */
void engine_hold(struct engine *g, const char *id);
void engine_release(struct engine *g, const char *id);

/* From now; 0: no limit. ERR_CONFLICT for a paused one, which has no end. */
int engine_set_timeout(struct ref ref, uint64_t timeout_ms, struct err *e);
/* The same, but never earlier than its current end. */
int engine_extend(struct ref ref, uint64_t timeout_ms, struct err *e);

struct update_opts {      /* all borrowed for the call */
    const char *name;     /* NULL: unchanged; "": none */
    const char *metadata; /* JSON object of strings, replaces all; NULL: unchanged */
    struct limits limits; /* 0: unchanged */
    bool set_timeout, set_on_timeout, set_auto_resume;
    uint64_t timeout_ms; /* from now; 0: never */
    enum sandbox_end on_timeout;
    bool auto_resume;
    enum fsync fsync; /* FSYNC_SETTING: unchanged; counts from the next boot */
};
/* Changes all or nothing. ERR_CONFLICT if the name is taken, or for a limit that cannot change now. */
void engine_update(struct ref ref, const struct update_opts *o, engine_sandbox_cb *cb, void *arg);

/* Replaces all rules at once. Open connections that are still allowed continue, denied ones are
 * closed. */
void engine_set_rules(struct ref ref, const struct sandbox_rule *rules, size_t n,
                      engine_sandbox_cb *cb, void *arg);

struct list_opts {
    const char *key;      /* NULL: all keys, for a caller that may see them */
    unsigned states;      /* SANDBOX_BITs; 0: all */
    const char *template; /* NULL: all */
    uint64_t created_from_ms;
    /* Metadata that must be there, as name, value, name, value...; NULL ends. */
    const char *const *metadata;
    const char *after; /* cursor of the previous page, or NULL */
    size_t limit;      /* rows at most */
    bool newest_first; /* else oldest first */
};
/* Calls `each` per row; *ret_next is the cursor of the next page
 * (belongs to the caller, free()) or NULL. ERR_INVALID for a bad cursor. */
int engine_list(struct engine *g, const struct list_opts *o,
                void (*each)(void *arg, const struct sandbox *s), void *arg, char **ret_next,
                struct err *e);

/* The key has a sandbox, in any state, or a snapshot. A key that was revoked may. */
bool engine_has_any_of(struct engine *g, const char *key);
/* Notes, as an event of the sandbox and in its log, that the key `by` has made the call `call` on it
 * for its owner. */
void engine_audit(struct ref ref, const char *by, const char *call);

/* An event of the key that is not the engine's own, with `kind` of static storage. `sandbox` may be
 * "". */
void engine_say(struct engine *g, const char *key, const char *sandbox, const char *kind,
                const char *data);

/* Every sandbox of every key, in no order; for callers that checked another credential than a
 * key. */
void engine_each(struct engine *g, void (*each)(void *arg, const struct sandbox *s), void *arg);
/* The same for at most `n` of those that come after *after (0: all), for a walk in steps between which the
 * loop turns. Sets *after; false at the end. */
bool engine_each_some(struct engine *g, uint64_t *after, size_t n,
                      void (*each)(void *arg, const struct sandbox *s), void *arg);
/* How many sandboxes each key has; once per key that has any, in the order of keys. */
void engine_owners(struct engine *g, void (*each)(void *arg, const char *key, size_t sandboxes),
                   void *arg);

/* ---- mounts ---- */

/* Mounts a directory that the operator allows, by its name in the setting `mounts`, on a directory
 * of the sandbox's own disk, until it is unmounted or the sandbox boots again. ERR_UNSUPPORTED: the
 * setting has no such name. */
struct mount_opts { /* all borrowed for the call */
    const char *name, *path;
    bool read_only;
};
void engine_mount(struct ref ref, const struct mount_opts *o, engine_done_cb *cb, void *arg);
void engine_unmount(struct ref ref, const char *path, engine_done_cb *cb, void *arg);

/* ---- tunnels ---- */

#define ENGINE_TUNNELS_MAX 64u /* of one sandbox */
#define ENGINE_TUNNEL_TOKEN 16
#define ENGINE_TUNNEL_NAME_MAX 63

struct sandbox_tunnel {
    unsigned port;
    char token[ENGINE_TUNNEL_TOKEN + 1], name[ENGINE_TUNNEL_NAME_MAX + 1];
    uint64_t created_ms;
};

/* Opens a port to holders of the token in *ret. An open port is unchanged; with another name,
 * ERR_CONFLICT. Durable. */
int engine_tunnel_open(struct ref ref, unsigned port, const char *name, struct sandbox_tunnel *ret,
                       struct err *e);
int engine_tunnel_close(struct ref ref, unsigned port, struct err *e);
bool engine_tunnel_is(struct engine *g, const char *id, unsigned port, const char *token);

/* ---- templates ---- */

struct template_info {
    const char *name, *state, *note;
    uint64_t bytes, files, created_ms;
    const char *id;       /* of the version; two names with one id are aliases. "" for base */
    const char *format;   /* "rootfs", "docker", "oci"; "" for base */
    const char *settings; /* JSON object: what the image says; "" for base */
    uint64_t layers;
};
void engine_templates(struct engine *g, void (*each)(void *arg, const struct template_info *t),
                      engine_done_cb *cb, void *arg);
/* `progress` may be NULL. */
void engine_template_refresh(struct engine *g, const char *name,
                             void (*progress)(void *arg, const char *text, uint64_t done,
                                              uint64_t total),
                             engine_done_cb *cb, void *arg);

/* Adds a template from an archive of any size, counted to the key: it is unpacked in a temporary sandbox, and `name`
 * means the result only if everything succeeded. `disk` is what it may take, and needs no more than a little
 * beyond its files; 0 is all that one sandbox may have. All callbacks come from the loop. */
struct engine_import;
struct import_ops {
    void (*on_drain)(void *arg); /* more bytes may be fed; the first time when it is ready */
    void (*on_progress)(void *arg, const char *text, uint64_t done, uint64_t total);
    /* engine_import_snapshot() only: the new snapshot, just before on_done. */
    void (*on_snapshot)(void *arg, const struct snapshot *s);
    void (*on_done)(void *arg, const struct err *e); /* the last callback; the handle is freed */
};
struct engine_import *engine_import(struct engine *g, const char *key, const char *name,
                                    uint64_t disk, const struct import_ops *ops, void *arg);
/* Not before the first on_drain. Returns how much is queued: above
 * ENGINE_IMPORT_HIGH wait for on_drain. `last`: that was all. */
#define ENGINE_IMPORT_HIGH (256u << 10)
size_t engine_import_feed(struct engine_import *im, const void *p, size_t n, bool last);
/* No callback follows. An incomplete archive is dropped; a complete one is still imported. */
void engine_import_cancel(struct engine_import *im);

/* Builds one with debootstrap, in a temporary sandbox of `base`. ERR_UNSUPPORTED says what this
 * host lacks for it; other messages have the last lines of debootstrap. */
struct build_opts {                        /* all borrowed for the call */
    const char *suite, *mirror, *packages; /* mirror may be "", packages "" or "a,b" */
};
void engine_template_build(struct engine *g, const char *key, const char *name,
                           const struct build_opts *o,
                           void (*progress)(void *arg, const char *text, uint64_t done,
                                            uint64_t total),
                           engine_done_cb *cb, void *arg);

void engine_template_alias(struct engine *g, const char *name, const char *alias,
                           engine_done_cb *cb, void *arg);
/* ERR_CONFLICT while a sandbox uses it. */
void engine_template_delete(struct engine *g, const char *name, engine_done_cb *cb, void *arg);

/* ---- events, as in /v1/events ---- */

#define ENGINE_EVENTS_KEPT                                                                         \
    1024u /* of each key, for Last-Event-ID; if older ones are missing, `truncated` is sent */

struct engine_event {
    uint64_t seq; /* 1, 2, ... for the life of the state directory */
    uint64_t at_ms;
    const char *key;     /* whose sandbox */
    const char *kind;    /* NULL: events up to this one are lost; of the rest only `sandbox`
                          * may be set; "sandbox.created", "sandbox.deleted", "sandbox.stopped",
                          * "sandbox.paused", "sandbox.resumed", "sandbox.timeout",
                          * "sandbox.updated", "sandbox.writes_lost",
                          * "sandbox.admin" (engine_audit()),
                          * "sandbox.snapshot",
                          * "workspace.changed", "workspace.deleted",
                          * "process.started", "process.exited" */
    const char *sandbox; /* id */
    const char *data;    /* JSON object with the rest: template, process, exit... */
};
struct engine_watch; /* a subscriber */
/* First all kept events with seq > after (UINT64_MAX: none), then the new ones. Lost events in
 * between are reported at once and not with the next event: the client may wait for a lost one. */
struct engine_watch *engine_watch(struct engine *g, const char *key, uint64_t after,
                                  void (*each)(void *arg, const struct engine_event *ev),
                                  void *arg);
void engine_unwatch(struct engine_watch *w);

/* ---- numbers for /metrics ---- */

struct engine_stats {
    uint64_t by_state[SANDBOX_STATE_COUNT];
    uint64_t creates, create_failures, deletes, execs, processes, init_connections;
    /* the keeper's */
    uint64_t pooled, teardown, sandboxes_max, disk_total, disk_free;
    uint64_t disk_allocated, disk_used, reserve_wanted, reserve, disk_low, disk_backed;
    uint64_t memory_total, memory_left, memory_low;
    uint64_t io_weights, io_limits, bandwidth; /* 1: the host can share or limit these */
    uint64_t proofs;                           /* sandboxes built for engine_prove() */
    bool joined;                               /* it answered */
    bool proven;                               /* `failing` is known */
    /* Borrowed for the call; "": nothing. */
    const char *lacks;    /* the host, for another sandbox: sandboxes, memory, disk, deletes */
    const char *failing;  /* the stage that no sandbox gets past */
    const char *firewall; /* of the host, in the way of sandboxes */
};
struct sandbox_traffic {
    const char *id;
    uint64_t in_bytes, in_packets, out_bytes, out_packets; /* as the sandbox sees it */
};
/* Of every sandbox of the key (NULL: of all keys) that has a network, since its boot. */
void engine_traffic(struct engine *g, const char *key,
                    void (*each)(void *arg, const struct sandbox_traffic *t), engine_done_cb *done,
                    void *arg);
void engine_stat(struct engine *g, void (*cb)(void *arg, const struct engine_stats *s), void *arg);
/* The same, when it is known whether sandboxes can be made: one may be built for that. */
void engine_prove(struct engine *g, void (*cb)(void *arg, const struct engine_stats *s), void *arg);

#endif
