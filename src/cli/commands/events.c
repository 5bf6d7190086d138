/* events.c - `cove events`: follows what happens to sandboxes. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/client/client.h"
#include "cli/client/path.h"
#include "cli/client/sse.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/run/remote.h"
#include "cli/table.h"

#define AGAIN_MS 500
#define VALUE_MAX 4096

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "json", NULL, "print JSON, one event per line"},
    {0},
};
/* clang-format on */

struct following {
    bool json;
    char last[SSE_NAME_MAX]; /* id of the last event that was printed, or "" */
    uint64_t heard_ms;
};

/* "2026-01-31T12:00:00.000Z k3f9 process.started process=p1 pid=7 command=make" */
static void print_event(json_t *j)
{
    json_t *data = json_object_get(j, "data"), *value;
    const char *name;

    printf("%s %s %s", json_string_value(json_object_get(j, "at")),
           json_string_value(json_object_get(j, "sandbox")),
           json_string_value(json_object_get(j, "kind")));
    json_object_foreach(data, name, value)
    {
        autofree char *text = json_is_string(value)
                                  ? table_printable(json_string_value(value), VALUE_MAX)
                                  : json_dumps(value, JSON_ENCODE_ANY);

        printf(" %s=%s", name, text != NULL ? text : "");
    }
    putchar('\n');
}

static int on_event(void *arg, const struct sse *s, const char *data, size_t len, struct err *e)
{
    struct following *f = arg;
    autojson json_t *j = json_loadb(data, len, 0, NULL);

    f->heard_ms = clock_mono_ms();
    if (strcmp(s->event, "error") == 0)
        return client_refused(json_object_get(j, "error"), e);
    if (strcmp(s->event, "truncated") == 0)
        cmd_complain("events", "some events are missing here: they were not kept long enough");
    else if (f->json)
        request_dump(j, JSON_COMPACT);
    else
        print_event(j);
    if (s->id[0] != '\0')
        snprintf(f->last, sizeof(f->last), "%s", s->id);
    return fflush(stdout) != 0 ? err_sys(e, "stdout") : 0;
}

/* One connection; returns when it ends. */
static int follow(const struct server *srv, const char *path, struct following *f, struct err *e)
{
    struct call c = {.method = "GET",
                     .path = path,
                     .accept = "text/event-stream",
                     .last_id = f->last[0] != '\0' ? f->last : NULL};
    enum reply_event ev = REPLY_MORE;
    autoreply struct reply *r = NULL;
    autojson json_t *none = NULL;
    struct sse s;
    const char *p;
    size_t n;
    int ret = 0;

    if (reply_open(srv, &c, &r, e) < 0)
        return -1;
    if (!reply_is_sse(r))
        return reply_json(r, &none, e) < 0
                   ? -1
                   : err_set(e, ERR_INTERNAL, "the server answered without a stream of events");
    f->heard_ms = clock_mono_ms();
    sse_init(&s);
    while (ret == 0 && (ev = reply_read(r, &p, &n, e)) > REPLY_END)
        if (ev == REPLY_MORE)
            reply_wait(r);
        else
            ret = sse_feed(&s, p, n, on_event, f, e);
    sse_free(&s);
    if (ret == 0 && ev == REPLY_END) /* a daemon that ends closes its streams */
        e->kind = ERR_UNAVAILABLE;
    return -1;
}

static int events(const struct args *a, struct err *e)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000l};
    struct following f = {.json = args_flag(a, "json"), .heard_ms = clock_mono_ms()};
    char path[PATH_TEXT_MAX];
    struct server s;

    path_query(path, "/v1/events?", "sandbox", a->noperands > 0 ? a->operands[0] : NULL);
    if (server_find(&s, e) < 0)
        return -1;
    for (bool once = false;; once = true) {
        uint64_t began = f.heard_ms;

        follow(&s, path, &f, e);
        if (e->kind != ERR_UNAVAILABLE || (!once && f.heard_ms == began) ||
            clock_mono_ms() - f.heard_ms > REMOTE_RETRY_MS)
            return -1;
        nanosleep(&pause, NULL);
    }
}

const struct cmd cmd_events = {
    .name = "events",
    .usage = "events [--json] [SANDBOX]",
    .summary = "print what happens to sandboxes and their processes, as it happens",
    .about = "Ctrl-C ends it. A restart of the daemon does not.",
    .opts = opts,
    .max = 1,
    .run = events,
};
