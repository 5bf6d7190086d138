/* template.c - `cove template`: manages the root filesystems that sandboxes start from. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/commands/progress.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/files/pack.h"
#include "cli/files/stream.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "print JSON"},
    {0, "disk", "SIZE", "add: how much disk it may take, such as 20G [the server's setting disk]"},
    {0, "debootstrap", "SUITE", "build: the Debian release, such as bookworm"},
    {0, "packages", "LIST", "build: additional packages, separated by commas"},
    {0, "mirror", "URL", "build: the package mirror [debootstrap's default]"},
    {0},
};
/* clang-format on */

/* clang-format off */
static const struct table_column columns[] = {
    {"NAME",  "name",       table_text},
    {"STATE", "state",      table_text},
    {"SIZE",  "bytes",      table_size},
    {"FILES", "files",      table_number},
    {"AGE",   "created_at", table_age},
    {"NOTE",  "note",       table_text},
    {0},
};
/* clang-format on */

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;

    if (client_call(s, "GET", "/v1/templates", NULL, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "templates", columns);
    return 0;
}

/* Sends a request that makes a template, and shows its progress on a terminal. */
static int watch(const struct server *s, const struct call *c, const struct args *a, struct bar *b,
                 const char *did, struct err *e)
{
    autojson json_t *answer = NULL;
    int ret = progress_call(s, c, b, &answer, e);

    if (ret < 0)
        bar_end(b);
    else
        bar_sum(b, did, true);
    if (ret == 0 && args_flag(a, "json"))
        request_print(answer);
    return ret;
}

static int refresh(const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = path_template(path, a->operands[1], "refresh"),
                     .accept = "text/event-stream"};
    struct bar bar = {.what = a->operands[1]};

    bar_phase(&bar, "reading", NULL, 0, 0);
    return watch(s, &c, a, &bar, "made template", e);
}

/* ---- add ---- */

static int add(const struct args *a, const struct server *s, struct err *e)
{
    static struct upload u; /* too large for the stack */
    struct bar bar = {.what = a->operands[1]};
    char path[PATH_TEXT_MAX], named[PATH_TEXT_MAX];
    struct call c = {.method = "PUT",
                     .path = path,
                     .accept = "text/event-stream",
                     .next = upload_next,
                     .arg = &u};
    int r;

    path_template(named, a->operands[1], "");
    str_fmt(named + strlen(named), sizeof(named) - strlen(named), "?");
    if (request_disk(a, path, named, e) < 0)
        return -1;
    r = upload_open(&u, a->operands[2], &bar, e);
    u.after = "unpacking";
    if (r == 0)
        bar_phase(&bar, "sending", NULL, 0, bar.total);
    if (r == 0)
        r = watch(s, &c, a, &bar, "added template", e);
    if (r == 0 && u.pack != NULL && pack_left_out(u.pack) > 0)
        cmd_complain("template", "%lu devices or sockets were left out", pack_left_out(u.pack));
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
            return err_set(e, ERR_INVALID, "--packages is not UTF-8");
        text += n;
        text += strspn(text, ", ");
    }
    return 0;
}

static int build(const struct args *a, const struct server *s, struct err *e)
{
    const char *suite = args_value(a, "debootstrap");
    struct bar bar = {.what = a->operands[1]};
    autojson json_t *how = json_object(), *body = json_object();
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = path_template(path, a->operands[1], "build"),
                     .json = body,
                     .accept = "text/event-stream"};

    if (suite == NULL)
        return err_set(e, ERR_INVALID,
                       "build: --debootstrap SUITE is missing, such as --debootstrap bookworm");
    if (request_text(how, "suite", suite, "--debootstrap", e) < 0 ||
        request_text(how, "mirror", args_value(a, "mirror"), "--mirror", e) < 0 ||
        add_packages(how, args_value(a, "packages"), e) < 0)
        return -1;
    json_object_set(body, "debootstrap", how);
    bar_phase(&bar, "building", NULL, 0, 0);
    return watch(s, &c, a, &bar, "built template", e);
}

/* ---- show, delete, alias ---- */

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
static const struct cmd_sub subs[] = {
    {"list",    "",                "list all templates", list},
    {"show",    "NAME",            "show one as JSON, with the settings of its image", show},
    {"add",     "NAME FILE|DIR|-", "make a template of an archive, of a directory, or of an archive on stdin", add},
    {"build",   "NAME",            "make a template of Debian packages, in a temporary sandbox", build},
    {"alias",   "NAME ALIAS",      "add another name for a template", alias},
    {"delete",  "NAME",            "delete a template; refused while a sandbox uses it", delete},
    {"refresh", "NAME",            "make `base` again from the files of this host", refresh},
    {0},
};
/* clang-format on */

const struct cmd cmd_template = {
    .name = "template",
    .usage =
        "template list|show|add|build|alias|delete|refresh [OPTIONS] [NAME] [FILE|DIR|-|ALIAS]",
    .summary = "manage templates: the root filesystems that sandboxes start from",
    .about = "An archive is a tar of a root filesystem, or an image in the format of `docker save` "
             "or an\n"
             "OCI layout; plain, gzip or zstd. `build` needs --debootstrap. Sandboxes that use an "
             "older\n"
             "version of a template keep it.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};
