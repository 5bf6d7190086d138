/* file.h - files in a sandbox, by their paths and with the permissions of a user inside.
 *
 * Init does short operations; cove-helper, as a child of init, does long ones and those on other
 * mounts than the root. Their answers are not trusted. Large files are read through an fd
 * (fdpass.h). A file becomes visible only when all of it is written, also if this daemon dies
 * meanwhile. All callbacks come from the loop. */
#ifndef FRONT_ENGINE_FILE_H
#define FRONT_ENGINE_FILE_H

#include "front/engine/engine.h"

#define FILE_STREAM_MAX (1u << 30) /* bytes of a file without a size, as in procfs */

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
    const char *path; /* absolute, relative to the default working directory, or below ~ */
    const char *user; /* NULL: the sandbox's default; a name, uid, or uid:gid */
    bool as_root;     /* with root's permissions; new files belong to the user */
};

struct file_call; /* one call; must not be used after its last callback */
/* No callback follows. NULL is fine. */
void file_cancel(struct file_call *c);
/* Back-pressure on a stream. */
void file_pause(struct file_call *c, bool paused);

/* `f` is borrowed for the call; NULL on failure. */
typedef void file_entry_cb(void *arg, const struct file_info *f, const struct err *e);

struct file_call *file_stat(const struct file_at *at, bool follow, file_entry_cb *cb, void *arg);

/* ---- reading ---- */

/* The bytes of a file: at once, as an fd, or (neither) through on_data. */
struct file_content {
    const struct file_info *entry; /* NULL for a stream: unknown beforehand */
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
    uint32_t mode;            /* FILE_MODE_KEEP: unchanged, or 0644 */
    const char *owner;        /* NULL: unchanged, or the user */
    const char *match;        /* what If-Match says, or NULL */
    const char *xattr_prefix; /* NULL; or replace all attributes with this prefix... */
    const char *xattrs;       /* ...by these lines, as in base/xattr.h; NULL: none */
    bool append, atomic, parents, only_new, gzip;
};

struct file_write;
struct file_write_ops {
    void (*on_drain)(void *arg); /* more bytes may be fed */
    file_entry_cb *on_done;      /* the last callback, with the file as written */
};

struct file_write *file_write(const struct file_at *at, const struct file_write_opts *o,
                              const struct file_write_ops *ops, void *arg);
/* Returns the number of queued bytes: above FILE_FEED_HIGH wait for on_drain. `last`: no more bytes
 * follow; the file is written. */
#define FILE_FEED_HIGH (256u << 10)
size_t file_feed(struct file_write *w, const void *p, size_t n, bool last);
/* Nothing is written, unless `last` was given. No callback follows. */
void file_write_cancel(struct file_write *w);

/* ---- work on files and trees, by cove-helper ---- */

struct file_work_ops { /* all but on_done may be NULL: such a record is then an error */
    void (*on_entry)(void *arg, const struct file_info *f);
    void (*on_line)(void *arg, const struct file_match *l);
    void (*on_xattr)(void *arg, const struct file_attr_info *x);
    void (*on_done)(void *arg, const struct file_result *d, const struct err *e);
};

#define FILE_WORK_ARGS_MAX 200
/* `kind` and `args` as in helper/files.h, without the path; NULL ends. The functions below call
 * this. */
struct file_call *file_work(const struct file_at *at, const char *kind, const char *const *args,
                            const struct file_work_ops *ops, void *arg);

enum file_sort { FILE_SORT_NAME, FILE_SORT_SIZE, FILE_SORT_MODIFIED };
struct file_list_opts {
    unsigned depth; /* 1: the directory only */
    bool hidden, reverse;
    enum file_sort sort;
    uint64_t limit;
    const char *after; /* `after` of the previous page, or NULL */
};
/* Entries, then the result: `more` and `after` say whether and where to continue. */
struct file_call *file_list(const struct file_at *at, const struct file_list_opts *o,
                            const struct file_work_ops *ops, void *arg);

struct file_search_opts {
    const char *name;         /* a glob over names, or with a slash over paths; or NULL */
    const char *text, *regex; /* at most one of them; neither: search names only */
    bool nocase, hidden;
    unsigned depth, context, timeout_s; /* depth 0: all */
    uint64_t limit;
};
/* Entries or lines, then the result. */
struct file_call *file_search(const struct file_at *at, const struct file_search_opts *o,
                              const struct file_work_ops *ops, void *arg);

/* These report one entry, the resulting file. ERR_CONFLICT if it exists already. */
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
/* ERR_CONFLICT for a directory that is not empty, unless recursive. The result has the count. */
struct file_call *file_remove(const struct file_at *at, bool recursive,
                              const struct file_work_ops *ops, void *arg);

struct file_attr { /* value NULL: remove it */
    const char *name, *value;
};
/* Sets attributes, then reports all with the prefix, which must begin with `user.`. */
struct file_call *file_xattrs(const struct file_at *at, const char *prefix,
                              const struct file_attr *set, size_t nset,
                              const struct file_work_ops *ops, void *arg);

#endif
