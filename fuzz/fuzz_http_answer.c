/* fuzz_http_answer.c - answers of a tenant's server: cut anywhere, the result is the
 * same. The first byte of the input selects the cuts and the request. */
#include "base/buf.h"
#include "fuzz.h"
#include "http/answer.h"

struct outcome {
    enum answer_event last;
    int status;
    struct buf body;
    size_t used;
};

static void take(struct answer *a, struct outcome *o, const char *p, size_t n, size_t step)
{
    struct http_fault f = {0};
    bool headed = false;

    o->last = ANSWER_MORE;
    while (o->last != ANSWER_BAD && o->last != ANSWER_END) {
        struct http_str data = {0};
        size_t used = 0, room = n < step ? n : step;

        o->last = answer_next(a, p, room, &used, &data, &f);
        FUZZ_MUST(used <= room);
        if (o->last == ANSWER_BAD)
            FUZZ_MUST(f.status == 502 && f.why != NULL);
        if (o->last == ANSWER_HEAD) {
            FUZZ_MUST(!headed && a->head.len <= HTTP_HEAD_MAX);
            FUZZ_MUST(a->msg.status >= 200 || (a->msg.status == 101 && a->upgrade));
            headed = true;
            o->status = a->msg.status;
        }
        if (o->last == ANSWER_DATA) {
            FUZZ_MUST(headed && data.len > 0 && data.p >= p && data.p + data.len <= p + used);
            buf_add(&o->body, data.p, data.len);
        }
        o->used += used;
        p += used;
        n -= used;
        if (n == 0 && o->last == ANSWER_MORE)
            break;
    }
    if (o->last == ANSWER_MORE)
        o->last = answer_eof(a, &f);
}

static struct outcome run(const char *p, size_t n, size_t step, uint8_t asked)
{
    struct outcome o = {.body = BUF_INIT(SIZE_MAX / 2)};
    struct answer a;

    answer_init(&a);
    a.to_head = asked & 1;
    a.upgrade = asked & 2;
    take(&a, &o, p, n, step);
    answer_free(&a);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t first = n > 0 ? data[0] : 0;
    char *p = n > 0 ? fuzz_copy(data + 1, n - 1) : fuzz_copy(data, 0);
    struct outcome whole, cut;

    n -= n > 0;
    whole = run(p, n, n + 1, first & 3);
    cut = run(p, n, (first >> 2) % 17 + 1u, first & 3);
    FUZZ_MUST(whole.last == cut.last && whole.status == cut.status);
    FUZZ_MUST(whole.body.len == cut.body.len);
    FUZZ_MUST(whole.body.len == 0 ||
              memcmp(buf_data(&whole.body), buf_data(&cut.body), whole.body.len) == 0);
    FUZZ_MUST(whole.last != ANSWER_END || whole.used == cut.used);
    buf_free(&whole.body);
    buf_free(&cut.body);
    free(p);
    return 0;
}
