/* git.c - the state of a repository. */
#include "front/planes/native/git/git.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"

#define ENTRIES_DEFAULT 10000u
#define ENTRIES_MAX 100000u

static void close_git(void *handle)
{
    git_close(handle);
}

static void pause_git(void *handle, bool paused)
{
    git_pause(handle, paused);
}

const struct call_source git_source = {close_git, pause_git};

void git_do(struct call *c, const struct git_opts *o, const struct git_ops *ops, void *arg)
{
    call_expect(c, &git_source, git_run(c->ref, o, ops, arg));
}

void git_ask(struct call *c, const struct git_in *at, const char *const *argv,
             const struct git_ops *ops, void *arg)
{
    git_do(c, &(struct git_opts){.path = at->path, .user = at->user, .argv = argv, .ask = true},
           ops, arg);
}

struct git *git_of(struct call *c)
{
    return c->source == &git_source ? c->handle : NULL;
}

/* ---- status ---- */

struct status_in {
    struct git_in at;
    const char *untracked;
    bool ignored;
    uint64_t limit;
};
struct sub_view {
    bool commit, modified, untracked;
};
struct entry_view {
    struct shape_bytes path, from;
    const char *kind, *index, *worktree;
    uint64_t score;
    const struct sub_view *submodule;
};
struct status_view {
    const char *branch, *commit, *upstream;
    bool detached, unborn, clean, truncated;
    uint64_t ahead, behind;
    struct shape_bytes entries;
};
/* clang-format off */
static const struct json_field status_fields[] = {
    GIT_PATH_FIELD(struct status_in),
    GIT_USER_FIELD(struct status_in),
    {"untracked", JSON_FIELD_STR, offsetof(struct status_in, untracked), 1, 8, false, "all (default: every file), normal (an untracked directory as one entry) or no."},
    {"ignored", JSON_FIELD_BOOL, offsetof(struct status_in, ignored), 0, 0, false, "Include ignored files."},
    {"limit", JSON_FIELD_U64, offsetof(struct status_in, limit), 1, ENTRIES_MAX, false, "Maximum number of entries. Default: 10000."},
};

static const struct shape_field sub_fields[] = {
    {"commit", SHAPE_BOOL, offsetof(struct sub_view, commit), "It is at a different commit."},
    {"modified", SHAPE_BOOL, offsetof(struct sub_view, modified), "It has changed files."},
    {"untracked", SHAPE_BOOL, offsetof(struct sub_view, untracked), "It has untracked files."},
};
static SHAPE(sub_shape, "GitSubmodule", "How a submodule differs.", sub_fields);
static const struct shape_field entry_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct entry_view, path), "Path relative to the top of the repository."},
    {"from", SHAPE_BYTES, offsetof(struct entry_view, from), "Previous path, for a rename or copy.", SHAPE_OMITTED},
    {"kind", SHAPE_STR, offsetof(struct entry_view, kind), "changed, renamed (or copied), unmerged, untracked or ignored."},
    {"index", SHAPE_STR, offsetof(struct entry_view, index), "Staged change: M, A, D, R, C, T, U or '.' for none."},
    {"worktree", SHAPE_STR, offsetof(struct entry_view, worktree), "Unstaged change: the same letters."},
    {"score", SHAPE_U64, offsetof(struct entry_view, score), "Similarity in percent, for a rename or copy.", SHAPE_OMITTED},
    {"submodule", SHAPE_OBJECT, offsetof(struct entry_view, submodule), "Set if it is a submodule.", SHAPE_OMITTED, &sub_shape},
};
static SHAPE(entry_shape, "GitEntry", "A file that differs from the last commit.", entry_fields);
static const struct shape_field status_shape_fields[] = {
    {"branch", SHAPE_STR, offsetof(struct status_view, branch), "Name of the branch; null when HEAD is detached.", SHAPE_NULLABLE},
    {"commit", SHAPE_STR, offsetof(struct status_view, commit), "Commit of HEAD; null before the first commit.", SHAPE_NULLABLE},
    {"detached", SHAPE_BOOL, offsetof(struct status_view, detached), "HEAD is detached."},
    {"unborn", SHAPE_BOOL, offsetof(struct status_view, unborn), "The branch has no commit yet."},
    {"upstream", SHAPE_STR, offsetof(struct status_view, upstream), "Upstream branch.", SHAPE_NULLABLE},
    {"ahead", SHAPE_U64, offsetof(struct status_view, ahead), "Number of commits that the upstream lacks."},
    {"behind", SHAPE_U64, offsetof(struct status_view, behind), "Number of commits that only the upstream has."},
    {"clean", SHAPE_BOOL, offsetof(struct status_view, clean), "There are no changes."},
    {"entries", SHAPE_LIST, offsetof(struct status_view, entries), "Files that differ from the last commit.", SHAPE_ALWAYS, &entry_shape},
    {"truncated", SHAPE_BOOL, offsetof(struct status_view, truncated), "There are more entries than `limit`."},
};
static SHAPE(status_shape, "GitStatus", "The state of a repository.", status_shape_fields);
/* clang-format on */

static void status_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct status_in *)in)->limit = ENTRIES_DEFAULT;
}

static const struct surface_input status_input = {SURFACE_INPUT(status_fields, struct status_in),
                                                  .defaults = status_defaults};

struct status {
    struct call *c;
    struct git_status parse;
    struct buf rows;
    uint64_t limit, n;
};

static void status_drop(void *state)
{
    struct status *s = state;

    git_status_free(&s->parse);
    buf_free(&s->rows);
}

static void status_each(void *arg, const struct git_entry *en)
{
    struct status *s = arg;
    const char index[] = {en->index, '\0'}, worktree[] = {en->worktree, '\0'};
    struct sub_view sub = {en->sub_commit, en->sub_modified, en->sub_untracked};
    struct entry_view v = {.path = {en->path, strlen(en->path)},
                           .kind = git_kind_name(en->kind),
                           .index = index,
                           .worktree = worktree,
                           .score = en->score,
                           .submodule = en->submodule ? &sub : NULL};

    if (s->n++ >= s->limit)
        return;
    if (en->from != NULL)
        v.from = (struct shape_bytes){en->from, strlen(en->from)};
    shape_append(&s->rows, &entry_shape, &v);
}

static void status_reply(struct status *s)
{
    const struct git_status *p = &s->parse;
    struct status_view v = {.branch = p->head[0] != '\0' ? p->head : NULL,
                            .commit = p->commit[0] != '\0' ? p->commit : NULL,
                            .upstream = p->has_upstream ? p->upstream : NULL,
                            .detached = p->head[0] == '\0',
                            .unborn = p->commit[0] == '\0',
                            .ahead = p->ahead,
                            .behind = p->behind,
                            .clean = s->n == 0,
                            .truncated = s->n > s->limit,
                            .entries = shape_list(&s->rows)};

    call_reply_shape(s->c, &status_shape, &v);
}

static void status_data(void *arg, const char *p, size_t n)
{
    struct status *s = arg;
    struct err e;

    if (s->c->r == NULL)
        return;
    if (git_tokens_feed(&s->parse.in, p, n, &e) < 0)
        call_fail(s->c, &e);
    else if (s->n > s->limit)
        status_reply(s);
}

static void status_done(void *arg, const struct err *e)
{
    struct status *s = arg;
    struct err bad;

    if (!call_told(s->c))
        return;
    if (e == NULL && git_status_end(&s->parse, &bad) < 0)
        e = &bad;
    if (e != NULL)
        call_fail(s->c, e);
    else
        status_reply(s);
}

static int untracked_of(const char *word, const char **ret, struct err *e)
{
    static const char *const known[][2] = {{"all", "--untracked-files=all"},
                                           {"normal", "--untracked-files=normal"},
                                           {"no", "--untracked-files=no"}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (word != NULL && strcmp(word, known[i][0]) != 0)
            continue;
        *ret = known[i][1];
        return 0;
    }
    return err_set(e, ERR_INVALID, "untracked: expected all, normal or no");
}

static void git_status_(struct call *c, const void *query)
{
    static const struct git_ops ops = {.on_data = status_data, .on_done = status_done};
    const struct status_in *in = query;
    const char *argv[] = {
        "status",    "--porcelain=v2",           "-z", "--branch", "--ahead-behind",
        "--renames", "--ignore-submodules=none", NULL, NULL,       NULL};
    struct status *s = call_state(c, sizeof(*s), status_drop);
    struct err e;

    s->c = c;
    s->limit = in->limit;
    buf_init(&s->rows, GIT_ROWS_MAX);
    git_status_init(&s->parse, status_each, s);
    if (untracked_of(in->untracked, &argv[7], &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (in->ignored)
        argv[8] = "--ignored=matching";
    git_ask(c, &in->at, argv, &ops, s);
}

/* clang-format off */
const struct surface_row surface_git[] = {
    {{"GET", GIT "status"}, SCOPE_RUN, git_status_, "gitStatus",
     "Shows the branch of a repository and the files that differ from the last commit.",
     .query = &status_input, .status = 200, .answers = {&status_shape}},
    {.op = NULL},
};
/* clang-format on */
