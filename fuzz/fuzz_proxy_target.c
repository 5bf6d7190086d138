/* fuzz_proxy_target.c - hosts that may name a port of a sandbox. */
#include "base/id.h"
#include "front/proxy/target.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct proxy_target t;
    char *host = malloc(n + 1);

    FUZZ_MUST(host != NULL);
    if (n > 0)
        memcpy(host, data, n);
    host[n] = '\0';
    if (proxy_target_host(host, &t)) {
        FUZZ_MUST(t.port >= 1 && t.port <= 65535);
        FUZZ_MUST(id_is_valid(t.id, ENGINE_ID_MAX));
        FUZZ_MUST(strchr(host, '.') != NULL);
    }
    free(host);
    return 0;
}
