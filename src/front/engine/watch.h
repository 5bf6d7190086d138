/* watch.h - watches: changes in a directory of a sandbox.
 *
 * A watch is a process inside (helper/watch), run as the given user; its output is the log of
 * changes, and a position in the log is a cursor. So it outlives readers and the front: a reader
 * that returns with its last cursor misses nothing. If the log grew beyond WATCH_LOG meanwhile,
 * its beginning is lost and an overflow is reported. A watch without readers ends after `keep_ms`.
 * Init limits their number (PROCS_OWN_MAX, and the kernel's limits): ERR_LIMIT. */
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
    WATCH_OVERFLOW, /* events were lost: list again. The reason is in `path` */
    WATCH_END,      /* the directory was removed. How is in `path` */
    WATCH_READY,    /* later changes are not missed */
    WATCH_KIND_COUNT
};
const char *watch_kind_name(enum watch_kind k); /* "create", ... */

struct watch_event {
    enum watch_kind kind;
    bool dir;
    const char *path, *from; /* relative to the directory, any bytes but NUL; from: or NULL */
    uint64_t next;           /* the cursor after it */
};

struct watch_opts { /* all borrowed for the call */
    const char *path;
    const char *user; /* as in struct process_opts */
    bool recursive;
    const char *const *include, *const *exclude; /* patterns as in helper/tree/glob.h */
    size_t ninclude, nexclude;
    unsigned window_ms; /* repeated events of a path within this time are reported once */
    uint64_t keep_ms;
};

/* All come from the loop; every pointer is borrowed for the call. */
struct watch_ops {
    void (*on_event)(void *arg, const struct watch_event *ev);
    /* The last callback; the handle is freed. `next` is the cursor to continue from. NULL: the
     * end was reported or, without follow, all events were. */
    void (*on_done)(void *arg, uint64_t next, const struct err *e);
};

struct watch; /* one reader */
/* A new watch and its first reader: the first event is WATCH_READY. */
struct watch *watch_open(struct ref ref, const struct watch_opts *o, const struct watch_ops *ops,
                         void *arg);
/* A reader of an existing watch, from a cursor on (0: from its beginning, with READY).
 * ERR_NOT_FOUND if it has ended. Without `follow` only the events so far. */
struct watch *watch_read(struct ref ref, const char *id, uint64_t since, bool follow,
                         const struct watch_ops *ops, void *arg);
const char *watch_id(const struct watch *w);
void watch_pause(struct watch *w, bool paused);
/* The watch continues. No callback follows. */
void watch_close(struct watch *w);

void watch_delete(struct ref ref, const char *id, engine_done_cb *cb, void *arg);

struct watch_info {
    const char *id, *path, *user;
    bool recursive;
    uint64_t created_ms;
};
void watch_list(struct ref ref, void (*each)(void *arg, const struct watch_info *i),
                engine_done_cb *cb, void *arg);

/* One line of the log, without its newline; decoded in place. -1: it is invalid. */
int watch_line(char *line, struct watch_event *ret);

#endif
