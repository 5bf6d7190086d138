/* fuzz_http_multipart.c - multipart bodies: cut anywhere, the result is the same. The
 * first byte of the input selects the cuts; the rest of the first line is the
 * Content-Type. */
#include "base/buf.h"
#include "fuzz.h"
#include "http/multipart.h"

static enum multipart_event take_apart(const char *type, const char *p, size_t n, size_t step,
                                       struct buf *out)
{
    struct multipart *m = malloc(sizeof(*m));
    enum multipart_event ev = MULTIPART_MORE;
    struct http_fault f;

    FUZZ_MUST(m != NULL);
    if (multipart_init(m, type, &f) < 0)
        ev = MULTIPART_BAD;
    while (n > 0 && ev != MULTIPART_BAD && ev != MULTIPART_END) {
        struct http_str data;
        size_t used = 0, room = n < step ? n : step;

        ev = multipart_next(m, p, room, &used, &data, &f);
        FUZZ_MUST(used <= room);
        FUZZ_MUST(used > 0 || ev == MULTIPART_DATA || ev == MULTIPART_BAD);
        if (ev == MULTIPART_PART)
            buf_addf(out, "[%s|%s]", m->name, m->has_filename ? m->filename : "");
        else if (ev == MULTIPART_DATA)
            buf_add(out, data.p, data.len);
        else if (ev == MULTIPART_PART_END)
            buf_adds(out, ".");
        p += used;
        n -= used;
    }
    free(m);
    return ev == MULTIPART_BAD || ev == MULTIPART_END ? ev : MULTIPART_MORE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *line = n > 0 ? memchr(data + 1, '\n', n - 1) : NULL;
    struct buf a = BUF_INIT(SIZE_MAX / 2), b = BUF_INIT(SIZE_MAX / 2);
    enum multipart_event whole, cut;
    char *type, *p;
    size_t len;

    if (line == NULL)
        return 0;
    type = strndup((const char *)data + 1, (size_t)(line - data) - 1);
    FUZZ_MUST(type != NULL);
    len = n - (size_t)(line + 1 - data);
    p = fuzz_copy(line + 1, len);
    whole = take_apart(type, p, len, len + 1, &a);
    cut = take_apart(type, p, len, data[0] % 17 + 1u, &b);
    FUZZ_MUST(whole == cut && a.len == b.len);
    FUZZ_MUST(a.len == 0 || memcmp(buf_data(&a), buf_data(&b), a.len) == 0);
    buf_free(&a);
    buf_free(&b);
    free(type);
    free(p);
    return 0;
}
