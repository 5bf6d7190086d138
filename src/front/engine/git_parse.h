/* git_parse.h - parsers of git's machine formats, fed as the output comes.
 *
 * The git and the repository are the tenant's: no byte is trusted. Output that is too long or
 * invalid ends the parser with ERR_CONFLICT, and nothing grows beyond its limit. Pieces may end
 * anywhere. */
#ifndef FRONT_ENGINE_GIT_PARSE_H
#define FRONT_ENGINE_GIT_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define GIT_TOKEN_MAX (64u << 10) /* bytes between two NULs: a path, a commit's message */
#define GIT_OID_MAX 64u           /* characters: SHA-256 */
#define GIT_NAME_MAX 255u         /* bytes of a branch's name; the rest is cut */

/* Pieces between NULs. */
struct git_tokens {
    struct buf piece;
    int (*take)(void *arg, char *token, size_t n, struct err *e); /* 1: the rest is text */
    int (*text)(void *arg, const char *p, size_t n, struct err *e);
    void *arg;
    bool is_text;
};
void git_tokens_init(struct git_tokens *t, void *arg);
void git_tokens_free(struct git_tokens *t);
int git_tokens_feed(struct git_tokens *t, const char *p, size_t n, struct err *e);

/* ---- status: --porcelain=v2 -z --branch ---- */

enum git_kind {
    GIT_CHANGED,
    GIT_RENAMED,
    GIT_UNMERGED,
    GIT_UNTRACKED,
    GIT_IGNORED,
    GIT_KIND_COUNT
};
const char *git_kind_name(enum git_kind k);

struct git_entry {
    enum git_kind kind;
    char index, worktree;    /* 'M', 'A', 'D', 'R', 'C', 'T', 'U' or '.' */
    const char *path, *from; /* any bytes but NUL; from: of a rename or copy, or NULL */
    unsigned score;          /* of those, in percent */
    bool submodule, sub_commit, sub_modified, sub_untracked;
};

struct git_status {
    struct git_tokens in;
    void (*each)(void *arg, const struct git_entry *en);
    void *arg;
    char commit[GIT_OID_MAX + 1];                            /* "": unborn */
    char head[GIT_NAME_MAX + 1], upstream[GIT_NAME_MAX + 1]; /* head "": detached */
    uint64_t ahead, behind;
    bool has_upstream;
    struct git_entry half; /* a rename that waits for what it was */
    struct buf half_path;
    bool waiting;
};
void git_status_init(struct git_status *s, void (*each)(void *arg, const struct git_entry *en),
                     void *arg);
void git_status_free(struct git_status *s);
int git_status_end(struct git_status *s, struct err *e); /* nothing half may be left */

/* ---- log: as GIT_LOG_FORMAT says, -z ---- */

#define GIT_LOG_FORMAT "--format=%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%D%x00%B"
enum git_log_field {
    GIT_LOG_COMMIT,
    GIT_LOG_PARENTS, /* with blanks between them */
    GIT_LOG_AUTHOR,
    GIT_LOG_AUTHOR_EMAIL,
    GIT_LOG_AUTHORED, /* seconds since 1970 */
    GIT_LOG_COMMITTER,
    GIT_LOG_COMMITTER_EMAIL,
    GIT_LOG_COMMITTED,
    GIT_LOG_REFS,
    GIT_LOG_MESSAGE,
    GIT_LOG_FIELDS
};
struct git_log {
    struct git_tokens in;
    /* Each field ends with a NUL; lengths are as they were. */
    void (*each)(void *arg, const char *const field[GIT_LOG_FIELDS]);
    void *arg;
    struct buf fields;
    size_t at[GIT_LOG_FIELDS];
    unsigned n;
};
void git_log_init(struct git_log *l,
                  void (*each)(void *arg, const char *const field[GIT_LOG_FIELDS]), void *arg);
void git_log_free(struct git_log *l);

/* ---- diff: --raw --numstat -p -z ---- */

#define GIT_FILES_MAX 10000u /* of one diff; more are counted and not shown */

struct git_file {
    char status; /* 'A', 'D', 'M', 'R', 'C', 'T' or 'U' */
    bool conflict, binary, counted, truncated;
    unsigned score;
    char old_mode[8], new_mode[8];
    uint64_t added, deleted;
    char *path, *from; /* belong to the file; from: or NULL */
    unsigned sections; /* of the patch that are still to come */
    struct buf patch;
};

struct git_diff {
    struct git_tokens in;
    size_t file_max, total_max; /* bytes of patches: of each, and of all */
    size_t total;
    bool more; /* files that are not shown */
    bool full; /* total_max is reached: nothing that comes is kept */
    struct git_file *files;
    size_t n, room;
    /* What is being read. */
    enum git_diff_want {
        GIT_WANT_ANY,
        GIT_WANT_PATH,
        GIT_WANT_FROM,
        GIT_WANT_COUNT_FROM,
        GIT_WANT_COUNT_PATH
    } want;
    struct git_file next; /* until its path is there */
    size_t count_at;      /* files before it have their numbers */
    size_t text_at;       /* files before it have their patch */
    bool in_section;
    char line[8]; /* how the line begins */
    size_t nline;
    bool line_known;
};
void git_diff_init(struct git_diff *d, size_t file_max, size_t total_max);
void git_diff_free(struct git_diff *d);
int git_diff_end(struct git_diff *d, struct err *e);

/* ---- words ---- */

/* A line of --progress: "Receiving objects:  45% (450/1000), ...". False: it is none.
 * The text points into the line. */
bool git_progress(char *line, const char **text, uint64_t *done, uint64_t *total);
/* Of what git said on stderr: which kind of failure it is and its last words, one line,
 * UTF-8, without `secret` (or NULL). */
void git_words(const char *said, size_t n, const char *secret, struct err *e);

#endif
