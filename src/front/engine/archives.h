/* archives.h - the files of a sandbox, put away in a store and brought back in a new sandbox.
 *
 * An archive holds everything that a sandbox wrote: what its root differs in from its template,
 * $HOME and installed packages included. It is packed from a snapshot, never from moving files, and
 * is reported only when every byte of it was read back from the store and verified. It belongs to a
 * key and has an owner, a name that the caller chooses; of each owner the newest ARCHIVE_KEPT are
 * kept, the others are collected.
 *
 * In the store an archive is a manifest (JSON, named by its SHA-256) and chunks (tar.zst, named by
 * theirs). Chunks of one key are stored once; keys share nothing. Damage is found by the digests: a
 * damaged archive is refused, never restored in part. */
#ifndef FRONT_ENGINE_ARCHIVES_H
#define FRONT_ENGINE_ARCHIVES_H

#include "front/engine/engine.h"

#define ARCHIVE_KEPT 2u               /* of one owner */
#define ARCHIVE_OWNER_MAX 128u        /* bytes of the name of an owner */
#define ARCHIVE_SPEC_MAX (128u << 10) /* bytes of the caller's JSON in a manifest */
#define ARCHIVE_DIGEST 64u            /* characters: SHA-256 in hex */
#define ARCHIVE_SPACE 26u             /* characters of the name of a key's part of the store */
#define ARCHIVE_PUTS_MAX 2u           /* at the same time; more of them wait */
#define ARCHIVE_RESTORES_MAX 4u       /* likewise */
#define ARCHIVE_WAITING_MAX 1000u     /* that wait; more are answered ERR_UNAVAILABLE */
#define ARCHIVE_CHUNKS_MAX 65536u     /* of one archive */

struct archive {
    const char *key, *owner;
    const char *digest;      /* of its manifest: its id */
    const char *space;       /* part of the store that it is in */
    const char *template;    /* of the sandbox */
    const char *base;        /* digest of the list of files of that template */
    uint64_t entries, bytes; /* files packed and their bytes */
    uint64_t stored;         /* bytes of its chunks; those that it shares are counted too */
    uint64_t created_ms;
};

/* `a` is borrowed for the call; NULL on failure. */
typedef void archive_cb(void *arg, const struct archive *a, const struct err *e);

struct archive_opts { /* all borrowed for the call */
    const char *owner;
    const char *spec; /* a JSON object for the caller that restores it; or NULL */
};
/* Packs a sandbox that runs, is paused or is stopped, and is unchanged by this. ERR_LIMIT above the
 * quota; ERR_REMOTE or ERR_DISK_FULL if the store fails: earlier archives are still there. */
void engine_archive(struct ref sandbox, const struct archive_opts *o, archive_cb *cb, void *arg);

/* `digest` NULL: the newest of that owner. NULL if there is none. Points into the engine until the
 * next turn of the loop. */
const struct archive *engine_archive_get(struct engine *g, const char *key, const char *owner,
                                         const char *digest);
/* Newest first. */
void engine_archives(struct engine *g, const char *key, const char *owner,
                     void (*each)(void *arg, const struct archive *a), void *arg);

struct archive_restore { /* all borrowed for the call */
    const char *owner;
    const char *digest; /* NULL: the newest */
    bool any_base;      /* also if the template of that name has other files than it had */
    const struct create_opts *create; /* of the sandbox; `template` and `snapshot` are not used */
};
/* A new sandbox with the files of the archive, which is there when all of them are: a failure, of
 * this process too, leaves nothing of it. ERR_NOT_FOUND: no such archive, or no template of that
 * name; ERR_CONFLICT: the template differs; ERR_INTERNAL: the archive is damaged. */
void engine_archive_restore(struct engine *g, const char *key, const struct archive_restore *o,
                            engine_sandbox_cb *cb, void *arg);

/* All of that owner, or with `digest` one of them. Durable when it answers; succeeds if there is
 * none. Chunks that no archive uses any more are collected later. */
void engine_archives_delete(struct engine *g, const char *key, const char *owner,
                            const char *digest, engine_done_cb *cb, void *arg);

/* Takes an archive that is in the store, but was made by another server (or under another name),
 * for this owner. Its space and digest cannot be guessed; knowing both is the right to read it. One
 * in the space of another key of this server is ERR_NOT_FOUND. */
void engine_archive_adopt(struct engine *g, const char *key, const char *owner, const char *space,
                          const char *digest, archive_cb *cb, void *arg);

/* Where archives are kept, for people: "directory" or "s3". */
const char *engine_archive_store(const struct engine *g);

#endif
