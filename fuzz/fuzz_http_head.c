/* fuzz_http_head.c - request heads: all parsed pieces lie inside the head, and the
 * result does not depend on how the bytes arrive. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "http/parse.h"

static void check_span(struct http_span s, size_t n)
{
    FUZZ_MUST((size_t)s.at + s.len <= n);
}

static void check_msg(const struct http_msg *m, const char *p, size_t n)
{
    check_span(m->method, n);
    check_span(m->target, n);
    check_span(m->path, n);
    check_span(m->query, n);
    check_span(m->host, n);
    FUZZ_MUST(memchr(p, '\0', n) == NULL);
    FUZZ_MUST(m->method.len > 0 && m->minor <= 1 && m->nfields <= HTTP_HEADERS_MAX);
    FUZZ_MUST(!m->chunked || m->content_length < 0);
    for (size_t i = 0; i < m->nfields; i++) {
        check_span(m->fields[i].name, n);
        check_span(m->fields[i].value, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *p = fuzz_copy(data, n);
    size_t scanned = 0, slow = 0, len = 0, slow_len = 0;
    struct http_fault f, g;
    struct http_msg m;
    int r = http_head_end(p, n, &scanned, &len, &f), s = 0;

    for (size_t i = 0; i <= n && s == 0; i++)
        s = http_head_end(p, i, &slow, &slow_len, &g);
    FUZZ_MUST(r == s && (r <= 0 || len == slow_len));
    if (r > 0 && http_parse_request_head(p, len, &m, &f) == 0)
        check_msg(&m, p, len);
    else if (r != 0)
        FUZZ_MUST(f.status >= 400 && f.status < 600 && f.why != NULL);
    free(p);
    return 0;
}
