/* git_change.c - what makes a repository or a commit: clone and commit.
 *
 * A client that leaves changes nothing about them: they go on to their end or to their
 * time limit. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/git.h"

#define CLONE_MS 600000u
#define COMMIT_MS 120000u
#define TIME_MAX 86400000u
#define MESSAGE_MAX (60u << 10)
#define PATHS_MAX 500u
#define BODY_MAX (1u << 20)

/* ---- clone ---- */

struct clone_in {
    const char *url, *path, *branch, *username, *password, *user;
    uint64_t depth, timeout_ms;
    bool single_branch, submodules;
};
struct clone_view {
    struct shape_bytes path;
    const char *branch, *commit;
};
/* clang-format off */
static const struct json_field clone_fields[] = {
    {"url", JSON_FIELD_STR, offsetof(struct clone_in, url), 1, GIT_URL_MAX, true, "Where from; credentials in it are used and not stored."},
    {"path", JSON_FIELD_STR, offsetof(struct clone_in, path), 1, INIT_PATH_MAX, false, "Where to, a directory that is empty or not there; without it the repository's name, where commands start."},
    {"branch", JSON_FIELD_STR, offsetof(struct clone_in, branch), 1, 255, false, "A branch or tag; without it the server's choice."},
    {"depth", JSON_FIELD_U64, offsetof(struct clone_in, depth), 0, INT32_MAX, false, "Only so many commits; 0: all."},
    {"single_branch", JSON_FIELD_BOOL, offsetof(struct clone_in, single_branch), 0, 0, false, "Only the history of that branch."},
    {"submodules", JSON_FIELD_BOOL, offsetof(struct clone_in, submodules), 0, 0, false, "Its submodules too."},
    {"username", JSON_FIELD_STR, offsetof(struct clone_in, username), 1, GIT_SECRET_MAX, false, "For the server of the URL and this call only."},
    {"password", JSON_FIELD_STR, offsetof(struct clone_in, password), 1, GIT_SECRET_MAX, false, "A password or token; never stored or shown."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct clone_in, timeout_ms), 1, TIME_MAX, false, "After this many ms it is ended; without it ten minutes."},
    {"user", JSON_FIELD_STR, offsetof(struct clone_in, user), 1, INIT_USER_MAX, false, "Whose rights are used: a name, a uid or uid:gid."},
};
static const struct shape_field clone_shape_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct clone_view, path), "Where it is."},
    {"branch", SHAPE_STR, offsetof(struct clone_view, branch), "What is checked out; null for a tag.", SHAPE_NULLABLE},
    {"commit", SHAPE_STR, offsetof(struct clone_view, commit), "Its commit; null for an empty repository.", SHAPE_NULLABLE},
};
static SHAPE(clone_shape, "GitClone", "A repository that was cloned.", clone_shape_fields);
/* clang-format on */

static void clone_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct clone_in *)in)->timeout_ms = CLONE_MS;
}

static const struct surface_input clone_input = {SURFACE_INPUT(clone_fields, struct clone_in),
                                                 .defaults = clone_defaults};

struct clone {
    struct call *c;
    bool events;
    struct git_status parse;
    char path[INIT_PATH_MAX + 1], user[INIT_USER_MAX + 1];
};

static void clone_drop(void *state)
{
    git_status_free(&((struct clone *)state)->parse);
}

static void no_entry(void *arg, const struct git_entry *en)
{
    (void)arg;
    (void)en;
}

static void found_data(void *arg, const char *p, size_t n)
{
    struct clone *k = arg;
    struct err e;

    if (k->c->r != NULL && git_tokens_feed(&k->parse.in, p, n, &e) < 0)
        call_fail(k->c, &e);
}

static void found_done(void *arg, const struct err *e)
{
    struct clone *k = arg;
    struct clone_view v = {.path = {k->path, strlen(k->path)}};

    if (!call_told(k->c))
        return;
    if (e != NULL) {
        call_fail(k->c, e);
        return;
    }
    v.branch = k->parse.head[0] != '\0' ? k->parse.head : NULL;
    v.commit = k->parse.commit[0] != '\0' ? k->parse.commit : NULL;
    if (k->c->streaming) {
        call_event_shape(k->c, NULL, "done", &clone_shape, &v);
        call_end(k->c);
    } else {
        call_reply_shape(k->c, &clone_shape, &v);
    }
}

static void clone_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct clone *k = arg;

    if (!k->events || k->c->r == NULL)
        return;
    if (!k->c->streaming)
        call_begin(k->c, CALL_SSE);
    call_event_shape(k->c, NULL, "progress", &progress_shape,
                     &(struct progress_view){text, done, total});
}

static void clone_done(void *arg, const struct err *e)
{
    static const struct git_ops ops = {.on_data = found_data, .on_done = found_done};
    static const char *const argv[] = {"status",   "--porcelain=v2",       "-z",
                                       "--branch", "--untracked-files=no", NULL};
    struct clone *k = arg;

    if (!call_told(k->c))
        return;
    if (e != NULL)
        call_fail(k->c, e);
    else
        git_ask(k->c, &(struct git_in){k->path, k->user[0] != '\0' ? k->user : NULL}, argv, &ops,
                k);
}

static int check_secret(const char *name, const char *value, struct err *e)
{
    for (; value != NULL && *value != '\0'; value++)
        if ((unsigned char)*value < 0x20 || *value == 0x7f)
            return err_set(e, ERR_INVALID, "%s: no control characters", name);
    return 0;
}

struct clone_words {
    const char *argv[20];
    char depth[40], url[GIT_URL_MAX + 1], name[GIT_URL_MAX + 1];
    char username[GIT_SECRET_MAX + 1], password[GIT_SECRET_MAX + 1];
};

static int clone_words(struct clone_words *w, const struct clone_in *in, struct err *e)
{
    size_t n = 0;

    str_fmt(w->username, sizeof(w->username), "%s", in->username != NULL ? in->username : "");
    str_fmt(w->password, sizeof(w->password), "%s", in->password != NULL ? in->password : "");
    if (git_url(in->url, w->url, w->username, w->password, e) < 0 ||
        check_secret("username", w->username, e) < 0 ||
        check_secret("password", w->password, e) < 0 ||
        (in->branch != NULL && git_check_rev("branch", in->branch, e) < 0))
        return -1;
    w->argv[n++] = "clone";
    w->argv[n++] = "--progress";
    if (in->depth > 0) {
        str_fmt(w->depth, sizeof(w->depth), "--depth=%llu", (unsigned long long)in->depth);
        w->argv[n++] = w->depth;
    }
    if (in->branch != NULL) {
        w->argv[n++] = "--branch";
        w->argv[n++] = in->branch;
    }
    if (in->single_branch)
        w->argv[n++] = "--single-branch";
    if (in->submodules)
        w->argv[n++] = "--recurse-submodules";
    w->argv[n++] = "--";
    w->argv[n++] = w->url;
    git_url_name(w->url, w->name, sizeof(w->name));
    w->argv[n++] = in->path != NULL ? in->path : w->name;
    w->argv[n] = NULL;
    return 0;
}

static void git_clone_(struct call *c, const void *body)
{
    static const struct git_ops ops = {.on_progress = clone_progress, .on_done = clone_done};
    const struct clone_in *in = body;
    struct clone *k = call_state(c, sizeof(*k), clone_drop);
    struct clone_words w;
    struct err e;

    if (k == NULL)
        return;
    k->c = c;
    k->events = call_accept(c) == CALL_SSE;
    git_status_init(&k->parse, no_entry, k);
    if (clone_words(&w, in, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    str_fmt(k->path, sizeof(k->path), "%.*s", (int)INIT_PATH_MAX,
            in->path != NULL ? in->path : w.name);
    str_fmt(k->user, sizeof(k->user), "%s", in->user != NULL ? in->user : "");
    git_do(c,
           &(struct git_opts){.user = in->user,
                              .argv = w.argv,
                              .url = w.url,
                              .username = w.username,
                              .password = w.password,
                              .timeout_ms = in->timeout_ms},
           &ops, k);
    explicit_bzero(w.password, sizeof(w.password));
}

/* ---- commit: what is wanted is staged, committed, and shown ---- */

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
    {"name", JSON_FIELD_STR, offsetof(struct author_in, name), 1, 255, true, "Author and committer."},
    {"email", JSON_FIELD_STR, offsetof(struct author_in, email), 1, 255, true, "The address."},
};
static const struct json_field commit_fields[] = {
    GIT_PATH_FIELD(struct commit_in),
    GIT_USER_FIELD(struct commit_in),
    {"message", JSON_FIELD_STR, offsetof(struct commit_in, message), 1, MESSAGE_MAX, true, "What it says."},
    {"all", JSON_FIELD_BOOL, offsetof(struct commit_in, all), 0, 0, false, "Stage everything first, new and deleted files too."},
    {"paths", JSON_FIELD_STRLIST, offsetof(struct commit_in, paths), 1, PATHS_MAX, false, "Stage and commit these and nothing else; not with `all`. Without either what is staged is committed."},
    {"author", JSON_FIELD_ANY, offsetof(struct commit_in, author), 0, 0, false, "Who it is by; without it as git is set up."},
    {"allow_empty", JSON_FIELD_BOOL, offsetof(struct commit_in, allow_empty), 0, 0, false, "Also when nothing changed."},
    {"no_verify", JSON_FIELD_BOOL, offsetof(struct commit_in, no_verify), 0, 0, false, "Without the hooks that could refuse it."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct commit_in, timeout_ms), 1, TIME_MAX, false, "Of each step; without it two minutes."},
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
        e = (err_set(&none, ERR_CONFLICT, "git: the commit is not there"), &none);
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
    m->message = strdup(in->message);
    m->path = in->at.path != NULL ? strdup(in->at.path) : NULL;
    m->user = in->at.user != NULL ? strdup(in->at.user) : NULL;
    if (m->message == NULL || (in->at.path != NULL && m->path == NULL) ||
        (in->at.user != NULL && m->user == NULL))
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (in->all && in->paths != NULL)
        return err_set(e, ERR_INVALID, "either all or paths");
    return put_author(m, e);
}

static void git_commit_(struct call *c, const void *body)
{
    const struct commit_in *in = body;
    struct commit *m = call_state(c, sizeof(*m), commit_drop);
    struct err e;

    if (m == NULL)
        return;
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
const struct surface_row surface_git_change[] = {
    {{"POST", GIT "clone"}, SCOPE_RUN, git_clone_, "gitClone",
     "Clones a repository into the sandbox.",
     .body = &clone_input, .status = 201, .answers = {&clone_shape},
     .events = "progress (Progress); at last done (GitClone) or error (Error)",
     .event_shapes = {&progress_shape}},
    {{"POST", GIT "commit"}, SCOPE_RUN, git_commit_, "gitCommit",
     "Commits what is staged, or everything, or some files.",
     .body = &commit_input, .status = 201, .answers = {&git_commit_shape}},
    {.op = NULL},
};
/* clang-format on */
