/* engine.h - what a sandbox is and may do, whoever asks.
 *
 * The only code that talks to the keeper. Planes decode, call this, encode. All
 * calls are made on the loop's thread; answers come by callback, also when the
 * failure is known at once, and never from inside the call itself. A row in the
 * store is durable before the callback says so.
 *
 * Two records, one writer each: the keeper's list is what exists, the store's
 * rows are what clients were told. At start the two are joined: no row, destroy;
 * no sandbox, the row becomes `stopped` with the reason; both, adopt. */
#ifndef FRONT_ENGINE_ENGINE_H
#define FRONT_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cidr.h"
#include "base/err.h"
#include "base/limits.h"
#include "config/config.h"
#include "loop/loop.h"

struct engine;
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

/* damaged: the keeper cannot vouch for it; nothing but recover and delete is done with it. */
enum sandbox_state {
    SANDBOX_RUNNING,
    SANDBOX_PAUSED,
    SANDBOX_STOPPED,
    SANDBOX_DAMAGED,
    SANDBOX_STATE_COUNT
};
#define SANDBOX_BIT(state) (1u << (state))
const char *sandbox_state_name(enum sandbox_state s); /* "running", "paused"... */

/* What happens when the timeout passes. Their numbers are in the database. */
enum sandbox_end { SANDBOX_END_DELETE, SANDBOX_END_STOP, SANDBOX_END_PAUSE, SANDBOX_END_COUNT };
const char *sandbox_end_name(enum sandbox_end s); /* "delete", "stop", "pause" */

/* What a sandbox with a network may reach: an allow that matches decides first, then
 * a deny; what nothing speaks of is allowed. The operator's refusals come before. */
#define ENGINE_RULES_MAX 256u
struct sandbox_rule {
    struct cidr to;
    bool deny;
};

struct sandbox {
    const char *id;
    const char *key;  /* id of the API key that made it; only that key sees it */
    const char *name; /* what its key calls it; "": nothing */
    enum sandbox_state state;
    const char *template;
    const char *snapshot; /* id of the one it was made from, or "" */
    const char *network;  /* "egress", or "none": loopback only */
    uint32_t address;     /* while it runs; 0: none */
    const struct sandbox_rule *rules;
    size_t nrules;
    const char *metadata; /* JSON object of strings, as given; "{}" */
    const char *plane;    /* what the plane that made it wanted kept, or "" */
    const char *env;      /* strv bytes: NAME=value, each with its NUL */
    size_t env_len;
    const char *image; /* what its template's image says: user, workdir, then env, each with */
    size_t image_len;  /* its NUL; 0: not from an image */
    struct limits limits;
    uint64_t created_ms, ends_ms; /* ends_ms 0: never, and always so while it is paused */
    uint64_t changed_ms;          /* when it last became running, paused or stopped */
    uint64_t timeout_ms;          /* as asked for at creation; 0: none */
    enum sandbox_end on_timeout;
    bool auto_resume; /* a command for it while it is paused lets it go on */
    uint64_t idle_ms; /* paused when nobody has used it for so long; 0: never */
    bool log_output;  /* what commands print is in its log */
    const char *boot_id;
    const char *reason; /* why it is stopped or damaged, else "" */
};

struct engine_opts {
    struct loop *loop;
    const struct config *config; /* borrowed for ever */
    struct store *store;         /* borrowed for ever */
    int keeper_fd, run_fd;       /* borrowed for ever */
    const char *first_key;       /* id of the key that gets what a lost database knew */
    /* Called once, when the join is done and requests may be served. */
    void (*on_ready)(void *arg);
    /* The keeper is gone, or speaks nonsense: the front must exit. */
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

/* Whether what commands print is kept in its log. */
enum create_log { CREATE_LOG_DEFAULT, CREATE_LOG_OUTPUT, CREATE_LOG_NO_OUTPUT };

struct create_opts { /* all borrowed for the call */
    const char *key;
    const char *name;        /* engine_named() only... */
    engine_prepare *prepare; /* ...which does this in a new one before anybody has it; or NULL */
    const char *template; /* NULL: "base". A snapshot's id or name does where no template has it */
    const char *snapshot; /* id or name, instead of a template; or NULL */
    const char *network;  /* NULL: the default of this server */
    const struct sandbox_rule *rules;
    size_t nrules;
    const char *metadata; /* JSON object of strings, or NULL */
    const char *plane;    /* for the plane itself, kept as it is; or NULL */
    const char *env;      /* strv bytes */
    size_t env_len;
    struct limits limits; /* 0: the configured default */
    uint64_t timeout_ms;  /* 0: never */
    enum sandbox_end on_timeout;
    bool auto_resume;
    uint64_t idle_ms; /* paused when nobody has used it for so long; 0: never */
    enum create_log log_output;
};

/* `s` is borrowed for the call; NULL on failure. ERR_UNAVAILABLE when full. */
typedef void engine_sandbox_cb(void *arg, const struct sandbox *s, const struct err *e);

void engine_create(struct engine *g, const struct create_opts *o, engine_sandbox_cb *cb, void *arg);
/* NULL if there is none, or it is another key's. Points into the engine until
 * the next turn of the loop. */
const struct sandbox *engine_get(struct ref ref);
/* The same whoever's it is: for who was shown something better than a key. */
const struct sandbox *engine_find(struct engine *g, const char *id);
/* The sandbox that `name` means to o->key, made as `o` says if there is none yet:
 * one, however many ask at once, and the same after every restart. ERR_GONE to who asked
 * after somebody who wants the one that is being made gone: they may ask again. */
void engine_named(struct engine *g, const char *name, const struct create_opts *o,
                  engine_sandbox_cb *cb, void *arg);
/* As engine_get(); never makes one, and one that is being made is none yet. */
const struct sandbox *engine_by_name(struct engine *g, const char *key, const char *name);
/* One that is being made is waited for first. A name that means nothing is fine. */
void engine_delete_named(struct engine *g, const char *key, const char *name, engine_done_cb *cb,
                         void *arg);
/* Answers once nothing of it runs any more and no restart can bring it back. */
void engine_delete(struct ref ref, engine_done_cb *cb, void *arg);
/* With its memory: everything in it stands still where it is. Without: its processes
 * are gone and it is stopped. ERR_CONFLICT if it does not run, or something else is
 * being done with it. */
void engine_pause(struct ref ref, bool memory, engine_sandbox_cb *cb, void *arg);

/* How long it lives after a resume. */
enum resume_end {
    RESUME_AS_MADE,  /* as long as it was made for, from now; one that stopped by itself keeps
                     * the end it has */
    RESUME_FOR,      /* timeout_ms from now, 0: for ever */
    RESUME_COLD_FOR, /* the same, but what it has in memory is dropped: it boots anew */
    RESUME_WAKE,     /* as made, but not less than ENGINE_WAKE_MS */
};
#define ENGINE_WAKE_MS (300u * 1000u)
/* A paused one goes on where it was, a stopped one boots on its old disk. While it is
 * being paused or stopped that is waited for first. ERR_CONFLICT if it runs. */
void engine_resume(struct ref ref, enum resume_end end, uint64_t timeout_ms, engine_sandbox_cb *cb,
                   void *arg);
/* A damaged one becomes what it was: it runs on if its init does, else it is stopped, with its
 * files. ERR_CONFLICT if it is not damaged, or what is left of it does not suffice. */
void engine_recover(struct ref ref, engine_sandbox_cb *cb, void *arg);
/* The same as engine_resume(), but one that runs is fine, and only lives longer if that is more than it
 * has: its changed_ms tells whether it was resumed. Without `memory` as RESUME_COLD_FOR. */
void engine_connect(struct ref ref, bool memory, uint64_t timeout_ms, engine_sandbox_cb *cb,
                    void *arg);
/* Somebody wants something of it: if it is paused and may be resumed by that, it is;
 * ERR_CONFLICT if it may not. Starting a command does this by itself. */
void engine_wake(struct ref ref, engine_sandbox_cb *cb, void *arg);

/* Somebody uses it in a way that its init knows nothing of, so that it is not idle. Fine for
 * one that has ended meanwhile. */
void engine_hold(struct engine *g, const char *id);
void engine_release(struct engine *g, const char *id);

/* From now; 0: never. ERR_CONFLICT for a paused one, which has no end. */
int engine_set_timeout(struct ref ref, uint64_t timeout_ms, struct err *e);
/* The same, if it is later than the end it has. */
int engine_extend(struct ref ref, uint64_t timeout_ms, struct err *e);

/* All rules at once, now; open connections that stay allowed notice nothing, those
 * that are denied end. */
void engine_set_rules(struct ref ref, const struct sandbox_rule *rules, size_t n,
                      engine_sandbox_cb *cb, void *arg);

struct list_opts {
    const char *key;
    unsigned states;      /* SANDBOX_BITs; 0: all */
    const char *template; /* NULL: all */
    uint64_t created_from_ms;
    /* Metadata that must be there, as name, value, name, value...; NULL ends. */
    const char *const *metadata;
    const char *after; /* cursor of the page before, or NULL */
    size_t limit;      /* rows at most */
    bool newest_first; /* else oldest first */
};
/* Calls `each` per row; *ret_next is the cursor of the next page
 * (belongs to the caller, free()) or NULL. ERR_INVALID for a bad cursor. */
int engine_list(struct engine *g, const struct list_opts *o,
                void (*each)(void *arg, const struct sandbox *s), void *arg, char **ret_next,
                struct err *e);

/* Every sandbox, whoever's it is, in no order; for who was shown something better than
 * a key. */
void engine_each(struct engine *g, void (*each)(void *arg, const struct sandbox *s), void *arg);
/* How many sandboxes each key has; once per key that has any, in the order of keys. */
void engine_owners(struct engine *g, void (*each)(void *arg, const char *key, size_t sandboxes),
                   void *arg);

/* ---- mounts ---- */

/* A directory that the operator allows, by its name (setting `mounts`), at a directory of
 * the sandbox's own disk. It stays until it is unmounted or the sandbox boots again.
 * ERR_UNSUPPORTED: the operator allows none of that name. */
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

/* Opens a port to who knows the token in *ret; one that is open stays as it is, but for
 * another name that is ERR_CONFLICT. Durable. */
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

/* Adds a template from the bytes of an archive, whatever their number: they are
 * unpacked in a throw-away sandbox, and only when all is well does `name` mean
 * them. All callbacks come from the loop. */
struct engine_import;
struct import_ops {
    void (*on_drain)(void *arg); /* bytes may come; the first time when it is ready for any */
    void (*on_progress)(void *arg, const char *text, uint64_t done, uint64_t total);
    /* Of engine_import_snapshot(): what it became, just before the end. */
    void (*on_snapshot)(void *arg, const struct snapshot *s);
    void (*on_done)(void *arg, const struct err *e); /* the last one; the handle is gone */
};
struct engine_import *engine_import(struct engine *g, const char *name,
                                    const struct import_ops *ops, void *arg);
/* Not before the first on_drain. Returns how much is queued: above
 * ENGINE_IMPORT_HIGH wait for on_drain. `last`: that was all. */
#define ENGINE_IMPORT_HIGH (256u << 10)
size_t engine_import_feed(struct engine_import *im, const void *p, size_t n, bool last);
/* Nobody listens any more; no callback follows. What is not whole is thrown away,
 * what is goes on by itself. */
void engine_import_cancel(struct engine_import *im);

/* Builds one with debootstrap, in a throw-away sandbox of `base`. ERR_UNSUPPORTED
 * says what this host lacks for it; else the message has debootstrap's last words. */
struct build_opts {                        /* all borrowed for the call */
    const char *suite, *mirror, *packages; /* mirror may be "", packages "" or "a,b" */
};
void engine_template_build(struct engine *g, const char *name, const struct build_opts *o,
                           void (*progress)(void *arg, const char *text, uint64_t done,
                                            uint64_t total),
                           engine_done_cb *cb, void *arg);

void engine_template_alias(struct engine *g, const char *name, const char *alias,
                           engine_done_cb *cb, void *arg);
/* ERR_CONFLICT while a sandbox stands on it. */
void engine_template_delete(struct engine *g, const char *name, engine_done_cb *cb, void *arg);

/* ---- news: what /v1/events shows ---- */

#define ENGINE_EVENTS_KEPT 1024u /* for Last-Event-ID; older ones are told as `truncated` */

struct engine_event {
    uint64_t seq; /* 1, 2, ... for the life of the state directory */
    uint64_t at_ms;
    const char *key;     /* whose sandbox */
    const char *kind;    /* NULL: some up to this one are lost, and nothing else is said here
                          * but maybe of which sandbox; "sandbox.created", "sandbox.deleted", "sandbox.stopped",
                          * "sandbox.paused", "sandbox.resumed", "sandbox.timeout",
                          * "sandbox.snapshot",
                          * "process.started", "process.exited" */
    const char *sandbox; /* id */
    const char *data;    /* JSON object with the rest: template, process, exit... */
};
struct engine_watch; /* a subscriber */
/* First everything kept with seq > after (UINT64_MAX: nothing), then the new
 * ones. If some in between are lost that is told at once, not with the next event:
 * it may be a lost one that somebody waits for. */
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
    uint64_t io_weights, io_limits, bandwidth; /* 1: the host can share or limit these */
    bool joined;                               /* it answered */
    bool refuses;                              /* creates, now... */
    enum err_kind why;                         /* ...with this */
};
struct sandbox_traffic {
    const char *id;
    uint64_t in_bytes, in_packets, out_bytes, out_packets; /* as the sandbox sees it */
};
/* Of every sandbox of the key that has a network, since its boot. */
void engine_traffic(struct engine *g, const char *key,
                    void (*each)(void *arg, const struct sandbox_traffic *t), engine_done_cb *done,
                    void *arg);
void engine_stat(struct engine *g, void (*cb)(void *arg, const struct engine_stats *s), void *arg);

#endif
