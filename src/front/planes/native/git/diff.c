/* diff.c - differences between the working tree, the index and commits, and the changes of a
 * commit. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/git/git.h"
#include "mem/mem.h"

#define FILE_BYTES_DEFAULT (256u << 10)
#define FILE_BYTES_MAX (4u << 20)
#define BYTES_DEFAULT (8u << 20)
#define BYTES_MAX (64u << 20)
#define CONTEXT_MAX 1000u

/* ---- answers ---- */

struct file_view {
    struct shape_bytes path, from, patch;
    const char *status, *old_mode, *new_mode;
    bool conflict, binary, truncated;
    uint64_t added, deleted, score;
};
struct diff_view {
    struct shape_bytes files;
    bool truncated, more;
    const struct git_commit_view *commit;
};
/* clang-format off */
static const struct shape_field file_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct file_view, path), "Path relative to the top of the repository."},
    {"from", SHAPE_BYTES, offsetof(struct file_view, from), "Previous path, for a rename or copy.", SHAPE_OMITTED},
    {"status", SHAPE_STR, offsetof(struct file_view, status), "added, deleted, modified, renamed, copied, type_changed or unmerged."},
    {"conflict", SHAPE_BOOL, offsetof(struct file_view, conflict), "Unmerged; the patch is against `ours`.", SHAPE_OMITTED},
    {"binary", SHAPE_BOOL, offsetof(struct file_view, binary), "The file is binary."},
    {"added", SHAPE_U64, offsetof(struct file_view, added), "Number of added lines."},
    {"deleted", SHAPE_U64, offsetof(struct file_view, deleted), "Number of deleted lines."},
    {"score", SHAPE_U64, offsetof(struct file_view, score), "Similarity in percent, for a rename or copy.", SHAPE_OMITTED},
    {"old_mode", SHAPE_STR, offsetof(struct file_view, old_mode), "Old mode in git's form, for example 100644; 000000: the file did not exist."},
    {"new_mode", SHAPE_STR, offsetof(struct file_view, new_mode), "New mode."},
    {"patch", SHAPE_BYTES, offsetof(struct file_view, patch), "Patch in git's format.", SHAPE_OMITTED},
    {"patch_truncated", SHAPE_BOOL, offsetof(struct file_view, truncated), "The patch was truncated.", SHAPE_OMITTED},
};
static SHAPE(file_shape, "GitFile", "A changed file.", file_fields);

#define DIFF_FIELDS \
    {"files", SHAPE_LIST, offsetof(struct diff_view, files), "Changed files, in git's order.", SHAPE_ALWAYS, &file_shape}, \
    {"truncated", SHAPE_BOOL, offsetof(struct diff_view, truncated), "Some patches were truncated or omitted."}, \
    {"more", SHAPE_BOOL, offsetof(struct diff_view, more), "More files changed than are shown."}
static const struct shape_field diff_shape_fields[] = {DIFF_FIELDS};
static SHAPE(diff_shape, "GitDiff", "Differences.", diff_shape_fields);
static const struct shape_field show_shape_fields[] = {
    {"commit", SHAPE_OBJECT, offsetof(struct diff_view, commit), "Commit.", SHAPE_ALWAYS, &git_commit_shape},
    DIFF_FIELDS,
};
static SHAPE(show_shape, "GitShow", "A commit and its changes; for a merge, against its first parent.", show_shape_fields);

static const struct {
    char letter;
    const char *word;
} statuses[] = {
    {'A', "added"},   {'D', "deleted"}, {'M', "modified"},     {'R', "renamed"},
    {'C', "copied"},  {'U', "unmerged"}, {'T', "type_changed"},
};
/* clang-format on */

static const char *status_of(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (statuses[i].letter == letter)
            return statuses[i].word;
    return "modified";
}

/* ---- the request ---- */

struct bounds {
    uint64_t context, file_bytes, bytes;
    bool patch;
    json_t *files;
};
struct diff_in {
    struct git_in at;
    struct bounds b;
    const char *from, *to;
    bool staged;
};
struct show_in {
    struct git_in at;
    struct bounds b;
    const char *ref;
};
/* clang-format off */
#define BOUND_FIELDS(S) \
    {"file", JSON_FIELD_STRLIST, offsetof(S, b.files), 0, GIT_FILES_ASKED, false, "Limit to this file or directory, relative to `path`. Repeatable."}, \
    {"patch", JSON_FIELD_BOOL, offsetof(S, b.patch), 0, 0, false, "Include patches. Default: true."}, \
    {"context", JSON_FIELD_U64, offsetof(S, b.context), 0, CONTEXT_MAX, false, "Context lines. Default: 3."}, \
    {"max_file_bytes", JSON_FIELD_U64, offsetof(S, b.file_bytes), 1, FILE_BYTES_MAX, false, "Maximum bytes of the patch of one file. Default: 256 KiB."}, \
    {"max_bytes", JSON_FIELD_U64, offsetof(S, b.bytes), 1, BYTES_MAX, false, "Maximum bytes of all patches. Default: 8 MiB."}

static const struct json_field diff_fields[] = {
    GIT_PATH_FIELD(struct diff_in),
    GIT_USER_FIELD(struct diff_in),
    {"staged", JSON_FIELD_BOOL, offsetof(struct diff_in, staged), 0, 0, false, "Compare staged changes with HEAD or `from`. Default: compare the working tree with the index or `from`."},
    {"from", JSON_FIELD_STR, offsetof(struct diff_in, from), 1, 512, false, "Commit to compare with."},
    {"to", JSON_FIELD_STR, offsetof(struct diff_in, to), 1, 512, false, "Commit; shows the differences from `from` to it."},
    BOUND_FIELDS(struct diff_in),
};
static const struct json_field show_fields[] = {
    GIT_PATH_FIELD(struct show_in),
    GIT_USER_FIELD(struct show_in),
    {"ref", JSON_FIELD_STR, offsetof(struct show_in, ref), 1, 512, false, "Commit. Default: HEAD."},
    BOUND_FIELDS(struct show_in),
};
/* clang-format on */

static const struct bounds bounds_default = {
    .context = 3, .file_bytes = FILE_BYTES_DEFAULT, .bytes = BYTES_DEFAULT, .patch = true};

static void diff_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct diff_in *)in)->b = bounds_default;
}

static void show_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct show_in *)in)->b = bounds_default;
}

static const struct surface_input diff_input = {SURFACE_INPUT(diff_fields, struct diff_in),
                                                .defaults = diff_defaults};
static const struct surface_input show_input = {SURFACE_INPUT(show_fields, struct show_in),
                                                .defaults = show_defaults};

/* ---- the run ---- */

struct diff {
    struct call *c;
    struct git_diff parse;
    /* show: the commit first, then its changes. */
    bool show;
    struct git_log log;
    struct git_commit commit;
    struct buf fields; /* what the commit points to */
    char oid[GIT_OID_MAX + 1], parent[GIT_OID_MAX + 1];
    struct show_in in;
    char *path, *user;
};

static void diff_drop(void *state)
{
    struct diff *d = state;

    git_diff_free(&d->parse);
    git_log_free(&d->log);
    git_commit_free(&d->commit);
    buf_free(&d->fields);
    json_decref(d->in.b.files);
    free(d->path);
    free(d->user);
}

static void append(struct buf *rows, const struct git_file *f, bool *truncated)
{
    struct file_view v = {.path = {f->path, strlen(f->path)},
                          .patch = shape_list(&f->patch),
                          .status = status_of(f->status),
                          .old_mode = f->old_mode,
                          .new_mode = f->new_mode,
                          .conflict = f->conflict,
                          .binary = f->binary,
                          .truncated = f->truncated,
                          .added = f->added,
                          .deleted = f->deleted,
                          .score = f->score};

    if (f->from != NULL)
        v.from = (struct shape_bytes){f->from, strlen(f->from)};
    *truncated = *truncated || f->truncated;
    shape_append(rows, &file_shape, &v);
}

static void diff_reply(struct diff *d)
{
    autobuf struct buf rows = BUF_INIT(GIT_ROWS_MAX);
    struct diff_view v = {.more = d->parse.more, .commit = &d->commit.view};

    v.truncated = d->parse.full;
    for (size_t i = 0; i < d->parse.n; i++)
        append(&rows, &d->parse.files[i], &v.truncated);
    v.files = shape_list(&rows);
    call_reply_shape(d->c, d->show ? &show_shape : &diff_shape, &v);
}

static void diff_data(void *arg, const char *p, size_t n)
{
    struct diff *d = arg;
    struct err e;

    if (d->c->r == NULL)
        return;
    if (git_tokens_feed(&d->parse.in, p, n, &e) < 0)
        call_fail(d->c, &e);
    else if (d->parse.full)
        diff_reply(d);
}

static void diff_done(void *arg, const struct err *e)
{
    struct diff *d = arg;
    struct err bad;

    if (!call_told(d->c))
        return;
    if (e == NULL && git_diff_end(&d->parse, &bad) < 0)
        e = &bad;
    if (e != NULL)
        call_fail(d->c, e);
    else
        diff_reply(d);
}

static const struct git_ops diff_ops = {.on_data = diff_data, .on_done = diff_done};

struct diff_words {
    const char *argv[32 + GIT_FILES_ASKED];
    size_t n;
    char context[32];
};

static void add_word(struct diff_words *w, const char *word)
{
    w->argv[w->n++] = word;
    w->argv[w->n] = NULL;
}

static void common_words(struct diff_words *w, const char *command, const struct bounds *b)
{
    static const char *const words[] = {
        "--raw",      "--numstat",         "-z",
        "-M",         "--no-ext-diff",     "--no-textconv",
        "--no-color", "--submodule=short", "--ignore-submodules=none"};

    w->n = 0;
    add_word(w, command);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        add_word(w, words[i]);
    str_fmt(w->context, sizeof(w->context), "-U%llu", (unsigned long long)b->context);
    if (b->patch) {
        add_word(w, "-p");
        add_word(w, w->context);
    }
}

static void add_files(struct diff_words *w, const struct bounds *b)
{
    add_word(w, "--");
    for (size_t i = 0; i < json_array_size(b->files); i++)
        add_word(w, json_string_value(json_array_get(b->files, i)));
}

/* ---- diff ---- */

static int check_diff(const struct diff_in *in, struct err *e)
{
    if (in->to != NULL && in->from == NULL)
        return err_set(e, ERR_INVALID, "to: requires `from`");
    if (in->to != NULL && in->staged)
        return err_set(e, ERR_INVALID, "staged: not allowed between two commits");
    if (in->from != NULL && git_check_rev("from", in->from, e) < 0)
        return -1;
    return in->to != NULL ? git_check_rev("to", in->to, e) : 0;
}

static void diff_words(struct diff_words *w, const struct diff_in *in)
{
    common_words(w, "diff", &in->b);
    if (in->staged)
        add_word(w, "--cached");
    else if (in->from == NULL)
        add_word(w, "--ours"); /* else an unmerged file has a patch of another kind */
    if (in->from != NULL) {
        add_word(w, "--end-of-options");
        add_word(w, in->from);
    }
    if (in->to != NULL)
        add_word(w, in->to);
    add_files(w, &in->b);
}

static void git_diff_(struct call *c, const void *query)
{
    const struct diff_in *in = query;
    struct diff *d = call_state(c, sizeof(*d), diff_drop);
    struct diff_words w;
    struct err e;

    d->c = c;
    git_diff_init(&d->parse, in->b.file_bytes, in->b.bytes);
    if (check_diff(in, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    diff_words(&w, in);
    git_ask(c, &in->at, w.argv, &diff_ops, d);
}

/* ---- show: the commit, then what it changed ---- */

static void show_each(void *arg, const char *const field[GIT_LOG_FIELDS])
{
    const char *copy[GIT_LOG_FIELDS];
    size_t at[GIT_LOG_FIELDS];
    struct diff *d = arg;

    if (d->oid[0] != '\0')
        return;
    for (unsigned i = 0; i < GIT_LOG_FIELDS; i++) {
        at[i] = d->fields.len;
        buf_add(&d->fields, field[i], strlen(field[i]) + 1);
    }
    if (d->fields.failed)
        return;
    for (unsigned i = 0; i < GIT_LOG_FIELDS; i++)
        copy[i] = buf_data(&d->fields) + at[i];
    git_commit_read(&d->commit, copy);
    str_fmt(d->oid, sizeof(d->oid), "%.*s", (int)GIT_OID_MAX, field[GIT_LOG_COMMIT]);
    str_fmt(d->parent, sizeof(d->parent), "%.*s", (int)strcspn(field[GIT_LOG_PARENTS], " "),
            field[GIT_LOG_PARENTS]);
}

static void show_data(void *arg, const char *p, size_t n)
{
    struct diff *d = arg;
    struct err e;

    if (d->c->r != NULL && git_tokens_feed(&d->log.in, p, n, &e) < 0)
        call_fail(d->c, &e);
}

static void show_done(void *arg, const struct err *e)
{
    struct diff *d = arg;
    struct diff_words w;
    struct err bad;

    if (!call_told(d->c))
        return;
    if (e == NULL && d->oid[0] == '\0')
        e = (err_set(&bad, ERR_NOT_FOUND, "git: commit not found"), &bad);
    if (e != NULL) {
        call_fail(d->c, e);
        return;
    }
    common_words(&w, d->parent[0] != '\0' ? "diff" : "diff-tree", &d->in.b);
    if (d->parent[0] == '\0') {
        add_word(&w, "--root");
        add_word(&w, "--no-commit-id");
        add_word(&w, "-r");
    } else {
        add_word(&w, d->parent);
    }
    add_word(&w, d->oid);
    add_files(&w, &d->in.b);
    git_ask(d->c, &d->in.at, w.argv, &diff_ops, d);
}

static int remember(struct diff *d, const struct show_in *in, struct err *e)
{
    d->in = *in;
    json_incref(in->b.files);
    d->path = mem_text(in->at.path);
    d->user = mem_text(in->at.user);
    d->in.at = (struct git_in){d->path, d->user};
    return in->ref != NULL ? git_check_rev("ref", in->ref, e) : 0;
}

static void git_show_(struct call *c, const void *query)
{
    static const struct git_ops ops = {.on_data = show_data, .on_done = show_done};
    const struct show_in *in = query;
    struct diff *d = call_state(c, sizeof(*d), diff_drop);
    const char *argv[] = {
        "log",          "-z",        "--encoding=UTF-8", "--max-count=1",
        GIT_LOG_FORMAT, "--no-walk", "--end-of-options", in->ref != NULL ? in->ref : "HEAD",
        "--",           NULL};
    struct err e;

    d->c = c;
    d->show = true;
    git_diff_init(&d->parse, in->b.file_bytes, in->b.bytes);
    git_log_init(&d->log, show_each, d);
    buf_init(&d->fields, 2 * GIT_TOKEN_MAX);
    if (remember(d, in, &e) < 0)
        call_fail(c, &e);
    else
        git_ask(c, &in->at, argv, &ops, d);
}

/* clang-format off */
const struct surface_row surface_git_diff[] = {
    {{"GET", GIT "diff"}, SCOPE_RUN, git_diff_, "gitDiff",
     "Shows the differences in a repository, file by file.",
     .query = &diff_input, .status = 200, .answers = {&diff_shape}},
    {{"GET", GIT "show"}, SCOPE_RUN, git_show_, "gitShow",
     "Shows a commit and its changes.",
     .query = &show_input, .status = 200, .answers = {&show_shape}},
    {.op = NULL},
};
/* clang-format on */
