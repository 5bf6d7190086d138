/* logs.c - `cove logs`: prints the output of a process, or the log of a sandbox. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/run/remote.h"
#include "cli/table.h"

#define LOGS_POLL_MS 500
#define LOGS_LINES "100"
#define LOGS_LINES_MAX 1000
#define LOGS_TEXT_MAX (64u << 10)
#define LOGS_CURSOR_MAX 64

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'f', "follow", NULL,     "wait for more: of a process until it ends, of a sandbox until Ctrl-C"},
    {0,   "since",  "CURSOR", "process: start at this position [the first byte that is kept]"},
    {'n', "lines",  "N",      "sandbox: the newest N entries, at most 1000 [" LOGS_LINES "]"},
    {0,   "level",  "LEVEL",  "sandbox: only entries of at least this level: debug, info, warn, error"},
    {0,   "search", "TEXT",   "sandbox: only entries that contain this text, ignoring case"},
    {0,   "json",   NULL,     "sandbox: print JSON, one entry per line"},
    {0},
};
/* clang-format on */

/* ---- the log of a sandbox ---- */

struct reading {
    struct server s;
    const char *sandbox, *lines, *level, *search;
    uint64_t count; /* `lines` as a number */
    bool json;
    char cursor[LOGS_CURSOR_MAX]; /* of the newest printed entry, or "" */
};

/* "2026-01-31T12:00:00.000Z info [PROCESS] message" */
static void print_entry(const struct reading *r, json_t *entry)
{
    json_t *fields = json_object_get(entry, "fields");
    const char *event = json_string_value(json_object_get(fields, "event"));
    const char *process = json_string_value(json_object_get(fields, "process"));
    const char *message = json_string_value(json_object_get(entry, "message"));
    autofree char *text = table_printable(message != NULL ? message : "", LOGS_TEXT_MAX);

    if (r->json) {
        request_dump(entry, JSON_COMPACT);
        return;
    }
    printf("%s %-5s ", json_string_value(json_object_get(entry, "at")),
           json_string_value(json_object_get(entry, "level")));
    if (event != NULL && process != NULL && strcmp(event, "process.output") == 0)
        printf("[%s] ", process);
    printf("%s\n", text);
}

static int fetch(const struct reading *r, bool backward, const char *cursor, json_t **ret,
                 struct err *e)
{
    char path[PATH_TEXT_MAX], a[PATH_TEXT_MAX], b[PATH_TEXT_MAX];

    path_sandbox(path, r->sandbox,
                 backward ? "logs?direction=backward" : "logs?direction=forward&limit=1000");
    path_query(a, path, "limit", backward ? r->lines : NULL);
    path_query(b, a, "level", r->level);
    path_query(a, b, "search", r->search);
    path_query(b, a, "cursor", cursor[0] != '\0' ? cursor : NULL);
    return client_call(&r->s, "GET", b, NULL, ret, e);
}

static void remember(struct reading *r, const char *cursor)
{
    if (cursor != NULL)
        str_fmt(r->cursor, sizeof(r->cursor), "%s", cursor);
}

/* One answer covers a limited number of entries, and matches of --search may be older: asks
 * for more pages, newest first, until there are enough. */
static int print_newest(struct reading *r, struct err *e)
{
    autojson json_t *entries = json_array();
    char cursor[LOGS_CURSOR_MAX] = "";
    size_t n;

    do {
        autojson json_t *page = NULL;
        const char *next;

        if (fetch(r, true, cursor, &page, e) < 0)
            return -1;
        json_array_extend(entries, json_object_get(page, "entries"));
        next = json_string_value(json_object_get(page, "next_cursor"));
        str_fmt(cursor, sizeof(cursor), "%s", next != NULL ? next : "");
    } while (cursor[0] != '\0' && json_array_size(entries) < r->count);
    n = json_array_size(entries);
    for (size_t i = n < r->count ? n : r->count; i-- > 0;)
        print_entry(r, json_array_get(entries, i));
    remember(r, json_string_value(json_object_get(json_array_get(entries, 0), "cursor")));
    return fflush(stdout) != 0 ? err_sys(e, "stdout") : 0;
}

/* False: there are no more entries now, or the request failed and `e` is set. */
static bool print_more(struct reading *r, struct err *e)
{
    autojson json_t *page = NULL;
    json_t *entries, *entry;
    size_t i;

    if (fetch(r, false, r->cursor, &page, e) < 0)
        return false;
    e->msg[0] = '\0';
    entries = json_object_get(page, "entries");
    json_array_foreach(entries, i, entry) print_entry(r, entry);
    remember(r, json_string_value(json_object_get(page, "next_cursor")));
    return json_array_size(entries) == LOGS_LINES_MAX;
}

/* Keeps trying while the daemon restarts. */
static int follow(struct reading *r, struct err *e)
{
    const struct timespec pause = {.tv_nsec = LOGS_POLL_MS * 1000000l};
    uint64_t heard_ms = clock_mono_ms();

    for (;;) {
        e->msg[0] = '\0';
        while (print_more(r, e))
            ;
        if (fflush(stdout) != 0)
            return err_sys(e, "stdout");
        if (e->msg[0] == '\0')
            heard_ms = clock_mono_ms();
        else if ((!client_is_unreached(e) && !client_is_broken(e)) ||
                 clock_mono_ms() - heard_ms > REMOTE_RETRY_MS)
            return -1;
        nanosleep(&pause, NULL);
    }
}

static int sandbox_logs(const struct args *a, struct err *e)
{
    struct reading r = {.sandbox = a->operands[0],
                        .lines = args_value(a, "lines"),
                        .level = args_value(a, "level"),
                        .search = args_value(a, "search"),
                        .json = args_flag(a, "json")};

    if (args_value(a, "since") != NULL)
        return err_set(e, ERR_INVALID,
                       "--since needs a PROCESS: it is a position in the output of a process");
    if (r.lines == NULL)
        r.lines = LOGS_LINES;
    if (str_u64(r.lines, LOGS_LINES_MAX, &r.count) < 0 || r.count == 0)
        return err_set(e, ERR_INVALID, "--lines: '%.20s' is not a number from 1 to %d", r.lines,
                       LOGS_LINES_MAX);
    if (server_find(&r.s, e) < 0 || print_newest(&r, e) < 0)
        return -1;
    return args_flag(a, "follow") ? follow(&r, e) : 0;
}

/* ---- the output of a process ---- */

static int process_logs(const struct args *a, struct err *e)
{
    struct remote_look look = {.sandbox = a->operands[0],
                               .process = a->operands[1],
                               .since = args_value(a, "since"),
                               .follow = args_flag(a, "follow")};
    struct server s;

    if (args_value(a, "lines") != NULL || args_value(a, "level") != NULL ||
        args_value(a, "search") != NULL || args_flag(a, "json"))
        return err_set(e, ERR_INVALID,
                       "--lines, --level, --search and --json are for the log of a sandbox; omit "
                       "PROCESS");
    if (server_find(&s, e) < 0)
        return -1;
    return remote_logs(&s, &look, e);
}

static int logs(const struct args *a, struct err *e)
{
    return a->noperands == 1 ? sandbox_logs(a, e) : process_logs(a, e);
}

const struct cmd cmd_logs = {
    .name = "logs",
    .usage = "logs [OPTIONS] SANDBOX [PROCESS]",
    .summary = "print the output of a process, or the log of a sandbox",
    .about =
        "Of a process: its stdout and stderr, on our stdout and stderr. Of a sandbox: its events\n"
        "and those of its processes, and their output if it was created with --log-output. A\n"
        "restart of the daemon does not interrupt it. Ctrl-C ends `cove logs`, not the process.",
    .opts = opts,
    .min = 1,
    .max = 2,
    .run = logs,
};
