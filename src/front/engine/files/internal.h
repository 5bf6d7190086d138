/* internal.h - what the files of this folder share. */
#ifndef FRONT_ENGINE_FILES_INTERNAL_H
#define FRONT_ENGINE_FILES_INTERNAL_H

#include <assert.h>

#include "front/engine/copy.h"
#include "front/engine/file.h"
#include "front/engine/internal.h"
#include "front/engine/work.h"
#include "wire/file.h"
#include "wire/init.h"

/* What file_cancel() and file_pause() are for each kind of question; its first member. */
struct file_call {
    void (*cancel)(struct file_call *c);
    void (*pause)(struct file_call *c, bool paused); /* or NULL */
};

/* A caller's words, checked, with the sandbox's defaults, the path absolute or with ~;
 * kept for as long as the question lasts. */
struct file_kept {
    struct engine *g;
    char key[ENGINE_KEY_MAX + 1], sandbox[KEEPER_ID_MAX + 1], user[INIT_USER_MAX + 1];
    char path[FILE_PATH_MAX + 1];
    bool as_root;
};

/* The box, until the next turn of the loop; or NULL: ERR_INVALID, or why the sandbox
 * cannot be asked. */
struct box *file_keep(const struct file_at *at, struct file_kept *ret, struct err *e);
struct file_at file_kept_at(const struct file_kept *k); /* points into it, as... */
static inline struct ref file_kept_ref(const struct file_kept *k)
{
    return (struct ref){k->g, k->key, k->sandbox};
}

/* From messages to the types of file.h, by the tables of wire/. */
static inline struct file_info file_info_of(const struct init_file *m)
{
    return (struct file_info){FILE_STAT_FIELDS(COPY_FIELD, m)};
}
static inline struct file_info file_info_from(const struct file_entry *m)
{
    return (struct file_info){FILE_ENTRY_FIELDS(COPY_FIELD, m)};
}
static inline struct file_match file_match_from(const struct file_line *m)
{
    return (struct file_match){FILE_LINE_FIELDS(COPY_FIELD, m)};
}
static inline struct file_attr_info file_attr_info_from(const struct file_xattr *m)
{
    return (struct file_attr_info){FILE_XATTR_FIELDS(COPY_FIELD, m)};
}
static_assert(ENGINE_PATH_MAX == FILE_PATH_MAX && FILE_CURSOR_MAX == FILE_AFTER_MAX, "");
static_assert(FILE_MODE_KEEP == FILE_MODE_NONE && ENGINE_USER_MAX == FILE_NAME_MAX, "");
static_assert((int)FILE_MATCH_BEFORE == FILE_LINE_BEFORE &&
                  (int)FILE_MATCH_LINE == FILE_LINE_MATCH &&
                  (int)FILE_MATCH_AFTER == FILE_LINE_AFTER,
              "");

/* A call of cove-helper about a path; what it prints is told to `ops` as it is. `input`:
 * work_feed() follows. NULL if there are too many arguments. */
struct work *file_helper(const struct file_kept *k, const char *kind, const char *const *args,
                         bool input, const struct work_ops *ops, void *arg, struct err *e);

/* A file_work() that could not even begin: on_done comes from the loop. */
struct file_call *file_work_failed(struct engine *g, const struct err *e,
                                   const struct file_work_ops *ops, void *arg);

/* Reading records (wire/file.h) out of what a helper prints. */
struct file_records {
    struct buf in;
    bool ended;
    struct file_result done; /* once ended... */
    char after[FILE_AFTER_MAX + 1];
};
void file_records_init(struct file_records *r);
void file_records_free(struct file_records *r);
union file_record {
#define X(kind, s, number, fields) struct s s;
    FILE_MSGS(X)
#undef X
};
/* Takes bytes, calls `each` for every record but `done`. -1: it is nonsense, or `each`
 * said so. */
int file_records_take(struct file_records *r, const char *p, size_t n,
                      int (*each)(void *arg, uint16_t type, const union file_record *m,
                                  struct err *e),
                      void *arg, struct err *e);

#endif
