/* command.c - see command.h. */
#include "front/engine/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

static const char base_env[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0"
                               "LANG=C.UTF-8";
static const char term_env[] = "TERM=xterm-256color";

struct span { /* of NAME=value strings, each with its NUL */
    const char *p;
    size_t len;
};

struct var {
    const char *text;
    size_t name; /* its length */
    size_t order;
};

bool command_id_is_own(const char *id)
{
    return id[0] == '.' && strlen(id) <= INIT_ID_MAX && command_id_is_valid(id + 1);
}

bool command_id_is_valid(const char *id)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && n <= INIT_ID_MAX && id[n] == '\0' && id[0] != '.';
}

/* SESSION/COMMAND */
static bool is_ref(const char *ref, const char *slash)
{
    char session[INIT_ID_MAX + 1];
    size_t n = (size_t)(slash - ref);

    if (n > INIT_ID_MAX)
        return false;
    memcpy(session, ref, n);
    session[n] = '\0';
    return command_id_is_valid(session) && command_id_is_valid(slash + 1);
}

bool command_is_named(const char *id)
{
    const char *slash = strchr(id, '/');
    uint64_t pid;

    if (slash != NULL)
        return is_ref(id, slash);
    return id[0] == '@' ? str_u64(id + 1, INT32_MAX, &pid) == 0 : command_id_is_valid(id);
}

int command_check_id(const char *id, struct err *e)
{
    if (id == NULL || *id == '\0' || command_id_is_valid(id))
        return 0;
    return err_set(e, ERR_INVALID,
                   "id: expected 1 to %u letters, digits, '.', '_' and '-', not beginning with '.'",
                   INIT_ID_MAX);
}

int command_check_env(const char *env, size_t len, struct err *e)
{
    if (len > 0 && env[len - 1] != '\0')
        return err_set(e, ERR_INVALID, "env: the last variable has no NUL at its end");
    for (size_t at = 0; at < len; at += strlen(env + at) + 1) {
        const char *eq = strchr(env + at, '=');

        if (eq == NULL || eq == env + at)
            return err_set(e, ERR_INVALID, "env: '%.40s' is not NAME=value", env + at);
    }
    return 0;
}

static size_t count(struct span s)
{
    size_t n = 0;

    for (size_t at = 0; at < s.len; at += strlen(s.p + at) + 1)
        n++;
    return n;
}

static int by_name(const void *x, const void *y)
{
    const struct var *a = x, *b = y;
    size_t n = a->name < b->name ? a->name : b->name;
    int r = memcmp(a->text, b->text, n);

    if (r == 0 && a->name != b->name)
        r = a->name < b->name ? -1 : 1;
    if (r == 0)
        r = a->order < b->order ? -1 : 1;
    return r;
}

static bool same_name(const struct var *a, const struct var *b)
{
    return a->name == b->name && memcmp(a->text, b->text, a->name) == 0;
}

/* Sorted by name, the last of each name: a caller with many thousand variables
 * costs n log n, not n squared. */
static void merge_env(struct buf *out, const struct span *spans, size_t nspans)
{
    autofree struct var *vars = NULL;
    size_t n = 0, total = 0;

    for (size_t i = 0; i < nspans; i++)
        total += count(spans[i]);
    vars = mem_zeroed(total, sizeof(*vars));
    for (size_t i = 0; i < nspans; i++)
        for (size_t at = 0; at < spans[i].len; at += strlen(spans[i].p + at) + 1, n++)
            vars[n] = (struct var){spans[i].p + at, strcspn(spans[i].p + at, "="), n};
    qsort(vars, n, sizeof(*vars), by_name);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || !same_name(&vars[i], &vars[i + 1]))
            wire_strv_add(out, vars[i].text);
}

static int build_argv(struct buf *out, const struct process_opts *o, struct err *e)
{
    static const char *const login[] = {"bash", "-l", NULL};
    const char *const *argv = o->argv;

    if (o->term != NULL && argv == NULL && o->command == NULL)
        argv = login;
    if ((argv != NULL) == (o->command != NULL))
        return err_set(e, ERR_INVALID, "exactly one of argv and command is required");
    if (o->command != NULL) {
        wire_strv_add(out, COMMAND_SHELL);
        wire_strv_add(out, "-c");
        wire_strv_add(out, o->command);
        return 0;
    }
    if (argv[0] == NULL || argv[0][0] == '\0')
        return err_set(e, ERR_INVALID, "argv: the name of the program is empty");
    for (size_t i = 0; argv[i] != NULL; i++)
        wire_strv_add(out, argv[i]);
    return 0;
}

static bool is_place(const char *path)
{
    return path[0] == '/' || (path[0] == '~' && (path[1] == '/' || path[1] == '\0'));
}

static int check(const struct process_opts *o, struct err *e)
{
    if (!o->own && command_check_id(o->id, e) < 0)
        return -1;
    if (o->cwd != NULL && (!is_place(o->cwd) || strlen(o->cwd) > INIT_PATH_MAX))
        return err_set(e, ERR_INVALID, "cwd: expected an absolute path of at most %u bytes",
                       INIT_PATH_MAX);
    if (o->user != NULL && (*o->user == '\0' || strlen(o->user) > INIT_USER_MAX))
        return err_set(e, ERR_INVALID,
                       "user: expected a name, a uid or uid:gid of at most %u bytes",
                       INIT_USER_MAX);
    if (o->term != NULL &&
        (o->term->cols > INIT_TERM_SIDE_MAX || o->term->rows > INIT_TERM_SIDE_MAX))
        return err_set(e, ERR_INVALID, "cols and rows: expected 1 to %u", INIT_TERM_SIDE_MAX);
    return command_check_env(o->env, o->env_len, e);
}

/* For what a caller does not set: the values of the image, or ours. */
struct defaults {
    const char *user, *cwd;
    struct span env;
};

static struct defaults defaults_of(const struct sandbox *sb)
{
    struct defaults d = {COMMAND_USER, COMMAND_CWD, {NULL, 0}};
    const char *env;

    if (sb->image_len == 0)
        return d;
    d.user = sb->image;
    d.cwd = d.user + strlen(d.user) + 1;
    env = d.cwd + strlen(d.cwd) + 1;
    d.env = (struct span){env, sb->image_len - (size_t)(env - sb->image)};
    return d;
}

const char *command_user(const struct sandbox *sb)
{
    return defaults_of(sb).user;
}

const char *command_cwd(const struct sandbox *sb)
{
    return defaults_of(sb).cwd;
}

/* Not what we do by commands of our own; and a screen has no lines. */
static bool is_logged(const struct sandbox *sb, const struct process_opts *o)
{
    return sb->log_output && o->term == NULL && !o->helper && !o->own && !o->quiet;
}

int command_build(struct command *c, const struct sandbox *sb, const struct process_opts *o,
                  struct err *e)
{
    struct defaults d = defaults_of(sb);
    struct span spans[] = {{base_env, sizeof(base_env)},
                           {term_env, o->term != NULL ? sizeof(term_env) : 0},
                           d.env,
                           {sb->env, sb->env_len},
                           {o->env, o->env_len}};

    *c = (struct command){.argv = BUF_INIT(INIT_ARGS_MAX), .env = BUF_INIT(INIT_ARGS_MAX)};
    if (check(o, e) < 0 || build_argv(&c->argv, o, e) < 0)
        return -1;
    merge_env(&c->env, spans, ARRAY_LEN(spans));
    if (c->argv.failed || c->env.failed || c->argv.len + c->env.len > INIT_ARGS_MAX)
        return err_set(e, ERR_TOO_LARGE, "arguments and environment: more than %u bytes together",
                       INIT_ARGS_MAX);
    c->start = (struct init_start){
        .id = o->id,
        .argv = wire_strv_of(&c->argv),
        .env = wire_strv_of(&c->env),
        .cwd = o->cwd != NULL ? o->cwd : d.cwd,
        .user = o->user != NULL ? o->user : d.user,
        .timeout_ms = o->timeout_ms,
        .flags = (o->stdin_open ? INIT_START_STDIN : 0) | (o->helper ? INIT_START_HELPER : 0) |
                 (o->leash ? INIT_START_LEASH : 0) | (o->whole ? INIT_START_WHOLE : 0) |
                 (o->reuse ? INIT_START_REUSE : 0) | (o->gentle ? INIT_START_GENTLE : 0) |
                 (is_logged(sb, o) ? INIT_START_LOG : 0)};
    if (o->term != NULL) {
        c->start.flags |= INIT_START_TERMINAL | (o->term->get ? INIT_START_GET : 0u);
        c->start.cols = o->term->cols;
        c->start.rows = o->term->rows;
        c->start.ring = o->term->ring;
    }
    return 0;
}

void command_free(struct command *c)
{
    buf_free(&c->argv);
    buf_free(&c->env);
}
