/* backend.h - where the sandboxes of workspaces are made: this server's engine, or another place.
 *
 * A backend makes a sandbox, finds it again by its id, puts its files into the archives of this
 * server, and removes it. It keeps no state about workspaces: they are rows of this server, which
 * decides alone when something happens (states.c).
 *
 * The rule for all of it: only ERR_NOT_FOUND of `resume` says that a sandbox does not exist. Every
 * other error leaves that open: the workspace keeps the id, and no second sandbox is made.
 *
 * Every call is made on the loop's thread and answers once, by its callback and never from inside
 * the call. Strings are borrowed for the call.
 *
 * EXTEND  Another backend: a file like cove.c with a struct backend_kind, its row in backend.c. */
#ifndef FRONT_WORKSPACE_BACKEND_H
#define FRONT_WORKSPACE_BACKEND_H

#include <stdbool.h>

#include "front/engine/engine.h"

#define BACKEND_ID_MAX 128u   /* bytes of the id of a sandbox of any backend */
#define BACKEND_MARK_MAX 128u /* bytes of a mark */
#define BACKEND_NAME_MAX 32u  /* bytes of the name of a backend */

struct http_req;

struct backend_opts { /* all outlive the backend */
    struct loop *loop;
    struct engine *engine;
    const struct config *config;
};

struct backend_spec {
    const char *key;    /* whose workspace it is */
    const char *mark;   /* made with the sandbox, so that undo() finds it: "workspace:SEQ:EPOCH" */
    const char *spec;   /* the body of POST /v1/sandboxes, as JSON, as the client gave it */
    const char *owner;  /* of the archives (front/engine/archives.h) */
    const char *digest; /* of the archive that restore() brings back */
    bool any_base;      /* see struct archive_restore */
    const struct create_opts *create; /* `spec`, decoded; without a lifetime */
};

struct backend_archive {
    const char *digest;
    uint64_t bytes, entries;
};

/* `id` of the sandbox that runs now; NULL on failure. */
typedef void backend_made_cb(void *arg, const char *id, const struct err *e);
typedef void backend_archived_cb(void *arg, const struct backend_archive *a, const struct err *e);
typedef void backend_busy_cb(void *arg, bool busy, const struct err *e);

struct backend; /* begins the struct of the kind's own file */
struct backend_kind {
    const char *name; /* in the API and in rows */
    /* Its sandboxes are those of our engine: requests go to the handlers of the native API. Else
     * they go to forward(). */
    bool local;
    /* It can give the whole writable layer. False: a workspace there is never put into an archive
     * and keeps its sandbox, paused. */
    bool archives;

    /* ERR_UNSUPPORTED: not configured. */
    int (*open)(const struct backend_opts *o, struct backend **ret, struct err *e);
    void (*free)(struct backend *b); /* no callback follows */

    /* A new sandbox; a failure leaves nothing of it, or undo() finds it. */
    void (*create)(struct backend *b, const struct backend_spec *s, backend_made_cb *cb, void *arg);
    /* The same with the files of an archive, all of them. */
    void (*restore)(struct backend *b, const struct backend_spec *s, backend_made_cb *cb,
                    void *arg);
    /* It runs when this succeeds, whether it was paused, stopped or running. */
    void (*resume)(struct backend *b, const char *key, const char *id, backend_made_cb *cb,
                   void *arg);
    /* The whole writable layer of a sandbox that is paused, as an archive of `owner` in the store
     * of this server, read back and verified. */
    void (*archive)(struct backend *b, const char *key, const char *id, const char *owner,
                    const char *spec, backend_archived_cb *cb, void *arg);
    /* Frozen with its memory, or stopped. Succeeds if it does not run. */
    void (*pause)(struct backend *b, const char *key, const char *id, engine_done_cb *cb,
                  void *arg);
    /* Succeeds if there is none. */
    void (*remove)(struct backend *b, const char *key, const char *id, engine_done_cb *cb,
                   void *arg);
    /* Removes every sandbox of that mark, of which there may be none: what a create or restore made
     * that a kill interrupted. */
    void (*undo)(struct backend *b, const char *key, const char *mark, engine_done_cb *cb,
                 void *arg);
    /* Whether processes run in it that no request waits for. */
    void (*busy)(struct backend *b, const char *key, const char *id, backend_busy_cb *cb,
                 void *arg);
    /* Not `local` only: takes the request over and answers it as the sandbox `id` does at
     * /v1/sandboxes/ID/BELOW; `below` has the query. */
    void (*forward)(struct backend *b, const char *key, const char *id, const char *below,
                    struct http_req *r);
};
struct backend {
    const struct backend_kind *kind;
};

/* In the order of the table; `cove` is the first. */
extern const struct backend_kind *const backend_kinds[];
extern const size_t backend_kinds_count;

extern const struct backend_kind backend_cove;

#endif
