/* logs.c - `cove logs`: what a process printed, or what happened to a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/remote.h"
#include "cli/request.h"
#include "cli/table.h"

#define LOGS_POLL_MS 500
#define LOGS_LINES "100"
#define LOGS_LINES_MAX 1000
#define LOGS_TEXT_MAX (64u << 10)
#define LOGS_CURSOR_MAX 64

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'f', "follow", NULL,     "of a process: stay until it ends; of a sandbox: stay"},
    {0,   "since",  "CURSOR", "of a process: from this position on [the first byte kept]"},
    {'n', "lines",  "N",      "of a sandbox: the newest so many entries, at most 1000 [" LOGS_LINES "]"},
    {0,   "level",  "LEVEL",  "of a sandbox: only entries of this level or worse: debug, info, warn, error"},
    {0,   "search", "TEXT",   "of a sandbox: only entries that contain this, whatever the case"},
    {0,   "json",   NULL,     "of a sandbox: as JSON, an entry per line"},
    {0},
};
/* clang-format on */

/* ---- of a sandbox ---- */

struct reading {
    struct server s;
    const char *sandbox, *lines, *level, *search;
    uint64_t count; /* `lines` as a number */
    bool json;
    char cursor[LOGS_CURSOR_MAX]; /* of the newest that was printed, or "" */
};

/* "2026-01-31T12:00:00.000Z info [p1] what it printed" */
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

/* Newest first. One answer looks at so many entries and no more, and what is searched for
 * may be further back. */
static int collect(const struct reading *r, json_t *entries, struct err *e)
{
    char cursor[LOGS_CURSOR_MAX] = "";

    do {
        autojson json_t *page = NULL;
        const char *next;

        if (fetch(r, true, cursor, &page, e) < 0)
            return -1;
        json_array_extend(entries, json_object_get(page, "entries"));
        next = json_string_value(json_object_get(page, "next_cursor"));
        str_fmt(cursor, sizeof(cursor), "%s", next != NULL ? next : "");
    } while (cursor[0] != '\0' && json_array_size(entries) < r->count);
    return 0;
}

static int print_newest(struct reading *r, struct err *e)
{
    autojson json_t *entries = json_array();
    size_t n;

    if (collect(r, entries, e) < 0)
        return -1;
    n = json_array_size(entries);
    for (size_t i = n < r->count ? n : r->count; i-- > 0;)
        print_entry(r, json_array_get(entries, i));
    remember(r, json_string_value(json_object_get(json_array_get(entries, 0), "cursor")));
    return fflush(stdout) != 0 ? err_sys(e, "stdout") : 0;
}

/* False: all that there is now is printed, or nobody answers. */
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

/* A daemon that is being restarted is waited for. */
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
        return err_set(e, ERR_INVALID, "--since is for the output of a process");
    if (r.lines == NULL)
        r.lines = LOGS_LINES;
    if (str_u64(r.lines, LOGS_LINES_MAX, &r.count) < 0 || r.count == 0)
        return err_set(e, ERR_INVALID, "--lines: a number from 1 to %d", LOGS_LINES_MAX);
    if (server_find(&r.s, e) < 0 || print_newest(&r, e) < 0)
        return -1;
    return args_flag(a, "follow") ? follow(&r, e) : 0;
}

/* ---- of a process ---- */

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
                       "--lines, --level, --search and --json are for a sandbox's log");
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
    .summary = "print the output of a process, or what happened to a sandbox",
    .about = "Of a process stdout comes out of stdout and stderr of stderr. Of a sandbox come its\n"
             "life and its processes, and what they printed if it was made with --log-output.\n"
             "A restart of the daemon goes unnoticed. Ctrl-C ends the looking, not the process.",
    .opts = opts,
    .min = 1,
    .max = 2,
    .run = logs,
};
