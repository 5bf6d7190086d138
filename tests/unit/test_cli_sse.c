#include "unit.h"

#include <stdio.h>

#include "cli/client/sse.h"

struct heard {
    char text[512];
    size_t n;
};

static int hear(void *arg, const struct sse *s, const char *data, size_t len, struct err *e)
{
    struct heard *h = arg;

    (void)e;
    h->n += (size_t)snprintf(h->text + h->n, sizeof(h->text) - h->n, "[%s|%s|%.*s]", s->event,
                             s->id, (int)len, data);
    return 0;
}

/* The same bytes in pieces of `step`. */
static void feed(const char *text, size_t step, struct heard *h)
{
    struct sse s;
    struct err e;

    *h = (struct heard){.n = 0};
    sse_init(&s);
    for (size_t i = 0, n = strlen(text); i < n; i += step)
        CHECK_INT(sse_feed(&s, text + i, n - i < step ? n - i : step, hear, h, &e), 0);
    sse_free(&s);
}

static void check_all_steps(const char *text, const char *want)
{
    struct heard h;

    for (size_t step = 1; step <= strlen(text); step++) {
        feed(text, step, &h);
        CHECK_STR(h.text, want);
    }
}

TEST(an_event_is_complete_at_its_empty_line_however_input_is_split)
{
    check_all_steps("id: 7\nevent: stdout\ndata: {\"a\":1}\n\n", "[stdout|7|{\"a\":1}]");
}

TEST(lf_cr_and_crlf_end_a_line)
{
    check_all_steps("data: a\r\n\r\ndata: b\r\rdata: c\n\n",
                    "[message||a][message||b][message||c]");
}

TEST(data_lines_are_joined_and_one_leading_blank_is_removed)
{
    check_all_steps("data:a\ndata:  b\ndata\n\n", "[message||a\n b\n]");
}

TEST(comments_unknown_fields_and_events_without_data_are_skipped)
{
    check_all_steps(": keep-alive\n\nretry: 5\nevent: x\n\ndata: y\n\n", "[message||y]");
}

TEST(an_id_is_kept_until_the_next_one)
{
    check_all_steps("id: 1\ndata: a\n\ndata: b\n\n", "[message|1|a][message|1|b]");
}

TEST(an_incomplete_event_is_not_reported)
{
    check_all_steps("data: a\n\ndata: b\n", "[message||a]");
}

TEST(an_event_above_the_limit_is_refused)
{
    autofree char *big = malloc(SSE_EVENT_MAX + 100);
    struct heard h = {.n = 0};
    struct sse s;
    struct err e;

    memset(big, 'x', SSE_EVENT_MAX + 100);
    memcpy(big, "data: ", 6);
    big[SSE_EVENT_MAX + 99] = '\n';
    sse_init(&s);
    CHECK_INT(sse_feed(&s, big, SSE_EVENT_MAX + 100, hear, &h, &e), -1);
    CHECK_HAS(e.msg, "longer than");
    sse_free(&s);
}
