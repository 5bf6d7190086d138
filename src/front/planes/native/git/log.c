/* log.c - lists the history of a commit, in pages. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/git/git.h"

#define COMMITS_DEFAULT 50u
#define COMMITS_MAX 1000u

/* ---- commits ---- */

/* clang-format off */
static const struct shape_field person_fields[] = {
    {"name", SHAPE_STR, offsetof(struct git_person_view, name), "Name and address as in the commit."},
    {"email", SHAPE_STR, offsetof(struct git_person_view, email), "Name and address as in the commit."},
    {"at", SHAPE_TIME, offsetof(struct git_person_view, at_ms), "When.", SHAPE_NULLABLE},
};
static SHAPE(person_shape, "GitPerson", "Person and time.", person_fields);
static const struct shape_field commit_fields[] = {
    {"commit", SHAPE_STR, offsetof(struct git_commit_view, commit), "Hash."},
    {"parents", SHAPE_STRV, offsetof(struct git_commit_view, parents), "Hashes of its parents."},
    {"author", SHAPE_OBJECT, offsetof(struct git_commit_view, author), "Author.", SHAPE_ALWAYS, &person_shape},
    {"committer", SHAPE_OBJECT, offsetof(struct git_commit_view, committer), "Committer.", SHAPE_ALWAYS, &person_shape},
    {"refs", SHAPE_STRV, offsetof(struct git_commit_view, refs), "Branches and tags that point to it."},
    {"message", SHAPE_STR, offsetof(struct git_commit_view, message), "Whole message; the first line is the subject."},
};
SHAPE(git_commit_shape, "GitCommit", "A commit.", commit_fields);
/* clang-format on */

static void split(struct buf *out, const char *text, const char *between)
{
    buf_init(out, 2 * GIT_TOKEN_MAX);
    while (*text != '\0') {
        const char *end = strstr(text, between);
        size_t n = end != NULL ? (size_t)(end - text) : strlen(text);

        buf_add(out, text, n);
        buf_addc(out, '\0');
        text += n;
        text += *text != '\0' ? strlen(between) : 0;
    }
}

static uint64_t ms_of(const char *seconds)
{
    uint64_t s;

    return str_u64(seconds, UINT64_MAX / 2000, &s) == 0 ? s * 1000 : 0;
}

void git_commit_read(struct git_commit *c, const char *const f[GIT_LOG_FIELDS])
{
    split(&c->parents, f[GIT_LOG_PARENTS], " ");
    split(&c->refs, f[GIT_LOG_REFS], ", ");
    c->author = (struct git_person_view){f[GIT_LOG_AUTHOR], f[GIT_LOG_AUTHOR_EMAIL],
                                         ms_of(f[GIT_LOG_AUTHORED])};
    c->committer = (struct git_person_view){f[GIT_LOG_COMMITTER], f[GIT_LOG_COMMITTER_EMAIL],
                                            ms_of(f[GIT_LOG_COMMITTED])};
    c->view = (struct git_commit_view){.commit = f[GIT_LOG_COMMIT],
                                       .message = f[GIT_LOG_MESSAGE],
                                       .parents = shape_list(&c->parents),
                                       .refs = shape_list(&c->refs),
                                       .author = &c->author,
                                       .committer = &c->committer};
}

void git_commit_free(struct git_commit *c)
{
    buf_free(&c->parents);
    buf_free(&c->refs);
}

/* ---- log ---- */

struct log_in {
    struct git_in at;
    const char *ref, *exclude, *after;
    json_t *files;
    uint64_t limit;
};
struct log_view {
    struct shape_bytes commits;
    const char *next;
};
/* clang-format off */
static const struct json_field log_fields[] = {
    GIT_PATH_FIELD(struct log_in),
    GIT_USER_FIELD(struct log_in),
    {"ref", JSON_FIELD_STR, offsetof(struct log_in, ref), 1, 512, false, "Branch, tag or commit to start from. Default: HEAD."},
    {"exclude", JSON_FIELD_STR, offsetof(struct log_in, exclude), 1, 512, false, "Exclude commits reachable from this one."},
    {"file", JSON_FIELD_STRLIST, offsetof(struct log_in, files), 0, GIT_FILES_ASKED, false, "Only commits that change this file or directory. Repeatable."},
    {"limit", JSON_FIELD_U64, offsetof(struct log_in, limit), 1, COMMITS_MAX, false, "Maximum number of commits. Default: 50."},
    {"after", JSON_FIELD_STR, offsetof(struct log_in, after), 1, 100, false, "`next` of the previous page; `ref` is then ignored."},
};
static const struct shape_field log_shape_fields[] = {
    {"commits", SHAPE_LIST, offsetof(struct log_view, commits), "Newest first.", SHAPE_ALWAYS, &git_commit_shape},
    {"next", SHAPE_STR, offsetof(struct log_view, next), "Pass it as `after` to get the next page; null on the last page.", SHAPE_NULLABLE},
};
static SHAPE(log_shape, "GitLog", "History of a commit.", log_shape_fields);
/* clang-format on */

static void log_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct log_in *)in)->limit = COMMITS_DEFAULT;
}

static const struct surface_input log_input = {SURFACE_INPUT(log_fields, struct log_in),
                                               .defaults = log_defaults};

struct log {
    struct call *c;
    struct git_log parse;
    struct buf rows;
    uint64_t limit, skip, n;
    char tip[GIT_OID_MAX + 1]; /* where the first page began: the next begins there too */
};

static void log_drop(void *state)
{
    struct log *l = state;

    git_log_free(&l->parse);
    buf_free(&l->rows);
}

static void log_each(void *arg, const char *const field[GIT_LOG_FIELDS])
{
    struct git_commit c = {0};
    struct log *l = arg;

    if (l->tip[0] == '\0')
        str_fmt(l->tip, sizeof(l->tip), "%.*s", (int)GIT_OID_MAX, field[GIT_LOG_COMMIT]);
    if (l->n++ >= l->limit)
        return;
    git_commit_read(&c, field);
    shape_append(&l->rows, &git_commit_shape, &c.view);
    git_commit_free(&c);
}

static void log_data(void *arg, const char *p, size_t n)
{
    struct log *l = arg;
    struct err e;

    if (l->c->r != NULL && git_tokens_feed(&l->parse.in, p, n, &e) < 0)
        call_fail(l->c, &e);
}

static void log_reply(struct log *l)
{
    char next[GIT_OID_MAX + 32];
    struct log_view v = {shape_list(&l->rows), NULL};

    if (l->n > l->limit) {
        str_fmt(next, sizeof(next), "%s.%llu", l->tip, (unsigned long long)(l->skip + l->limit));
        v.next = next;
    }
    call_reply_shape(l->c, &log_shape, &v);
}

/* A branch without a commit has a log: an empty one. */
static void log_done(void *arg, const struct err *e)
{
    struct log *l = arg;

    if (!call_told(l->c))
        return;
    if (e != NULL && strstr(e->msg, "does not have any commits yet") == NULL)
        call_fail(l->c, e);
    else
        log_reply(l);
}

static int read_after(struct log *l, const char *after, struct err *e)
{
    size_t n = strspn(after, "0123456789abcdef");

    if (n < 40 || n > GIT_OID_MAX || after[n] != '.' ||
        str_u64(after + n + 1, INT32_MAX, &l->skip) < 0)
        return err_set(e, ERR_INVALID, "after: expected `next` of the previous page");
    str_fmt(l->tip, sizeof(l->tip), "%.*s", (int)n, after);
    return 0;
}

struct log_words {
    const char *argv[16 + GIT_FILES_ASKED];
    char count[32], skip[32], not [520];
};

static int log_argv(struct log *l, const struct log_in *in, struct log_words *w, struct err *e)
{
    size_t n = 0, files = json_array_size(in->files);
    const char *rev;

    if ((in->after != NULL && read_after(l, in->after, e) < 0) ||
        (in->ref != NULL && git_check_rev("ref", in->ref, e) < 0) ||
        (in->exclude != NULL && git_check_rev("exclude", in->exclude, e) < 0))
        return -1;
    rev = l->tip[0] != '\0' ? l->tip : in->ref;
    str_fmt(w->count, sizeof(w->count), "--max-count=%llu", (unsigned long long)l->limit + 1);
    str_fmt(w->skip, sizeof(w->skip), "--skip=%llu", (unsigned long long)l->skip);
    w->argv[n++] = "log";
    w->argv[n++] = "-z";
    w->argv[n++] = "--encoding=UTF-8";
    w->argv[n++] = GIT_LOG_FORMAT;
    w->argv[n++] = w->count;
    w->argv[n++] = w->skip;
    /* Without a word for it, since before the first commit HEAD means nothing. */
    if (rev != NULL || in->exclude != NULL) {
        w->argv[n++] = "--end-of-options";
        w->argv[n++] = rev != NULL ? rev : "HEAD";
    }
    if (in->exclude != NULL) {
        str_fmt(w->not, sizeof(w->not ), "^%s", in->exclude);
        w->argv[n++] = w->not ;
    }
    w->argv[n++] = "--";
    for (size_t i = 0; i < files; i++)
        w->argv[n++] = json_string_value(json_array_get(in->files, i));
    w->argv[n] = NULL;
    return 0;
}

static void git_log_(struct call *c, const void *query)
{
    static const struct git_ops ops = {.on_data = log_data, .on_done = log_done};
    const struct log_in *in = query;
    struct log *l = call_state(c, sizeof(*l), log_drop);
    struct log_words w;
    struct err e;

    l->c = c;
    l->limit = in->limit;
    buf_init(&l->rows, GIT_ROWS_MAX);
    git_log_init(&l->parse, log_each, l);
    if (log_argv(l, in, &w, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    git_ask(c, &in->at, w.argv, &ops, l);
}

/* clang-format off */
const struct surface_row surface_git_log[] = {
    {{"GET", GIT "log"}, SCOPE_RUN, git_log_, "gitLog",
     "Lists commits, page by page.",
     .query = &log_input, .status = 200, .answers = {&log_shape}},
    {.op = NULL},
};
/* clang-format on */
