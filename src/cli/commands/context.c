/* context.c - `cove context`: names for servers, and which of them is used. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/client/contexts.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "key-file", "FILE", "add: read the key from this file [from stdin]"},
    {0, "json",     NULL,   "list: print JSON; keys are not shown"},
    {0},
};
/* clang-format on */

static json_t *of(json_t *all, const char *name)
{
    return json_object_get(json_object_get(all, "contexts"), name);
}

static int missing(const char *name, struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "no context '%.80s'; `cove context list` shows them", name);
}

static int read_key(const char *file, char key[CLIENT_KEY_MAX], struct err *e)
{
    FILE *f = file != NULL ? fopen(file, "re") : stdin;

    if (f == NULL)
        return err_path(e, "--key-file %s", file);
    if (file == NULL && isatty(STDIN_FILENO) == 1)
        fputs("API key: ", stderr);
    if (fgets(key, CLIENT_KEY_MAX, f) == NULL)
        key[0] = '\0';
    if (file != NULL)
        fclose(f);
    key[strcspn(key, "\r\n")] = '\0';
    if (*key == '\0')
        return err_set(e, ERR_INVALID,
                       "the API key is missing; give it on stdin, or --key-file FILE");
    return 0;
}

/* A server that is down can be added; a wrong URL or key is refused. The first one becomes the
 * current one. */
static int add(const struct args *a, const struct server *unused, struct err *e)
{
    const char *name = a->operands[1], *url = a->operands[2];
    autojson json_t *all = NULL, *answer = NULL;
    char key[CLIENT_KEY_MAX];
    struct server s;

    (void)unused;
    if (contexts_check_name(name, e) < 0 || server_parse_url(&s, url, e) < 0 ||
        read_key(args_value(a, "key-file"), key, e) < 0 || contexts_load(&all, e) < 0)
        return -1;
    json_object_set_new(json_object_get(all, "contexts"), name,
                        json_pack("{s:s,s:s}", "url", url, "key", key));
    if (server_from_context(&s, all, name, e) < 0)
        return -1;
    if (client_call(&s, "GET", "/v1/sandboxes?limit=1", NULL, &answer, e) < 0) {
        if (e->kind != ERR_UNAVAILABLE)
            return err_wrap(e, "%s", url);
        cmd_complain("context", "added, but the server does not answer now: %s", e->msg);
    }
    if (!json_is_string(json_object_get(all, "current")))
        json_object_set_new(all, "current", json_string(name));
    return contexts_save(all, e);
}

static int list(const struct args *a, const struct server *unused, struct err *e)
{
    /* clang-format off */
    static const struct table_column columns[] = {
        {"NAME", "name", table_text}, {"CURRENT", "current", table_text}, {"URL", "url", table_text}, {0},
    };
    /* clang-format on */
    autojson json_t *all = NULL, *shown = json_object();
    json_t *rows = json_array(), *one;
    const char *name, *current;

    (void)unused;
    if (contexts_load(&all, e) < 0) {
        json_decref(rows);
        return -1;
    }
    current = json_string_value(json_object_get(all, "current"));
    json_object_foreach(json_object_get(all, "contexts"), name, one)
    {
        bool is = current != NULL && strcmp(current, name) == 0;

        json_array_append_new(rows,
                              json_pack("{s:s,s:s,s:s?}", "name", name, "current", is ? "*" : "",
                                        "url", json_string_value(json_object_get(one, "url"))));
    }
    json_object_set_new(shown, "contexts", rows);
    request_print_list(a, shown, "contexts", columns);
    return 0;
}

static int use(const struct args *a, const struct server *unused, struct err *e)
{
    autojson json_t *all = NULL;

    (void)unused;
    if (contexts_load(&all, e) < 0)
        return -1;
    if (strcmp(a->operands[1], "-") == 0)
        json_object_set_new(all, "current", json_null());
    else if (of(all, a->operands[1]) == NULL)
        return missing(a->operands[1], e);
    else
        json_object_set_new(all, "current", json_string(a->operands[1]));
    return contexts_save(all, e);
}

static int remove_one(const struct args *a, const struct server *unused, struct err *e)
{
    autojson json_t *all = NULL;
    const char *current;

    (void)unused;
    if (contexts_load(&all, e) < 0)
        return -1;
    if (of(all, a->operands[1]) == NULL)
        return missing(a->operands[1], e);
    json_object_del(json_object_get(all, "contexts"), a->operands[1]);
    current = json_string_value(json_object_get(all, "current"));
    if (current != NULL && strcmp(current, a->operands[1]) == 0)
        json_object_set_new(all, "current", json_null());
    return contexts_save(all, e);
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"list",   "",         "list the servers, with a * at the current one", list, .local = true},
    {"add",    "NAME URL", "add or replace a server; its key comes from stdin or --key-file", add, .local = true},
    {"use",    "NAME",     "use this server from now on; - for none", use, .local = true},
    {"remove", "NAME",     "forget a server and its key", remove_one, .local = true},
    {0},
};
/* clang-format on */

const struct cmd cmd_context = {
    .name = "context",
    .usage = "context list|add|use|remove [OPTIONS] [NAME] [URL]",
    .summary = "name several servers, and choose which one commands use",
    .about =
        "Names, URLs and keys are in ~/.config/cove/contexts.json, which only you can read. The\n"
        "option --context NAME of any command, or COVE_CONTEXT, uses another one for once;\n"
        "COVE_URL and COVE_API_KEY win over the current one.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};
