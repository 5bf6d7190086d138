/* snapshot.c - `cove snapshot`: the files of sandboxes, kept. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/request.h"
#include "cli/stream.h"
#include "cli/table.h"
#include "cli/upload.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0,   "name",    "NAME",    "take, import: a name to find it by; list: only those of this name"},
    {0,   "sandbox", "SANDBOX", "list: only those of this sandbox"},
    {'q', "quiet",   NULL,      "list: only ids, one per line"},
    {0,   "json",    NULL,      "as JSON"},
    {0},
};
/* clang-format on */

static int take(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (request_text(body, "name", args_value(a, "name"), "--name", e) < 0)
        return -1;
    if (client_call(s, "POST", path_sandbox(path, a->operands[1], "snapshots"), body, &answer, e) <
        0)
        return -1;
    if (!args_flag(a, "json"))
        return request_print_text(answer, "id", e);
    request_print(answer);
    return 0;
}

static int next_page(const struct args *a, const struct server *s, const char *cursor, json_t **ret,
                     struct err *e)
{
    char paths[3][PATH_TEXT_MAX];

    path_query(paths[0], "/v1/snapshots?limit=100", "name", args_value(a, "name"));
    path_query(paths[1], paths[0], "sandbox", args_value(a, "sandbox"));
    path_query(paths[2], paths[1], "cursor", cursor);
    return client_call(s, "GET", paths[2], NULL, ret, e);
}

/* Every page, in one array. */
static int fetch(const struct args *a, const struct server *s, json_t *all, struct err *e)
{
    autofree char *cursor = NULL;

    do {
        autojson json_t *page = NULL;
        const char *next;

        if (next_page(a, s, cursor, &page, e) < 0)
            return -1;
        json_array_extend(all, json_object_get(page, "snapshots"));
        next = json_string_value(json_object_get(page, "next_cursor"));
        free(cursor);
        cursor = next != NULL ? strdup(next) : NULL;
    } while (cursor != NULL);
    return 0;
}

static void print_table(json_t *all)
{
    autotable struct table t;
    json_t *snapshot;
    size_t i;

    table_init(&t, "ID", "NAME", "SANDBOX", "TEMPLATE", "SIZE", "AGE", NULL);
    json_array_foreach(all, i, snapshot)
    {
        const char *name = json_string_value(json_object_get(snapshot, "name"));
        char size[TABLE_AGE_MAX], age[TABLE_AGE_MAX];

        table_add(&t, json_string_value(json_object_get(snapshot, "id")));
        table_add(&t, name != NULL ? name : "");
        table_add(&t, json_string_value(json_object_get(snapshot, "sandbox")));
        table_add(&t, json_string_value(json_object_get(snapshot, "template")));
        table_add(&t, table_size(json_object_get(snapshot, "bytes"), size));
        table_add(&t, table_age(json_object_get(snapshot, "created_at"), age));
    }
    table_print(&t);
}

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = json_object();
    json_t *all = json_array(), *snapshot;
    size_t i;

    if (json_object_set_new(answer, "snapshots", all) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (fetch(a, s, all, e) < 0)
        return -1;
    if (args_flag(a, "json"))
        request_print(answer);
    else if (args_flag(a, "quiet"))
        json_array_foreach(all, i, snapshot)
            printf("%s\n", json_string_value(json_object_get(snapshot, "id")));
    else
        print_table(all);
    return 0;
}

static int show(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char path[PATH_TEXT_MAX];

    if (client_call(s, "GET", path_snapshot(path, a->operands[1], ""), NULL, &answer, e) < 0)
        return -1;
    request_print(answer);
    return 0;
}

static int delete (const struct args *a, const struct server *s, struct err *e)
{
    char path[PATH_TEXT_MAX];

    return client_call(s, "DELETE", path_snapshot(path, a->operands[1], ""), NULL, NULL, e);
}

/* ---- as one file ---- */

static int fetch_file(const struct args *a, const struct server *s, int fd, struct err *e)
{
    char path[PATH_TEXT_MAX];
    autoreply struct reply *r = stream_ask(s, path_snapshot(path, a->operands[1], "export"), e);
    struct bar quiet = {0};

    return r == NULL ? -1 : stream_get(r, fd, &quiet, e);
}

static const char *unfinished; /* the handler below must find it */

static void drop_and_die(int signo)
{
    if (unfinished != NULL)
        unlink(unfinished);
    signal(signo, SIG_DFL);
    raise(signo);
}

/* A new file, which goes when a signal ends us. Signals wait until it is known whether the
 * file is ours. */
static int make_file(const char *to)
{
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
        sigaddset(&set, deadly[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    unfinished = fd < 0 ? NULL : to;
    for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
        if (signal(deadly[i], drop_and_die) == SIG_IGN)
            signal(deadly[i], SIG_IGN); /* nohup: as it was */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return fd;
}

/* A file that is not whole is not left behind. */
static int export_it(const struct args *a, const struct server *s, struct err *e)
{
    const char *to = a->operands[2];
    autofd int fd = strcmp(to, "-") == 0 ? dup(STDOUT_FILENO) : make_file(to);
    int r;

    if (fd < 0)
        return err_set(e, ERR_INVALID, "%s: %s", to, strerror(errno));
    r = fetch_file(a, s, fd, e);
    if (r < 0 && unfinished != NULL)
        unlink(unfinished);
    unfinished = NULL;
    return r;
}

static int import_it(const struct args *a, const struct server *s, struct err *e)
{
    static struct upload u = {.fd = -1};
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST", .path = path, .next = upload_next, .arg = &u};
    autoreply struct reply *r = NULL;
    autojson json_t *answer = NULL;
    int ret = upload_open(&u, a->operands[1], e);

    path_query(path, "/v1/snapshots/import?", "name", args_value(a, "name"));
    if (ret == 0)
        ret = reply_open(s, &c, &r, e);
    if (ret == 0)
        ret = reply_json(r, &answer, e);
    if (ret == 0 && args_flag(a, "json"))
        request_print(answer);
    else if (ret == 0)
        ret = request_print_text(answer, "id", e);
    upload_close(&u);
    return ret;
}

/* clang-format off */
static const struct {
    const char *name;
    int operands; /* itself included */
    int (*run)(const struct args *a, const struct server *s, struct err *e);
} subs[] = {
    {"take",   2, take},
    {"list",   1, list},
    {"show",   2, show},
    {"delete", 2, delete},
    {"export", 3, export_it},
    {"import", 2, import_it},
};
/* clang-format on */

static int snapshot_run(const struct args *a, struct err *e)
{
    struct server s;

    for (size_t i = 0; i < ARRAY_LEN(subs); i++)
        if (strcmp(a->operands[0], subs[i].name) == 0 && a->noperands == subs[i].operands)
            return server_find(&s, e) < 0 ? -1 : subs[i].run(a, &s, e);
    return err_set(e, ERR_INVALID, "it is `cove %s`", a->cmd->usage);
}

const struct cmd cmd_snapshot = {
    .name = "snapshot",
    .usage = "snapshot take|list|show|delete|export|import [OPTIONS] [SANDBOX|SNAPSHOT] [FILE|-]",
    .summary = "keep the files of a sandbox, for new ones to start from",
    .about = "`take` prints the id of the snapshot; `cove create --snapshot ID` starts from it. A "
             "name may be\n"
             "given to several and means the newest.\n"
             "`export SNAPSHOT FILE` writes all of its files as an OCI image layout (tar.zst), "
             "`import FILE`\n"
             "makes a snapshot of that, or of any archive that `cove template add` takes.",
    .opts = opts,
    .words = "take list show delete export import",
    .min = 1,
    .max = 3,
    .run = snapshot_run,
};
