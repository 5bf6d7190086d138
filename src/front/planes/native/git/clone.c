/* clone.c - clones a repository. The clone continues if the client disconnects, until it ends or its
 * time limit is reached. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/git/git.h"

#define CLONE_MS 600000u
#define TIME_MAX 86400000u

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
    {"url", JSON_FIELD_STR, offsetof(struct clone_in, url), 1, GIT_URL_MAX, true, "URL of the repository; credentials in it are used and not stored."},
    {"path", JSON_FIELD_STR, offsetof(struct clone_in, path), 1, ENGINE_PATH_MAX, false, "Target directory; it must be empty or not exist. Default: the name of the repository, in the default working directory."},
    {"branch", JSON_FIELD_STR, offsetof(struct clone_in, branch), 1, 255, false, "Branch or tag. Default: that of the remote."},
    {"depth", JSON_FIELD_U64, offsetof(struct clone_in, depth), 0, INT32_MAX, false, "Number of commits to fetch; 0: all."},
    {"single_branch", JSON_FIELD_BOOL, offsetof(struct clone_in, single_branch), 0, 0, false, "Fetch only the history of that branch."},
    {"submodules", JSON_FIELD_BOOL, offsetof(struct clone_in, submodules), 0, 0, false, "Clone its submodules too."},
    {"username", JSON_FIELD_STR, offsetof(struct clone_in, username), 1, GIT_SECRET_MAX, false, "User name for the server of the URL, used for this call only."},
    {"password", JSON_FIELD_STR, offsetof(struct clone_in, password), 1, GIT_SECRET_MAX, false, "Password or token; never stored or shown."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct clone_in, timeout_ms), 1, TIME_MAX, false, "Time limit in milliseconds. Default: ten minutes."},
    {"user", JSON_FIELD_STR, offsetof(struct clone_in, user), 1, ENGINE_USER_MAX, false, "User whose permissions are used: a name, uid, or uid:gid."},
};
static const struct shape_field clone_shape_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct clone_view, path), "Path."},
    {"branch", SHAPE_STR, offsetof(struct clone_view, branch), "Branch that is checked out; null for a tag.", SHAPE_NULLABLE},
    {"commit", SHAPE_STR, offsetof(struct clone_view, commit), "Commit that is checked out; null for an empty repository.", SHAPE_NULLABLE},
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
    char path[ENGINE_PATH_MAX + 1], user[ENGINE_USER_MAX + 1];
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
            return err_set(e, ERR_INVALID, "%s: must not contain control characters", name);
    return 0;
}

struct clone_words {
    const char *argv[20];
    char depth[40], url[GIT_URL_MAX + 1], name[GIT_URL_MAX + 1];
    char username[GIT_SECRET_MAX + 1], password[GIT_SECRET_MAX + 1];
};

/* Where that is init knows, and git starts there. */
static bool is_home(const char *path)
{
    return path != NULL && path[0] == '~' && (path[1] == '/' || path[1] == '\0');
}

static const char *below_home(const char *path)
{
    if (is_home(path))
        path += 1 + strspn(path + 1, "/");
    return *path != '\0' ? path : ".";
}

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
    w->argv[n++] = in->path != NULL ? below_home(in->path) : w->name;
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
    str_fmt(k->path, sizeof(k->path), "%.*s", (int)ENGINE_PATH_MAX,
            in->path != NULL ? in->path : w.name);
    str_fmt(k->user, sizeof(k->user), "%s", in->user != NULL ? in->user : "");
    git_do(c,
           &(struct git_opts){.path = is_home(in->path) ? "~" : NULL,
                              .user = in->user,
                              .argv = w.argv,
                              .url = w.url,
                              .username = w.username,
                              .password = w.password,
                              .timeout_ms = in->timeout_ms},
           &ops, k);
    explicit_bzero(w.password, sizeof(w.password));
}

/* clang-format off */
const struct surface_row surface_git_clone[] = {
    {{"POST", GIT "clone"}, SCOPE_RUN, git_clone_, "gitClone",
     "Clones a repository into the sandbox.",
     .body = &clone_input, .status = 201, .answers = {&clone_shape},
     .events = "progress (Progress); at last done (GitClone) or error (Error)",
     .event_shapes = {&progress_shape}},
    {.op = NULL},
};
/* clang-format on */
