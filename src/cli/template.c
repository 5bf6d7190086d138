/* template.c - `cove template`: what sandboxes start as. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/path.h"
#include "cli/request.h"
#include "cli/sse.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "as JSON"},
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

struct progress {
    bool shown; /* on a terminal, one line that is written over and over */
    bool done;
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
                       json_string_value(json_object_get(error, "message")));
    p->done = p->done || strcmp(s->event, "done") == 0;
    if (strcmp(s->event, "progress") == 0 && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%s", text != NULL ? text : "");
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

static int refresh(const struct server *s, const char *name, struct err *e)
{
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = path_template(path, name, "refresh"),
                     .accept = "text/event-stream"};
    autoreply struct reply *r = NULL;
    autojson json_t *answer = NULL;
    struct progress p = {0};

    if (reply_open(s, &c, &r, e) < 0)
        return -1;
    return reply_is_sse(r) ? read_progress(r, &p, e) : reply_json(r, &answer, e);
}

static int template_run(const struct args *a, struct err *e)
{
    struct server s;

    if (strcmp(a->operands[0], "list") == 0 && a->noperands == 1)
        return server_find(&s, e) < 0 ? -1 : list(a, &s, e);
    if (strcmp(a->operands[0], "refresh") == 0 && a->noperands == 2)
        return server_find(&s, e) < 0 ? -1 : refresh(&s, a->operands[1], e);
    return err_set(e, ERR_INVALID, "it is `cove %s`", a->cmd->usage);
}

const struct cmd cmd_template = {
    .name = "template",
    .usage = "template list [--json] | template refresh NAME",
    .summary = "list templates, or build one anew",
    .about = "Sandboxes that stand on an older build keep it.",
    .opts = opts,
    .min = 1,
    .max = 2,
    .run = template_run,
};
