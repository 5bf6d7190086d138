/* snapshot.h - a sandbox's files as they were at one moment, kept.
 *
 *   DIR/snapshots/ID    the record, sealed (sealed.h), and its twin (file.h)
 *   DIR/disk/.snap-ID   the disk as it was, read-only: its `upper` is one more layer on
 *                       what the sandbox stood on
 *
 * A snapshot is a version that sandboxes and further snapshots stand on; where a
 * record names a version it is "@ID". Nothing is copied for them, and however many
 * there are, the layer is stored once. It stays while somebody wants it or
 * something stands on it.
 *
 * Order of making: the disk, then the record, then the answer. Order of removing:
 * the record says that nobody wants it; when nothing stands on it the record goes,
 * then the disk. What a kill leaves in between is swept at the next start. */
#ifndef KEEPER_SNAPSHOT_H
#define KEEPER_SNAPSHOT_H

#include "keeper/host.h"
#include "wire/image.h"

struct news;

/* Snapshots on snapshots: a sandbox made from one with so many below it gets a
 * writable copy of its disk instead, and stands where that one stands. */
#define SNAPSHOT_STACK_MAX 16u
#define ROOT_LAYERS_MAX (IMAGE_LAYERS_MAX + SNAPSHOT_STACK_MAX)

enum snapshot_flags {
    SNAPSHOT_WANTED = 1, /* by somebody; else it stays only while something stands on it */
    SNAPSHOT_BARE = 2,   /* was imported: no disk of its own, it is just what it stands on */
    SNAPSHOT_TOLD = 4,   /* a client knows of it, as record.told */
};

struct snapshot_record {
    char id[32];
    char under[64];    /* the version that it stands on */
    char template[64]; /* the name that the sandbox was made from */
    char source[32];   /* the sandbox */
    uint32_t stack;    /* snapshots that it is or stands on: 1... */
    uint32_t flags;    /* enum snapshot_flags */
    uint64_t bytes, created_ms;
};

struct snapshot {
    struct list link;
    struct snapshot_record rec;
    bool damaged; /* both copies of its record: only the id is known, and nothing is removed */
};

struct snapshots {
    int fd;
    size_t n;
    struct list all;
};

int snapshot_open(struct keeper *k, struct err *e);
/* One that is wanted, or NULL. */
struct snapshot *snapshot_find(struct keeper *k, const char *id);
/* Also one that is only there because something stands on it. */
struct snapshot *snapshot_any(struct keeper *k, const char *id);

bool snapshot_is_version(const char *version);
/* How a record names it. */
void snapshot_version(const struct snapshot *s, char out[64]);
/* As template_layers(). */
int snapshot_layers(struct keeper *k, const char *version, int fds[ROOT_LAYERS_MAX], struct err *e);
/* The version of a template that it stands on in the end; others are what they are. */
const char *snapshot_bottom(struct keeper *k, const char *version);
/* The name of its disk. */
void snapshot_disk(const char *id, char *out, size_t room);

/* The sandbox, which is about to be made, begins as the snapshot. */
void snapshot_stand(const struct snapshot *s, struct sandbox *sb);

/* Snapshots that stand on a version. */
unsigned snapshot_users(struct keeper *k, const char *version);
/* Bytes of a sandbox's disk that its snapshots hold: they are not its any more. */
uint64_t snapshot_held(struct keeper *k, const char *sandbox);

/* snapshot_take.c: the reaction to EV_SNAPSHOT (life.h). */
int snapshot_begin(struct sandbox *sb, const struct news *n, struct err *e);
/* From there: durable when it returns. */
int snapshot_keep(struct keeper *k, struct snapshot *s, struct err *e);

/* What was imported as version `id` of a template that has no name is a snapshot of that
 * id. Durable when it returns. */
int snapshot_adopt(struct keeper *k, const char *id, uint64_t bytes, struct err *e);

/* A client was told of it. */
int snapshot_told(struct keeper *k, const char *id, struct err *e);
/* Nobody wants it any more. */
int snapshot_forget(struct keeper *k, const char *id, struct err *e);
/* A sandbox that stood on `version` is gone. */
void snapshot_left(struct keeper *k, const char *version);
/* Removes what nothing needs. */
void snapshot_sweep(struct keeper *k);

void snapshot_message(const struct snapshot *s, struct keeper_snap *ret); /* points into it */

#endif
