/* commit.c - stages changes, commits them and shows the commit. If the client disconnects, the running
 * step continues and the next one is not started. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/planes/native/git/git.h"
#include "mem/mem.h"

#define COMMIT_MS 120000u
#define TIME_MAX 86400000u
#define MESSAGE_MAX (60u << 10)
#define PATHS_MAX 500u
#define BODY_MAX (1u << 20)

struct commit_in {
    struct git_in at;
    const char *message;
    json_t *paths, *author;
    bool all, allow_empty, no_verify;
    uint64_t timeout_ms;
};
struct author_in {
    const char *name, *email;
};
/* clang-format off */
static const struct json_field author_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct author_in, name), 1, 255, true, "Name of author and committer."},
    {"email", JSON_FIELD_STR, offsetof(struct author_in, email), 1, 255, true, "Email address."},
};
static const struct json_field commit_fields[] = {
    GIT_PATH_FIELD(struct commit_in),
    GIT_USER_FIELD(struct commit_in),
    {"message", JSON_FIELD_STR, offsetof(struct commit_in, message), 1, MESSAGE_MAX, true, "Commit message."},
    {"all", JSON_FIELD_BOOL, offsetof(struct commit_in, all), 0, 0, false, "Stage all changes first, including new and deleted files."},
    {"paths", JSON_FIELD_STRLIST, offsetof(struct commit_in, paths), 1, PATHS_MAX, false, "Stage and commit only these paths; not with `all`. Default: commit what is staged."},
    {"author", JSON_FIELD_ANY, offsetof(struct commit_in, author), 0, 0, false, "Author and committer. Default: git's configuration."},
    {"allow_empty", JSON_FIELD_BOOL, offsetof(struct commit_in, allow_empty), 0, 0, false, "Commit even if nothing changed."},
    {"no_verify", JSON_FIELD_BOOL, offsetof(struct commit_in, no_verify), 0, 0, false, "Skip the hooks that could refuse the commit."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct commit_in, timeout_ms), 1, TIME_MAX, false, "Time limit of each step in milliseconds. Default: two minutes."},
};
/* clang-format on */
static const struct surface_nested commit_nested[] = {
    {"author", author_fields, ARRAY_LEN(author_fields)},
    {0},
};

static void commit_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct commit_in *)in)->timeout_ms = COMMIT_MS;
}

static const struct surface_input commit_input = {SURFACE_INPUT(commit_fields, struct commit_in),
                                                  .body_max = BODY_MAX, .defaults = commit_defaults,
                                                  .nested = commit_nested};

struct commit {
    struct call *c;
    struct commit_in in; /* its strings are in the members below */
    char *path, *user, *message;
    struct buf env, said; /* said: stdout, where git explains why it did nothing */
    struct git_log log;
    bool shown;
};

static void commit_drop(void *state)
{
    struct commit *m = state;

    json_decref(m->in.paths);
    free(m->path);
    free(m->user);
    free(m->message);
    buf_free(&m->env);
    buf_free(&m->said);
    git_log_free(&m->log);
}

static void run_step(struct commit *m, const char *const *argv, bool input,
                     const struct git_ops *ops)
{
    git_do(m->c,
           &(struct git_opts){.path = m->path,
                              .user = m->user,
                              .argv = argv,
                              .env = buf_data(&m->env),
                              .env_len = m->env.len,
                              .timeout_ms = m->in.timeout_ms,
                              .input = input},
           ops, m);
    if (input)
        git_feed(git_of(m->c), m->message, strlen(m->message));
}

static void show_each(void *arg, const char *const field[GIT_LOG_FIELDS])
{
    struct git_commit c = {0};
    struct commit *m = arg;

    if (m->shown || m->c->r == NULL)
        return;
    m->shown = true;
    git_commit_read(&c, field);
    call_reply_shape(m->c, &git_commit_shape, &c.view);
    git_commit_free(&c);
}

static void show_data(void *arg, const char *p, size_t n)
{
    struct commit *m = arg;
    struct err e;

    if (m->c->r != NULL && git_tokens_feed(&m->log.in, p, n, &e) < 0)
        call_fail(m->c, &e);
}

static void show_done(void *arg, const struct err *e)
{
    struct commit *m = arg;
    struct err none;

    if (!call_told(m->c))
        return;
    if (e == NULL)
        e = (err_set(&none, ERR_CONFLICT, "git: the commit was made but cannot be read"), &none);
    call_fail(m->c, e);
}

static void commit_said(void *arg, const char *p, size_t n)
{
    struct commit *m = arg;

    if (m->said.len + n <= m->said.max)
        buf_add(&m->said, p, n);
}

static void committed(void *arg, const struct err *e)
{
    static const struct git_ops ops = {.on_data = show_data, .on_done = show_done};
    static const char *const argv[] = {"log",           "-z",           "--encoding=UTF-8",
                                       "--max-count=1", GIT_LOG_FORMAT, NULL};
    struct commit *m = arg;
    const char *said = buf_cstr(&m->said);
    struct err nothing;

    if (!call_told(m->c))
        return;
    if (e != NULL && (strstr(said, "nothing to commit") != NULL ||
                      strstr(said, "nothing added to commit") != NULL ||
                      strstr(said, "no changes added to commit") != NULL))
        e = (err_set(&nothing, ERR_CONFLICT, "git: nothing to commit"), &nothing);
    if (e != NULL)
        call_fail(m->c, e);
    else
        run_step(m, argv, false, &ops);
}

static void add_paths(struct commit *m, const char **argv, size_t n)
{
    argv[n++] = "--";
    for (size_t i = 0; i < json_array_size(m->in.paths); i++)
        argv[n++] = json_string_value(json_array_get(m->in.paths, i));
    argv[n] = NULL;
}

static void commit_now(struct commit *m)
{
    static const struct git_ops ops = {.on_data = commit_said, .on_done = committed};
    const char *argv[12 + PATHS_MAX] = {"commit", "--no-gpg-sign", "--cleanup=verbatim",
                                        "--file=-"};
    size_t n = 4;

    if (m->in.allow_empty)
        argv[n++] = "--allow-empty";
    if (m->in.no_verify)
        argv[n++] = "--no-verify";
    if (m->in.paths != NULL)
        argv[n++] = "--only";
    if (m->in.paths != NULL)
        add_paths(m, argv, n);
    run_step(m, argv, true, &ops);
}

static void staged(void *arg, const struct err *e)
{
    struct commit *m = arg;

    if (!call_told(m->c))
        return;
    if (e != NULL)
        call_fail(m->c, e);
    else
        commit_now(m);
}

static void stage(struct commit *m)
{
    static const struct git_ops ops = {.on_done = staged};
    const char *argv[4 + PATHS_MAX] = {"add", "--all"};

    if (m->in.paths != NULL)
        add_paths(m, argv, 2);
    run_step(m, argv, false, &ops);
}

static int put_author(struct commit *m, struct err *e)
{
    static const char *const names[] = {"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"};
    static const char *const emails[] = {"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"};
    struct author_in a = {0};

    if (m->in.author == NULL)
        return 0;
    if (json_decode(m->in.author, author_fields, ARRAY_LEN(author_fields), &a, e) < 0)
        return err_wrap(e, "author");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buf_addf(&m->env, "%s=%s", names[i], a.name);
        buf_addc(&m->env, '\0');
        buf_addf(&m->env, "%s=%s", emails[i], a.email);
        buf_addc(&m->env, '\0');
    }
    return 0;
}

static int remember(struct commit *m, const struct commit_in *in, struct err *e)
{
    m->in = *in;
    json_incref(in->paths);
    m->message = mem_text(in->message);
    m->path = mem_text(in->at.path);
    m->user = mem_text(in->at.user);
    if (in->all && in->paths != NULL)
        return err_set(e, ERR_INVALID, "at most one of all and paths is allowed");
    return put_author(m, e);
}

static void git_commit_(struct call *c, const void *body)
{
    const struct commit_in *in = body;
    struct commit *m = call_state(c, sizeof(*m), commit_drop);
    struct err e;

    m->c = c;
    buf_init(&m->env, 4096);
    buf_init(&m->said, 65536);
    git_log_init(&m->log, show_each, m);
    if (remember(m, in, &e) < 0)
        call_fail(c, &e);
    else if (in->all || in->paths != NULL)
        stage(m);
    else
        commit_now(m);
}

/* clang-format off */
const struct surface_row surface_git_commit[] = {
    {{"POST", GIT "commit"}, SCOPE_RUN, git_commit_, "gitCommit",
     "Commits staged changes, all changes, or some files.",
     .body = &commit_input, .status = 201, .answers = {&git_commit_shape}},
    {.op = NULL},
};
/* clang-format on */
