/* snapshot.c - `cove snapshot`: takes, lists, exports and imports snapshots. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/commands/progress.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/files/stream.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0,   "name",    "NAME",    "take, import: name of the snapshot; list: only snapshots of this name"},
    {0,   "sandbox", "SANDBOX", "list: only snapshots of this sandbox"},
    {'q', "quiet",   NULL,      "list: print only ids, one per line"},
    {0,   "disk",    "SIZE",    "import: how much disk it may take, such as 20G [the most of one sandbox]"},
    {0,   "json",    NULL,      "print JSON"},
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
    return request_print_made(a, answer, "id", e);
}

/* clang-format off */
static const struct table_column columns[] = {
    {"ID",       "id",         table_text},
    {"NAME",     "name",       table_text},
    {"SANDBOX",  "sandbox",    table_text},
    {"TEMPLATE", "template",   table_text},
    {"SIZE",     "bytes",      table_size},
    {"AGE",      "created_at", table_age},
    {0},
};
/* clang-format on */

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;
    char named[PATH_TEXT_MAX], path[PATH_TEXT_MAX];

    path_query(named, "/v1/snapshots?limit=100", "name", args_value(a, "name"));
    path_query(path, named, "sandbox", args_value(a, "sandbox"));
    if (client_list(s, path, "snapshots", &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "snapshots", columns);
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

/* ---- export and import ---- */

static const char *unfinished; /* for drop_and_die(), a signal handler */

static void drop_and_die(int signo)
{
    if (unfinished != NULL)
        unlink(unfinished);
    signal(signo, SIG_DFL);
    raise(signo);
}

/* Creates a file that is removed if a signal kills us. Signals are blocked until we know
 * whether we created it: an existing file must not be removed. */
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
            signal(deadly[i], SIG_IGN); /* nohup: keep ignoring it */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return fd;
}

static int export_it(const struct args *a, const struct server *s, struct err *e)
{
    const char *to = a->operands[2];
    autofd int fd = strcmp(to, "-") == 0 ? dup(STDOUT_FILENO) : make_file(to);
    char path[PATH_TEXT_MAX];
    autoreply struct reply *r = NULL;
    struct bar bar = {.what = to};
    int ret;

    if (fd < 0)
        return err_set(e, ERR_INVALID, "create %s: %s", to, strerror(errno));
    /* the server reads all files once for their digest before it sends the first byte */
    bar_phase(&bar, "reading", a->operands[1], 0, 0);
    r = stream_ask(s, path_snapshot(path, a->operands[1], "export"), e);
    bar.phase = "receiving";
    ret = r == NULL ? -1 : stream_get(r, fd, &bar, e);
    if (ret < 0)
        bar_end(&bar);
    else
        bar_sum(&bar, "exported", true);
    if (ret < 0 && unfinished != NULL)
        unlink(unfinished); /* no incomplete file is left */
    unfinished = NULL;
    return ret;
}

static int import_it(const struct args *a, const struct server *s, struct err *e)
{
    static struct upload u; /* too large for the stack */
    struct bar bar = {.what = a->operands[1]};
    char path[PATH_TEXT_MAX], named[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = path,
                     .accept = "text/event-stream",
                     .next = upload_next,
                     .arg = &u};
    autojson json_t *answer = NULL;
    int ret;

    path_query(named, "/v1/snapshots/import?", "name", args_value(a, "name"));
    if (request_disk(a, path, named, e) < 0)
        return -1;
    ret = upload_open(&u, a->operands[1], &bar, e);
    u.after = "unpacking";
    if (ret == 0) {
        bar_phase(&bar, "sending", NULL, 0, bar.total);
        ret = progress_call(s, &c, &bar, &answer, e);
    }
    upload_close(&u);
    if (ret < 0) {
        bar_end(&bar);
        return -1;
    }
    bar_sum(&bar, "imported", true);
    return request_print_made(a, answer, "id", e);
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"take",   "SANDBOX",       "take a snapshot and print its id", take},
    {"list",   "",              "list snapshots", list},
    {"show",   "SNAPSHOT",      "show one snapshot as JSON", show},
    {"delete", "SNAPSHOT",      "delete a snapshot", delete},
    {"export", "SNAPSHOT FILE", "write its files as an OCI image layout (tar.zst); - is stdout", export_it},
    {"import", "FILE",          "make a snapshot of such a file, or of any archive that `cove template add` accepts", import_it},
    {0},
};
/* clang-format on */

const struct cmd cmd_snapshot = {
    .name = "snapshot",
    .usage = "snapshot take|list|show|delete|export|import [OPTIONS] [SANDBOX|SNAPSHOT] [FILE]",
    .summary = "keep the files of a sandbox, to start new sandboxes from",
    .about = "SNAPSHOT is an id or a name. Several snapshots may have the same name; it means the "
             "newest\n"
             "of them. `cove create --snapshot SNAPSHOT` makes a sandbox with its files.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};
