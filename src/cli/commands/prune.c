/* prune.c - `cove prune`: deletes sandboxes that do not run, and snapshots. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0,   "paused",    NULL,   "paused sandboxes too"},
    {0,   "snapshots", NULL,   "snapshots that no sandbox was made from too"},
    {0,   "older",     "TIME", "only what was created longer ago than this, such as 12h or 7d"},
    {'f', "force",     NULL,   "do not ask"},
    {0},
};

static const struct table_column columns[] = {
    {"KIND", "kind",       table_text},
    {"ID",   "id",         table_text},
    {"NAME", "name",       table_text},
    {"AGE",  "created_at", table_age},
    {0},
};
/* clang-format on */

static bool is_old(json_t *item, uint64_t older_ms)
{
    const char *created = json_string_value(json_object_get(item, "created_at"));
    uint64_t at;

    return older_ms == 0 ||
           (created != NULL && clock_read(created, &at) == 0 && at + older_ms <= clock_real_ms());
}

static void add(json_t *found, json_t *item, const char *kind, uint64_t older_ms)
{
    json_t *copy;

    if (!is_old(item, older_ms))
        return;
    copy = json_copy(item);
    json_object_set_new(copy, "kind", json_string(kind));
    json_array_append_new(found, copy);
}

static bool is_used(json_t *sandboxes, const char *snapshot)
{
    json_t *item;
    size_t i;

    json_array_foreach(sandboxes, i, item)
    {
        const char *from = json_string_value(json_object_get(item, "snapshot"));

        if (from != NULL && strcmp(from, snapshot) == 0)
            return true;
    }
    return false;
}

/* What there is to delete, into `found`. */
static int look(const struct args *a, const struct server *s, uint64_t older_ms, json_t *found,
                struct err *e)
{
    autojson json_t *boxes = NULL, *snaps = NULL;
    json_t *item;
    size_t i;

    if (client_list(s, "/v1/sandboxes?limit=100", "sandboxes", &boxes, e) < 0)
        return -1;
    json_array_foreach(json_object_get(boxes, "sandboxes"), i, item)
    {
        const char *state = json_string_value(json_object_get(item, "state"));

        if (state != NULL && (strcmp(state, "stopped") == 0 ||
                              (args_flag(a, "paused") && strcmp(state, "paused") == 0)))
            add(found, item, "sandbox", older_ms);
    }
    if (!args_flag(a, "snapshots"))
        return 0;
    if (client_list(s, "/v1/snapshots?limit=100", "snapshots", &snaps, e) < 0)
        return -1;
    json_array_foreach(json_object_get(snaps, "snapshots"), i, item)
    {
        if (!is_used(json_object_get(boxes, "sandboxes"),
                     json_string_value(json_object_get(item, "id"))))
            add(found, item, "snapshot", older_ms);
    }
    return 0;
}

/* True if the user says yes. */
static bool ask(size_t n)
{
    char answer[16] = "";

    fflush(stdout);
    fprintf(stderr, "Delete these %zu and their files? [y/N] ", n);
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int delete_all(const struct server *s, json_t *found, struct err *e)
{
    size_t done = 0, i;
    int status = 0;
    json_t *item;

    (void)e;
    json_array_foreach(found, i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));
        bool box = strcmp(json_string_value(json_object_get(item, "kind")), "sandbox") == 0;
        char path[PATH_TEXT_MAX];
        struct err why = {0};

        if (client_call(s, "DELETE", box ? path_sandbox(path, id, "") : path_snapshot(path, id, ""),
                        NULL, NULL, &why) == 0 ||
            why.kind == ERR_NOT_FOUND) {
            done++;
            continue;
        }
        cmd_complain("prune", "%s: %s", id, why.msg);
        status = err_exit(why.kind);
    }
    printf("%zu deleted\n", done);
    return status;
}

static int prune(const struct args *a, struct err *e)
{
    autojson json_t *found = json_array();
    const char *older = args_value(a, "older");
    uint64_t older_ms = 0;
    struct server s;
    size_t n;

    if (older != NULL && str_duration_ms(older, &older_ms) < 0)
        return err_set(e, ERR_INVALID, "--older: '%.60s' is not a time such as 12h or 7d", older);
    if (server_find(&s, e) < 0 || look(a, &s, older_ms, found, e) < 0)
        return -1;
    n = json_array_size(found);
    if (n == 0) {
        puts("nothing to delete");
        return 0;
    }
    if (args_flag(a, "force"))
        return delete_all(&s, found, e);
    table_print_list(found, columns);
    if (isatty(STDIN_FILENO) != 1)
        return err_set(
            e, ERR_INVALID,
            "stdin is not a terminal to ask on; --force deletes these %zu without asking", n);
    if (ask(n))
        return delete_all(&s, found, e);
    puts("nothing deleted");
    return 0;
}

const struct cmd cmd_prune = {
    .name = "prune",
    .usage = "prune [--paused] [--snapshots] [--older TIME] [--force]",
    .summary = "delete stopped sandboxes and their files, after asking",
    .opts = opts,
    .run = prune,
};
