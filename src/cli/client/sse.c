/* sse.c - see sse.h. */
#include "cli/client/sse.h"

#include <stdio.h>
#include <string.h>

typedef int sse_each(void *arg, const struct sse *s, const char *data, size_t len, struct err *e);

void sse_init(struct sse *s)
{
    *s = (struct sse){0};
    buf_init(&s->line, SSE_EVENT_MAX);
    buf_init(&s->data, SSE_EVENT_MAX);
}

void sse_free(struct sse *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}

/* An empty line completes the event, if it has data; other lines are fields of it. */
static int end_line(struct sse *s, sse_each *each, void *arg, struct err *e)
{
    const char *line, *value;
    size_t name;
    int r = 0;

    if (s->line.failed || s->data.failed)
        return err_set(e, ERR_INTERNAL, "the server sent an event longer than %u bytes",
                       SSE_EVENT_MAX);
    if (s->line.len == 0) {
        if (s->has_data) {
            if (s->event[0] == '\0')
                strcpy(s->event, "message");
            r = each(arg, s, buf_cstr(&s->data), s->data.len, e);
        }
        buf_clear(&s->data);
        s->has_data = false;
        s->event[0] = '\0';
        return r;
    }
    line = buf_cstr(&s->line);
    name = strcspn(line, ":");
    value = line[name] == ':' ? line + name + 1 : "";
    value += *value == ' ';
    if (name == 4 && memcmp(line, "data", 4) == 0) {
        if (s->has_data)
            buf_addc(&s->data, '\n');
        buf_adds(&s->data, value);
        s->has_data = true;
    } else if (name == 5 && memcmp(line, "event", 5) == 0) {
        snprintf(s->event, sizeof(s->event), "%s", value);
    } else if (name == 2 && memcmp(line, "id", 2) == 0) {
        snprintf(s->id, sizeof(s->id), "%s", value);
    } /* skip comments (empty name), retry and unknown fields */
    buf_clear(&s->line);
    return 0;
}

int sse_feed(struct sse *s, const char *p, size_t n, sse_each *each, void *arg, struct err *e)
{
    const char *end = p + n;

    while (p < end) {
        const char *stop = p;

        if (s->after_cr && *p == '\n') { /* the second half of CR LF */
            s->after_cr = false;
            p++;
            continue;
        }
        s->after_cr = false;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        buf_add(&s->line, p, (size_t)(stop - p));
        if (stop == end)
            return 0;
        s->after_cr = *stop == '\r';
        if (end_line(s, each, arg, e) < 0)
            return -1;
        p = stop + 1;
    }
    return 0;
}
