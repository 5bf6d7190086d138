/* fuzz_cidr.c - networks and rules as clients write them, and rules of a hostile front. */
#include "fuzz.h"

#include "base/cidr.h"
#include "init/serve/internal.h"
#include "wire/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *p = fuzz_copy(data, n), *text = strndup(p, n), out[CIDR_TEXT_MAX];
    struct wire_bytes list = {p, (uint32_t)n};
    struct cidr c, again;
    struct err e;
    int status = probe_status(p, n);

    FUZZ_MUST(text != NULL && status >= -1 && status <= 999);
    if (cidr_parse(text, &c) == 0) {
        FUZZ_MUST(cidr_is_valid(&c));
        cidr_format(&c, out);
        FUZZ_MUST(cidr_parse(out, &again) == 0 && memcmp(&c, &again, sizeof(c)) == 0);
    }
    if (rules_check(&list, &e) == 0)
        for (size_t i = 0; i < rules_count(&list); i++) {
            struct wire_rule r = rules_get(&list, i);

            cidr_format(&r.to, out);
            FUZZ_MUST(cidr_parse(out, &again) == 0);
        }
    probe_path_is_valid(text);
    free(text);
    free(p);
    return 0;
}
