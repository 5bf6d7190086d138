/* file.h - files in a sandbox, by the paths and with the rights of somebody inside.
 *
 * What is short is done by init, and what is long, or on another mount than the root, by
 * cove-helper as a child of init; what they say is not trusted. Large files are read
 * through an fd (fdpass.h). Nothing of a file that is being written is visible before
 * all of it is there, and what was being written when this daemon died is either whole
 * or was never there. All callbacks come from the loop. */
#ifndef FRONT_ENGINE_FILE_H
#define FRONT_ENGINE_FILE_H

#include "front/engine/engine.h"

#define FILE_STREAM_MAX (1u << 30) /* bytes of a file that does not say its size: of procfs */

#define FILE_CURSOR_MAX (ENGINE_PATH_MAX + 32u) /* bytes of `after` of a page */
#define FILE_MODE_KEEP 0x10000u                 /* where a mode may be given and is not */

/* What init and cove-helper say, checked for its bounds only; borrowed for the call. Paths and
 * names are bytes without NUL and need not be UTF-8. As in process.h, fields have the names of
 * wire/file.h. */
struct file_info {
    const char *path, *target, *owner, *group; /* target: of a symbolic link */
    uint32_t mode, uid, gid;
    uint64_t size, ino, nlink, mtime_ns, ctime_ns;
};
enum file_match_kind { FILE_MATCH_BEFORE, FILE_MATCH_LINE, FILE_MATCH_AFTER };
struct file_match { /* a line that matched a search, or one beside it */
    const char *path;
    uint32_t kind; /* enum file_match_kind */
    uint64_t line, column;
    struct engine_bytes text;
    uint32_t cut; /* text is only its beginning */
};
struct file_attr_info {
    const char *name;
    struct engine_bytes value;
};
struct file_result {
    uint64_t count, bytes;
    uint32_t more;     /* a limit was reached... */
    const char *after; /* ...and here to go on */
};

/* Which file, and as whom. All borrowed for the call. */
struct file_at {
    struct ref ref;
    const char *path; /* absolute; relative to where commands start; or ~ and below */
    const char *user; /* NULL: the sandbox's default; a name, or uid, or uid:gid */
    bool as_root;     /* with root's power; what is made belongs to the user */
};

struct file_call; /* one question; not to be used after its last callback */
/* No callback follows. NULL is fine. */
void file_cancel(struct file_call *c);
/* Back-pressure on what comes as a stream. */
void file_pause(struct file_call *c, bool paused);

/* `f` is borrowed for the call; NULL on failure. */
typedef void file_entry_cb(void *arg, const struct file_info *f, const struct err *e);

struct file_call *file_stat(const struct file_at *at, bool follow, file_entry_cb *cb, void *arg);

/* ---- reading ---- */

/* How the bytes of a file come: at once, as an fd, or (neither) through on_data. */
struct file_content {
    const struct file_info *entry; /* NULL for a stream: nothing is sure of it beforehand */
    const char *data;              /* entry->size bytes, borrowed; or NULL */
    int fd;                        /* the callee's, to be closed with fd_close(); or -1 */
};

/* Exactly one of on_content, with data or an fd, and on_done is the last. */
struct file_read_ops {
    void (*on_content)(void *arg, const struct file_content *c);
    void (*on_data)(void *arg, const char *p, size_t n); /* of a stream */
    void (*on_done)(void *arg, const struct err *e);     /* of a stream, or it cannot be read */
};

struct file_call *file_read(const struct file_at *at, const struct file_read_ops *ops, void *arg);

/* ---- writing ---- */

struct file_write_opts {      /* all borrowed for the call */
    uint32_t mode;            /* FILE_MODE_KEEP: as it is, or 0644 */
    const char *owner;        /* NULL: as it is, or the user */
    const char *match;        /* what If-Match says, or NULL */
    const char *xattr_prefix; /* NULL; or what it has of these becomes... */
    const char *xattrs;       /* ...lines as in base/xattr.h; NULL: none */
    bool append, atomic, parents, only_new, gzip;
};

struct file_write;
struct file_write_ops {
    void (*on_drain)(void *arg); /* more bytes may come */
    file_entry_cb *on_done;      /* the last one; the file as it is now */
};

struct file_write *file_write(const struct file_at *at, const struct file_write_opts *o,
                              const struct file_write_ops *ops, void *arg);
/* Returns how much waits here: above FILE_FEED_HIGH wait for on_drain. `last`: that was
 * all, and now it is written. */
#define FILE_FEED_HIGH (256u << 10)
size_t file_feed(struct file_write *w, const void *p, size_t n, bool last);
/* Nothing will have been written, unless `last` was given. No callback follows. */
void file_write_cancel(struct file_write *w);

/* ---- work on files and trees, by cove-helper ---- */

struct file_work_ops { /* all but on_done may be NULL: such a record is then nonsense */
    void (*on_entry)(void *arg, const struct file_info *f);
    void (*on_line)(void *arg, const struct file_match *l);
    void (*on_xattr)(void *arg, const struct file_attr_info *x);
    void (*on_done)(void *arg, const struct file_result *d, const struct err *e);
};

#define FILE_WORK_ARGS_MAX 200
/* `kind` and `args` as helper/files.h has them, without the path; NULL ends. What
 * follows are the kinds there are. */
struct file_call *file_work(const struct file_at *at, const char *kind, const char *const *args,
                            const struct file_work_ops *ops, void *arg);

enum file_sort { FILE_SORT_NAME, FILE_SORT_SIZE, FILE_SORT_MODIFIED };
struct file_list_opts {
    unsigned depth; /* 1: only what is in it */
    bool hidden, reverse;
    enum file_sort sort;
    uint64_t limit;
    const char *after; /* `after` of the page before, or NULL */
};
/* Entries, then done: `more` and `after` say whether and where to go on. */
struct file_call *file_list(const struct file_at *at, const struct file_list_opts *o,
                            const struct file_work_ops *ops, void *arg);

struct file_search_opts {
    const char *name;         /* a glob over names, or with a slash over paths; or NULL */
    const char *text, *regex; /* one of them, or neither: only names */
    bool nocase, hidden;
    unsigned depth, context, timeout_s; /* depth 0: all */
    uint64_t limit;
};
/* Entries or lines, then done. */
struct file_call *file_search(const struct file_at *at, const struct file_search_opts *o,
                              const struct file_work_ops *ops, void *arg);

/* These tell of one entry, the file as it is then. ERR_CONFLICT if it is there already. */
struct file_call *file_mkdir(const struct file_at *at, bool parents, uint32_t mode,
                             const struct file_work_ops *ops, void *arg);
struct file_call *file_symlink(const struct file_at *at, const char *target, bool parents,
                               bool overwrite, const struct file_work_ops *ops, void *arg);
struct file_to {
    const char *path; /* as in file_at */
    bool overwrite, parents;
};
struct file_call *file_move(const struct file_at *at, const struct file_to *to,
                            const struct file_work_ops *ops, void *arg);
struct file_call *file_copy(const struct file_at *at, const struct file_to *to,
                            const struct file_work_ops *ops, void *arg);
struct file_call *file_chmod(const struct file_at *at, uint32_t mode, bool recursive,
                             const struct file_work_ops *ops, void *arg);
struct file_call *file_chown(const struct file_at *at, const char *owner, bool recursive,
                             const struct file_work_ops *ops, void *arg);
/* ERR_CONFLICT for a directory that is not empty, unless recursive. done: how many. */
struct file_call *file_remove(const struct file_at *at, bool recursive,
                              const struct file_work_ops *ops, void *arg);

struct file_attr { /* value NULL: remove it */
    const char *name, *value;
};
/* Sets, then tells of all that begin with the prefix, which begins with user. */
struct file_call *file_xattrs(const struct file_at *at, const char *prefix,
                              const struct file_attr *set, size_t nset,
                              const struct file_work_ops *ops, void *arg);

#endif
