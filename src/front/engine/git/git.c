/* git.c - see git.h. */
#include "front/engine/git.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/work.h"
#include "mem/mem.h"

#define ENV_MAX (64u << 10)
#define PROGRESS_MAX 1024u /* of progress; longer ones are none */

struct git {
    struct process_stream *stream;
    const struct git_ops *ops; /* NULL: closed in a callback */
    void *arg;
    bool telling;
    struct buf words; /* the last of stderr */
    struct buf line;  /* of it, while progress is wanted */
    char *secret;
};

/* Options before those of a run. Settings that would change the output we parse, or prompt, are
 * switched off; the rest is left to the user. */
/* clang-format off */
static const char *const common[] = {
    "git", "--no-pager", "--literal-pathspecs",
    "-c", "safe.directory=*",
    "-c", "core.fsmonitor=false",
    "-c", "core.quotePath=false",
    "-c", "color.ui=false",
    "-c", "log.showSignature=false",
    "-c", "diff.noprefix=false",
    "-c", "diff.mnemonicPrefix=false",
    "-c", "diff.suppressBlankEmpty=false",
    "-c", "diff.relative=false",
};
/* clang-format on */

static void git_free(struct git *r)
{
    if (r->secret != NULL)
        explicit_bzero(r->secret, strlen(r->secret));
    free(r->secret);
    buf_free(&r->words);
    buf_free(&r->line);
    free(r);
}

/* ---- what it says ---- */

static void take_line(struct git *r)
{
    const char *text;
    uint64_t done, total;

    if (!r->line.failed &&
        git_progress((char *)(uintptr_t)buf_cstr(&r->line), &text, &done, &total))
        r->ops->on_progress(r->arg, text, done, total);
    r->line.failed = false;
    buf_clear(&r->line);
}

static void take_stderr(struct git *r, const struct process_output *m)
{
    const char *p = m->data.p;

    work_words(&r->words, m);
    for (size_t i = 0; i < m->data.len && r->ops != NULL && r->ops->on_progress != NULL; i++) {
        if (p[i] == '\r' || p[i] == '\n')
            take_line(r);
        else
            buf_addc(&r->line, p[i]);
    }
}

static void on_output(void *arg, const struct process_output *m)
{
    struct git *r = arg;

    r->telling = true;
    if (m->stream == PROCESS_STDERR)
        take_stderr(r, m);
    else if (r->ops->on_data != NULL)
        r->ops->on_data(r->arg, m->data.p, m->data.len);
    r->telling = false;
    if (r->ops == NULL)
        git_free(r);
}

static void ended(struct git *r, const struct err *e)
{
    const struct git_ops *ops = r->ops;
    void *arg = r->arg;

    git_free(r);
    ops->on_done(arg, e);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct git *r = arg;
    struct err e;

    if (m->code == 0 && m->signal == 0) {
        ended(r, NULL);
        return;
    }
    if (m->flags & PROCESS_EXIT_TIMED_OUT)
        err_set(&e, ERR_TIMEOUT, "git timed out");
    else if (m->flags & PROCESS_EXIT_OOM)
        err_set(&e, ERR_LIMIT, "git was killed: the sandbox is out of memory");
    else if (m->signal != 0)
        err_set(&e, ERR_CONFLICT, "git was killed inside the sandbox by signal %u", m->signal);
    else
        git_words(buf_cstr(&r->words), r->words.len, r->secret, &e);
    ended(r, &e);
}

static void on_fail(void *arg, const struct err *e)
{
    struct err why = *e;

    ended(arg, &why);
}

static const struct process_ops stream_ops = {
    .on_output = on_output, .on_exit = on_exit_, .on_fail = on_fail};

/* ---- what it is given ---- */

static void put_env(struct buf *env, const char *name, const char *value)
{
    buf_adds(env, name);
    buf_adds(env, "=");
    buf_adds(env, value);
    buf_addc(env, '\0');
}

/* The helper answers for this server only, since submodules may be on other servers. The empty
 * helper before it switches off all others, which could store the credentials. */
static void put_credentials(struct buf *env, const struct git_opts *o)
{
    const char *host = strstr(o->url, "://");
    char key[GIT_URL_MAX + 64];

    if (host == NULL)
        return;
    snprintf(key, sizeof(key), "credential.%.*s.helper",
             (int)(host + 3 - o->url + (int)strcspn(host + 3, "/?#")), o->url);
    put_env(env, "GIT_CONFIG_COUNT", "2");
    put_env(env, "GIT_CONFIG_KEY_0", "credential.helper");
    put_env(env, "GIT_CONFIG_VALUE_0", "");
    put_env(env, "GIT_CONFIG_KEY_1", key);
    put_env(env, "GIT_CONFIG_VALUE_1",
            "!f() { test \"$1\" != get || printf 'username=%s\\npassword=%s\\n' "
            "\"$COVE_GIT_USERNAME\" \"$COVE_GIT_PASSWORD\"; }; f");
    put_env(env, "COVE_GIT_USERNAME", *o->username != '\0' ? o->username : "x-access-token");
    put_env(env, "COVE_GIT_PASSWORD", o->password);
}

/* A path from the root needs no directory to start in; one of the home is init's. */
static const char *cwd_for(const char *path)
{
    return path == NULL ? NULL : path[0] == '/' ? "/" : path[0] == '~' ? path : NULL;
}

struct git *git_run(struct ref ref, const struct git_opts *o, const struct git_ops *ops, void *arg)
{
    const char *argv[ARRAY_LEN(common) + GIT_ARGS_MAX + 3];
    autobuf struct buf env = BUF_INIT(ENV_MAX);
    struct process_opts p = {.argv = argv,
                             .cwd = cwd_for(o->path),
                             .user = o->user,
                             .timeout_ms = o->ask ? 0 : o->timeout_ms,
                             .stdin_open = o->input,
                             .gentle = true,
                             .quiet = true,
                             .leash = o->ask};
    struct git *r = mem_zeroed(1, sizeof(*r));
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        argv[n++] = common[i];
    if (o->path != NULL && o->path[0] != '~') {
        argv[n++] = "-C";
        argv[n++] = o->path;
    }
    for (size_t i = 0; o->argv[i] != NULL && i < GIT_ARGS_MAX; i++)
        argv[n++] = o->argv[i];
    argv[n] = NULL;
    put_env(&env, "LC_ALL", "C.UTF-8");
    put_env(&env, "GIT_TERMINAL_PROMPT", "0");
    put_env(&env, "GIT_ASKPASS", "");
    put_env(&env, "GIT_EDITOR", "true");
    if (o->ask)
        put_env(&env, "GIT_OPTIONAL_LOCKS", "0");
    if (o->password != NULL && *o->password != '\0')
        put_credentials(&env, o);
    buf_add(&env, o->env, o->env_len);
    p.env = buf_data(&env);
    p.env_len = env.len;
    r->ops = ops;
    r->arg = arg;
    r->secret = o->password != NULL && *o->password != '\0' ? mem_text(o->password) : NULL;
    buf_init(&r->words, WORK_WORDS_MAX);
    buf_init(&r->line, PROGRESS_MAX);
    r->stream = process_run(ref, &p, true, &stream_ops, r);
    return r;
}

void git_feed(struct git *r, const void *p, size_t n)
{
    process_feed(r->stream, p, n, true);
}

void git_pause(struct git *r, bool paused)
{
    process_pause(r->stream, paused);
}

void git_close(struct git *r)
{
    if (r == NULL)
        return;
    process_close(r->stream);
    r->ops = NULL;
    if (!r->telling)
        git_free(r);
}
