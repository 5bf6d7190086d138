/* fuzz_http_response.c - response heads, as a tenant's server may write them. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *p = fuzz_copy(data, n);
    size_t scanned = 0, len = 0;
    struct http_fault f;
    struct http_msg m;

    if (http_head_end(p, n, &scanned, &len, &f) > 0 &&
        http_parse_response_head(p, len, &m, &f) == 0) {
        FUZZ_MUST(m.status >= 100 && m.status <= 999 && memchr(p, '\0', len) == NULL);
        FUZZ_MUST(!m.chunked || m.content_length < 0);
        for (size_t i = 0; i < m.nfields; i++)
            FUZZ_MUST((size_t)m.fields[i].value.at + m.fields[i].value.len <= len);
        http_response_framing(&m, n & 1);
    }
    http_parse_response_head(p, n, &m, &f);
    free(p);
    return 0;
}
