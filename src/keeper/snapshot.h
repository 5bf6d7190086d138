/* snapshot.h - the files of a sandbox as they were at one moment.
 *
 *   DIR/snapshots/ID    the record, sealed (sealed.h), and its twin (file.h)
 *   DIR/disk/.snap-ID   the disk at that moment, read-only: its `upper` is one more layer on
 *                       the layers of the sandbox
 *
 * A snapshot is a version that sandboxes and further snapshots use as their lower layers; where a
 * record names a version it is "@ID". Nothing is copied: the layer is stored once for all its
 * users. It stays while a client wants it or something uses it.
 *
 * Making one: the disk, then the record, then the answer. Deleting one (snapshot_delete): the
 * record says that no client wants it; when nothing uses it the record goes, then the disk. What a
 * kill leaves in between is removed at the next start. */
#ifndef KEEPER_SNAPSHOT_H
#define KEEPER_SNAPSHOT_H

#include "keeper/host.h"
#include "wire/image.h"

struct news;

/* Snapshots on snapshots: a sandbox made from one that is as deep as this gets a writable copy of
 * its disk instead, on the layers below it. */
#define SNAPSHOT_STACK_MAX 16u
#define ROOT_LAYERS_MAX (IMAGE_LAYERS_MAX + SNAPSHOT_STACK_MAX)

enum snapshot_flags {
    SNAPSHOT_WANTED = 1, /* a client wants it; else it stays only while something uses it */
    SNAPSHOT_BARE = 2,   /* imported: no disk of its own, only the version below */
    SNAPSHOT_TOLD = 4,   /* a client was told of it, as record.told */
};

struct snapshot_record {
    char id[32];
    char under[64];    /* the version below it */
    char template[64]; /* the template of the sandbox */
    char source[32];   /* the sandbox */
    uint32_t stack;    /* depth: itself and the snapshots below it */
    uint32_t flags;    /* enum snapshot_flags */
    uint64_t bytes, created_ms;
};

struct snapshot {
    struct list link;
    struct snapshot_record rec;
    bool damaged; /* both copies of its record are: only the id is known, nothing is removed */
};

struct snapshots {
    int fd;
    size_t n;
    struct list all;
};

int snapshot_open(struct keeper *k, struct err *e);
/* One that a client wants, or NULL. */
struct snapshot *snapshot_find(struct keeper *k, const char *id);
/* Also one that stays only because something uses it. */
struct snapshot *snapshot_find_any(struct keeper *k, const char *id);

bool snapshot_is_version(const char *version);
/* Its name as a version. */
void snapshot_version(const struct snapshot *s, char out[64]);
/* As template_layers(). */
int snapshot_layers(struct keeper *k, const char *version, int fds[ROOT_LAYERS_MAX], struct err *e);
/* The version of a template at the bottom of a version. */
const char *snapshot_bottom(struct keeper *k, const char *version);
/* The name of its disk. */
void snapshot_disk(const char *id, char *out, size_t room);

/* Makes the snapshot the lower layers of a new sandbox. */
void snapshot_use(const struct snapshot *s, struct sandbox *sb);

/* The number of snapshots directly on a version. */
unsigned snapshot_users(struct keeper *k, const char *version);
/* Bytes of a sandbox's disk that its snapshots hold: they do not count for it. */
uint64_t snapshot_held(struct keeper *k, const char *sandbox);

/* snapshot_take.c: the reaction to EV_SNAPSHOT (life.h). */
int snapshot_begin(struct sandbox *sb, const struct news *n, struct err *e);
/* For snapshot_take.c. Durable when it returns. */
int snapshot_keep(struct keeper *k, struct snapshot *s, struct err *e);

/* Makes a snapshot of version `id`, which was imported without a name. Durable when it returns. */
int snapshot_adopt(struct keeper *k, const char *id, uint64_t bytes, struct err *e);

/* A client was told of it. */
int snapshot_told(struct keeper *k, const char *id, struct err *e);
/* No client wants it any more: deletes it, when nothing uses it. */
int snapshot_delete(struct keeper *k, const char *id, struct err *e);
/* A sandbox or snapshot that used `version` is gone: deletes the snapshot if no client wants it. */
void snapshot_released(struct keeper *k, const char *version);
/* At start: loads snapshots without a record as damaged, and deletes those that nothing uses. */
void snapshot_sweep(struct keeper *k);

void snapshot_message(const struct snapshot *s, struct keeper_snap *ret); /* points into it */

#endif
