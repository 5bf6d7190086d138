/* fuzz_replay_terminal.c - old output of a terminal: as long as it came, in whatever pieces it came. */
#include "fuzz.h"

#include "front/plane/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    autobuf struct buf whole = BUF_INIT(n + 1), pieces = BUF_INIT(n + 1);
    struct replay a = {0}, b = {0};
    char *p = fuzz_copy(data, n);

    if (n > 0)
        replay_add(&a, p, n, &whole);
    replay_end(&a, &whole);
    for (size_t i = 0; i < n; i++)
        replay_add(&b, p + i, 1, &pieces);
    replay_end(&b, &pieces);
    FUZZ_MUST(whole.len == n && pieces.len == n);
    FUZZ_MUST(n == 0 || memcmp(buf_data(&whole), buf_data(&pieces), n) == 0);
    for (size_t i = 0; i < n; i++)
        FUZZ_MUST(buf_data(&whole)[i] == p[i] || buf_data(&whole)[i] == '\0');
    free(p);
    return 0;
}
