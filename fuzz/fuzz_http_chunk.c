/* fuzz_http_chunk.c - chunked bodies: cut anywhere, the result is the same. The
 * first byte of the input selects the cuts. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "http/chunk.h"

static enum http_chunk_event decode(const char *p, size_t n, size_t step, struct buf *out)
{
    struct http_chunk k = {0};
    struct http_fault f;
    enum http_chunk_event ev = HTTP_CHUNK_MORE;

    while (n > 0 && ev != HTTP_CHUNK_END) {
        struct http_str data;
        size_t used = 0, room = n < step ? n : step;

        ev = http_chunk_next(&k, p, room, &used, &data, &f);
        if (ev == HTTP_CHUNK_BAD)
            return ev;
        FUZZ_MUST(used <= room && (used > 0 || ev == HTTP_CHUNK_END));
        if (ev == HTTP_CHUNK_DATA) {
            FUZZ_MUST(data.p >= p && data.p + data.len <= p + used && data.len > 0);
            buf_add(out, data.p, data.len);
        }
        p += used;
        n -= used;
    }
    return ev == HTTP_CHUNK_END ? ev : HTTP_CHUNK_MORE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t step = n > 0 ? data[0] % 17 + 1u : 1;
    char *p = n > 0 ? fuzz_copy(data + 1, n - 1) : fuzz_copy(data, 0);
    struct buf a = BUF_INIT(SIZE_MAX / 2), b = BUF_INIT(SIZE_MAX / 2);
    enum http_chunk_event whole, cut;

    n -= n > 0;
    whole = decode(p, n, n + 1, &a);
    cut = decode(p, n, step, &b);
    FUZZ_MUST(whole == cut && a.len == b.len);
    FUZZ_MUST(a.len == 0 || memcmp(buf_data(&a), buf_data(&b), a.len) == 0);
    buf_free(&a);
    buf_free(&b);
    free(p);
    return 0;
}
