/* template.c - `cove template`: what sandboxes start as. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/pack.h"
#include "cli/path.h"
#include "cli/request.h"
#include "cli/sse.h"
#include "cli/table.h"
#include "cli/upload.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "as JSON"},
    {0, "debootstrap", "SUITE", "build: the Debian release, as bookworm"},
    {0, "packages", "LIST", "build: more packages, with commas between them"},
    {0, "mirror", "URL", "build: where the packages are; without it debootstrap's own"},
    {0},
};
/* clang-format on */

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    autotable struct table t;
    json_t *template;
    size_t i;

    table_init(&t, "NAME", "STATE", "SIZE", "FILES", "AGE", "NOTE", NULL);
    if (client_call(s, "GET", "/v1/templates", NULL, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json")) {
        request_print(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "templates"), i, template)
    {
        char size[TABLE_AGE_MAX], age[TABLE_AGE_MAX], files[24];

        snprintf(files, sizeof(files), "%lld",
                 (long long)json_integer_value(json_object_get(template, "files")));
        table_add(&t, json_string_value(json_object_get(template, "name")));
        table_add(&t, json_string_value(json_object_get(template, "state")));
        table_add(&t, table_size(json_object_get(template, "bytes"), size));
        table_add(&t, files);
        table_add(&t, table_age(json_object_get(template, "created_at"), age));
        table_add(&t, json_string_value(json_object_get(template, "note")));
    }
    table_print(&t);
    return 0;
}

#define PROGRESS_MAX 120 /* bytes shown of what a build says */

struct progress {
    bool shown; /* on a terminal, one line that is written over and over */
    bool done;
    json_t *answer; /* of `done` */
};

static int on_event(void *arg, const struct sse *s, const char *data, size_t len, struct err *e)
{
    struct progress *p = arg;
    autojson json_t *j = json_loadb(data, len, 0, NULL);
    json_t *error = json_object_get(j, "error");
    json_int_t done = json_integer_value(json_object_get(j, "done"));
    json_int_t total = json_integer_value(json_object_get(j, "total"));
    const char *text = json_string_value(json_object_get(j, "text"));

    if (error != NULL)
        return err_set(e, err_from_code(json_string_value(json_object_get(error, "code"))), "%s",
                       json_string_value(json_object_get(error, "message"))
                           ?: "the server gives no reason");
    if (strcmp(s->event, "done") == 0 && !p->done) {
        p->done = true;
        p->answer = json_incref(j);
    }
    if (strcmp(s->event, "progress") == 0 && isatty(STDERR_FILENO)) {
        autofree char *shown = table_printable(text != NULL ? text : "", PROGRESS_MAX);

        fprintf(stderr, "\r\033[K%s", shown);
        if (total > 0)
            fprintf(stderr, " %lld%%", (long long)(done * 100 / total));
        p->shown = true;
    }
    return 0;
}

static int read_progress(struct reply *r, struct progress *p, struct err *e)
{
    enum reply_event ev = REPLY_MORE;
    struct sse s;
    const char *text;
    size_t n;
    int ret = 0;

    sse_init(&s);
    while (ret == 0 && (ev = reply_read(r, &text, &n, e)) > REPLY_END)
        if (ev == REPLY_MORE)
            reply_wait(r);
        else
            ret = sse_feed(&s, text, n, on_event, p, e);
    sse_free(&s);
    if (p->shown)
        fputs("\r\033[K", stderr);
    if (ret < 0 || ev == REPLY_BROKEN)
        return -1;
    return p->done ? 0 : err_set(e, ERR_UNAVAILABLE, "the server ended before the template did");
}

/* Something long that ends with a template, watched on a terminal. */
static int watch(const struct server *s, const struct call *c, bool json, struct err *e)
{
    autoreply struct reply *r = NULL;
    autojson json_t *answer = NULL;
    struct progress p = {0};
    int ret;

    if (reply_open(s, c, &r, e) < 0)
        return -1;
    ret = reply_is_sse(r) ? read_progress(r, &p, e) : reply_json(r, &answer, e);
    if (ret == 0 && json)
        request_print(answer != NULL ? answer : p.answer);
    json_decref(p.answer);
    return ret;
}

static int refresh(const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = path_template(path, a->operands[1], "refresh"),
                     .accept = "text/event-stream"};

    return watch(s, &c, args_flag(a, "json"), e);
}

/* ---- add ---- */

static int add(const struct args *a, const struct server *s, struct err *e)
{
    static struct upload u = {.fd = -1};
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "PUT",
                     .path = path_template(path, a->operands[1], ""),
                     .accept = "text/event-stream",
                     .next = upload_next,
                     .arg = &u};
    int r = upload_open(&u, a->operands[2], e);

    if (r == 0)
        r = watch(s, &c, args_flag(a, "json"), e);
    if (r == 0 && u.pack != NULL && pack_left_out(u.pack) > 0)
        fprintf(stderr, "cove template: %lu devices or sockets were left out\n",
                pack_left_out(u.pack));
    upload_close(&u);
    return r;
}

/* ---- build ---- */

static int add_packages(json_t *how, const char *text, struct err *e)
{
    json_t *list = json_array();

    json_object_set_new(how, "packages", list);
    while (text != NULL && *text != '\0') {
        size_t n = strcspn(text, ", ");

        if (n > 0 && json_array_append_new(list, json_stringn(text, n)) < 0)
            return err_set(e, ERR_INVALID, "--packages: not UTF-8");
        text += n;
        text += strspn(text, ", ");
    }
    return 0;
}

static int build(const struct args *a, const struct server *s, struct err *e)
{
    const char *suite = args_value(a, "debootstrap");
    autojson json_t *how = json_object(), *body = json_object();
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = path_template(path, a->operands[1], "build"),
                     .json = body,
                     .accept = "text/event-stream"};

    if (suite == NULL)
        return err_set(e, ERR_INVALID, "build wants --debootstrap SUITE");
    if (request_text(how, "suite", suite, "--debootstrap", e) < 0 ||
        request_text(how, "mirror", args_value(a, "mirror"), "--mirror", e) < 0 ||
        add_packages(how, args_value(a, "packages"), e) < 0)
        return -1;
    json_object_set(body, "debootstrap", how);
    return watch(s, &c, args_flag(a, "json"), e);
}

/* ---- small ones ---- */

static int show(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "GET", path_template(path, a->operands[1], ""), NULL, &answer, e) < 0)
        return -1;
    request_print(answer);
    return 0;
}

static int delete (const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];

    return client_call(s, "DELETE", path_template(path, a->operands[1], ""), NULL, NULL, e);
}

static int alias(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (request_text(body, "alias", a->operands[2], "ALIAS", e) < 0)
        return -1;
    if (client_call(s, "POST", path_template(path, a->operands[1], "alias"), body, &answer, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    return 0;
}

/* clang-format off */
static const struct {
    const char *name;
    int operands; /* itself included */
    int (*run)(const struct args *a, const struct server *s, struct err *e);
} subs[] = {
    {"list",    1, list},
    {"add",     3, add},
    {"build",   2, build},
    {"show",    2, show},
    {"alias",   3, alias},
    {"delete",  2, delete},
    {"refresh", 2, refresh},
};
/* clang-format on */

static int template_run(const struct args *a, struct err *e)
{
    struct server s;

    for (size_t i = 0; i < ARRAY_LEN(subs); i++)
        if (strcmp(a->operands[0], subs[i].name) == 0 && a->noperands == subs[i].operands)
            return server_find(&s, e) < 0 ? -1 : subs[i].run(a, &s, e);
    return err_set(e, ERR_INVALID, "it is `cove %s`", a->cmd->usage);
}

const struct cmd cmd_template = {
    .name = "template",
    .usage =
        "template list|show|add|build|alias|delete|refresh [OPTIONS] [NAME] [FILE|DIR|-|ALIAS]",
    .summary = "add, build, list, show, alias and delete what sandboxes start as",
    .about =
        "list                        all there are\n"
        "show NAME                   one, with what its image says\n"
        "add NAME FILE|DIR|-         from an archive (of a root filesystem, or of an image as\n"
        "                            docker save or an OCI layout has it; plain, gzip or zstd),\n"
        "                            from a directory, or from an archive on stdin\n"
        "build NAME --debootstrap SUITE [--packages LIST] [--mirror URL]\n"
        "                            from Debian's packages, in a throw-away sandbox\n"
        "alias NAME ALIAS            one more name for it\n"
        "delete NAME                 refused while a sandbox stands on it\n"
        "refresh base                from this host's files, anew\n\n"
        "Sandboxes that stand on an older version keep it.",
    .opts = opts,
    .min = 1,
    .max = 3,
    .words = "list show add build alias delete refresh",
    .run = template_run,
};
