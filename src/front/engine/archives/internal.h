/* internal.h - what the files of archives share; private to them.
 *
 *   archives.c  what there is: rows, spaces     pack.c      one being made
 *   collect.c   what no archive uses            restore.c   one being brought back
 *   adopt.c     one of another server
 *   blob.c      chunks and manifests, checked   manifest.c  the document
 *   vault*.c    where they are                  temp.c      a helper in a temporary sandbox */
#ifndef FRONT_ENGINE_ARCHIVES_INTERNAL_H
#define FRONT_ENGINE_ARCHIVES_INTERNAL_H

#include "front/engine/archives.h"
#include "front/engine/archives/manifest.h"
#include "front/engine/archives/vault.h"
#include "front/engine/internal.h"
#include "loop/job.h"
#include "wire/archive.h"

/* ---- what there is ---- */

struct space { /* a key's part of the store */
    struct list link;
    struct archives *as;
    char key[ENGINE_KEY_MAX + 1], name[ARCHIVE_SPACE + 1];
    unsigned puts;   /* under way in it: nothing is collected meanwhile... */
    bool collecting; /* ...and nothing put while this is */
    bool dirty;      /* there may be something to collect */
    struct loop_later soon;
};

struct kept { /* an archive in memory; its strings are in `text` */
    struct list link;
    struct archive pub;
    uint64_t seq;
    struct quota_user *user;
    unsigned users; /* being restored: its chunks stay */
    bool gone;      /* it has no row any more; freed by its last user */
    char text[];
};

struct archives {
    struct engine *g;
    struct vault *vault; /* NULL: not opened yet */
    struct list all;     /* struct kept, oldest first */
    struct list spaces;
    struct list packing, packs_waiting;
    struct list restoring, restores_waiting;
    unsigned npacking, nrestoring, nwaiting;
    struct list collecting, adopting;
    struct loop_timer tidy;
};

/* Opens it at first use, and again after a failure. */
struct vault *archives_vault(struct archives *as, struct err *e);
/* The key's; made if `make`. NULL with `e`, or if there is none. */
struct space *space_of(struct archives *as, const char *key, bool make, struct err *e);
/* A collection of it ended; what was deleted meanwhile is collected next. */
void space_collected(struct space *sp);
/* A put in it ended; it may be collected. */
void space_put_ended(struct space *sp);
struct kept *kept_find(struct archives *as, const char *key, const char *owner, const char *digest);
void kept_unuse(struct archives *as, struct kept *k);
/* The row and what it replaces, in one transaction. NULL with `e`. */
const struct archive *kept_add(struct archives *as, const struct store_archive *row, struct err *e);

/* ---- blobs; called from threads ---- */

void blob_name(char out[VAULT_NAME_MAX], const char *space, const char *kind, const char *digest);
#define BLOB_CHUNKS "chunks"
#define BLOB_MANIFESTS "manifests"
/* All of it, with the right digest, or an error that says what is damaged. `to` is empty. */
int blob_get(struct vault *v, const char *space, const char *kind, const char *digest,
             struct buf *to, struct err *e);
/* Stores it unless the store has it already, and reads it back either way. */
int blob_put(struct vault *v, const char *space, const char *kind, const void *p, size_t n,
             char digest[SHA256_HEX], struct err *e);

/* ---- a helper in a temporary sandbox ---- */

struct temp_ops {
    void (*on_started)(void *arg);
    void (*on_data)(void *arg, const char *p, size_t n); /* of stdout */
    void (*on_drain)(void *arg);
    void (*on_done)(void *arg, const struct err *e); /* the last one */
};
struct temp { /* embedded in its user; zeroed memory is none */
    struct engine *g;
    char id[KEEPER_ID_MAX + 1];
    struct talk_peer peer;
    struct process_stream *stream;
    struct buf words;
    const struct temp_ops *ops;
    void *arg;
};
/* Takes the sandbox of this id; -1 if the keeper's answer is none. */
int temp_take(struct temp *t, struct engine *g, const char *id, struct err *e);
/* Runs cove-helper with these arguments (strv) as its root. */
void temp_run(struct temp *t, const struct wire_strv *argv, bool input, const struct temp_ops *ops,
              void *arg);
size_t temp_feed(struct temp *t, const void *p, size_t n, bool last);
void temp_pause(struct temp *t, bool paused);
/* No callback follows. */
void temp_leave(struct temp *t);
/* temp_leave(), and destroys the sandbox. */
void temp_end(struct temp *t);
/* At the end of the engine: the keeper destroys it. */
void temp_drop(struct temp *t);

/* ---- the parts ---- */

void packs_kick(struct archives *as);
void packs_free(struct archives *as);
void restores_free(struct archives *as);
void collect_begin(struct space *sp);
void collects_free(struct archives *as);
void adopts_free(struct archives *as);

#endif
