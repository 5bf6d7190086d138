/* watch.h - what happens in a directory of a sandbox, told to whoever reads.
 *
 * A watch is a process of its own inside (helper/watch.h), in the caller's identity;
 * its output is the log of what happened and the position in it the cursor. So it
 * outlives readers and the front: whoever comes back with the last position it saw
 * misses nothing. Of a log that grew beyond WATCH_LOG in the meantime the beginning is
 * gone, which is told as an overflow. A watch that nobody reads ends after `keep_ms`.
 * How many there may be is init's to say (PROCS_OWN_MAX, and what the kernel gives the
 * user): ERR_LIMIT. */
#ifndef FRONT_ENGINE_WATCH_H
#define FRONT_ENGINE_WATCH_H

#include "front/engine/process.h"

#define WATCH_LOG (256u << 10)  /* bytes of the log that are kept */
#define WATCH_GLOBS_MAX 100u    /* includes and excludes together */
#define WATCH_GLOB_MAX 1024u    /* bytes of one */
#define WATCH_WINDOW_MAX 60000u /* ms */
#define WATCH_LINE_MAX 32768u   /* of the log: two paths, each byte as three */
#define WATCH_ID_LEN 16u

enum watch_kind {
    WATCH_CREATE,
    WATCH_MODIFY,
    WATCH_DELETE,
    WATCH_ATTRIB,
    WATCH_MOVE,     /* from `from` */
    WATCH_OVERFLOW, /* something was lost: list again. Why is in `path` */
    WATCH_END,      /* the directory itself is gone. How is in `path` */
    WATCH_READY,    /* nothing is missed from here on */
    WATCH_KIND_COUNT
};
const char *watch_kind_name(enum watch_kind k); /* "create", ... */

struct watch_event {
    enum watch_kind kind;
    bool dir;
    const char *path, *from; /* relative to the directory, any bytes but NUL; from: or NULL */
    uint64_t next;           /* the cursor behind it */
};

struct watch_opts { /* all borrowed for the call */
    const char *path;
    const char *user; /* as in struct process_opts */
    bool recursive;
    const char *const *include, *const *exclude; /* patterns as helper/glob.h has them */
    size_t ninclude, nexclude;
    unsigned window_ms; /* the same thing again within this time is told once */
    uint64_t keep_ms;
};

/* All come from the loop; every pointer is borrowed for the call. */
struct watch_ops {
    void (*on_event)(void *arg, const struct watch_event *ev);
    /* The last one; the handle is gone. `next` is the cursor to go on from. NULL: the end
     * was told or, of a look, that is all there is now. */
    void (*on_done)(void *arg, uint64_t next, const struct err *e);
};

struct watch; /* one reader */
/* A new one, and its first reader: the first event is WATCH_READY. */
struct watch *watch_open(struct ref ref, const struct watch_opts *o, const struct watch_ops *ops,
                         void *arg);
/* One that is there, from a cursor on (0: from its beginning, READY too). ERR_NOT_FOUND
 * when it has ended. Without `follow` only what is there now. */
struct watch *watch_read(struct ref ref, const char *id, uint64_t since, bool follow,
                         const struct watch_ops *ops, void *arg);
const char *watch_id(const struct watch *w);
void watch_pause(struct watch *w, bool paused);
/* Reads no more; the watch goes on. No callback follows. */
void watch_close(struct watch *w);

void watch_delete(struct ref ref, const char *id, engine_done_cb *cb, void *arg);

struct watch_info {
    const char *id, *path, *user;
    bool recursive;
    uint64_t created_ms;
};
void watch_list(struct ref ref, void (*each)(void *arg, const struct watch_info *i),
                engine_done_cb *cb, void *arg);

/* One line of the log, without its end; decoded in place. -1: it is none. */
int watch_line(char *line, struct watch_event *ret);

#endif
