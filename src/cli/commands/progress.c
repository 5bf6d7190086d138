/* progress.c - see progress.h. */
#include "cli/commands/progress.h"

#include <stdio.h>
#include <string.h>

#include "cli/client/sse.h"
#include "json/read.h"

#define PHASE_MAX 64

struct reading {
    struct bar *bar;
    char phase[PHASE_MAX]; /* what bar->phase points to */
    json_t *answer;        /* data of the event `done` */
};

/* "unpacking layer 2 of 3": a first word that ends in -ing names the phase, and the rest is shown
 * after the numbers; another text is a detail of the phase before ("I: Retrieving libc6"). */
static void show(struct reading *r, json_t *j)
{
    const char *text = json_string_value(json_object_get(j, "text"));
    size_t n = text != NULL ? strcspn(text, " ") : 0;
    bool names = n > 3 && strncmp(text + n - 3, "ing", 3) == 0;

    if (n == 0)
        return;
    if (names)
        snprintf(r->phase, sizeof(r->phase), "%.*s", (int)n, text);
    bar_phase(r->bar, names ? r->phase : r->bar->phase, names ? text + n + (text[n] == ' ') : text,
              (uint64_t)json_integer_value(json_object_get(j, "done")),
              (uint64_t)json_integer_value(json_object_get(j, "total")));
}

static int on_event(void *arg, const struct sse *s, const char *data, size_t len, struct err *e)
{
    autojson json_t *j = json_loadb(data, len, 0, NULL);
    json_t *error = json_object_get(j, "error");
    struct reading *r = arg;

    if (error != NULL)
        return client_refused(error, e);
    if (strcmp(s->event, "done") == 0 && r->answer == NULL)
        r->answer = json_incref(j);
    if (strcmp(s->event, "progress") == 0)
        show(r, j);
    return 0;
}

static int read_stream(struct reply *reply, struct reading *r, struct err *e)
{
    enum reply_event ev = REPLY_MORE;
    struct sse s;
    const char *p;
    size_t n;
    int ret = 0;

    sse_init(&s);
    while (ret == 0 && (ev = reply_read(reply, &p, &n, e)) > REPLY_END)
        if (ev == REPLY_MORE)
            reply_wait(reply);
        else
            ret = sse_feed(&s, p, n, on_event, r, e);
    sse_free(&s);
    if (ret < 0 || ev == REPLY_BROKEN)
        return -1;
    return r->answer != NULL ? 0
                             : err_set(e, ERR_UNAVAILABLE,
                                       "the server closed the stream before the work was finished; "
                                       "`cove template list` and `cove snapshot list` show the "
                                       "result");
}

int progress_call(const struct server *s, const struct call *c, struct bar *b, json_t **ret,
                  struct err *e)
{
    autoreply struct reply *reply = NULL;
    struct reading r = {.bar = b};
    int failed;

    if (reply_open(s, c, &reply, e) < 0)
        return -1;
    if (!reply_is_sse(reply))
        return reply_json(reply, ret, e);
    failed = read_stream(reply, &r, e);
    b->phase = NULL; /* `r` ends here */
    if (failed < 0) {
        json_decref(r.answer);
        return -1;
    }
    *ret = r.answer;
    return 0;
}
