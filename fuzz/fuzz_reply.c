/* fuzz_reply.c - the report of a session's shell about a command, which the tenant can forge. */
#include "fuzz.h"

#include "init/session/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *p = fuzz_copy(data, n);
    struct reply r;
    size_t used = 0;
    int ret = reply_read(p, n, &r, &used);

    FUZZ_MUST(ret >= -1 && ret <= 1);
    if (ret == 1) {
        FUZZ_MUST(used > 0 && used <= n && p[used - 1] == '\n');
        FUZZ_MUST(r.kind < REPLY_KINDS && r.status <= 255);
    }
    FUZZ_MUST(n < REPLY_MAX || ret != 0);
    free(p);
    return 0;
}
