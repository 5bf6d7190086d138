/* id.c - see id.h. */
#include "base/id.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/str.h"

static unsigned long held;

void id_hold(unsigned long seed)
{
    held = seed;
}

static uint8_t held_byte(void)
{
    held = held * 6364136223846793005ul + 1442695040888963407ul;
    return (uint8_t)(held >> 33);
}

void id_bytes(void *out, size_t n)
{
    uint8_t *p = out;

    if (held != 0) {
        while (n-- > 0)
            *p++ = held_byte();
        return;
    }
    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        p += got;
        n -= (size_t)got;
    }
}

void id_random(char *out, size_t n)
{
    /* 32 characters, so that each random byte masked is uniform; without i, l,
     * o and u, which people misread or find words in. */
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

    id_bytes(out, n);
    for (size_t i = 0; i < n; i++)
        out[i] = alphabet[(unsigned char)out[i] & 31];
    out[n] = '\0';
}

void id_uuid(char out[ID_UUID_LEN + 1])
{
    unsigned char raw[16];
    char hex[2 * sizeof(raw) + 1];

    id_bytes(raw, sizeof(raw));
    raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40); /* version 4 */
    raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80); /* of the variant that has versions */
    str_hex(hex, raw, sizeof(raw));
    str_fmt(out, ID_UUID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
            hex + 20);
}

bool id_is_valid(const char *s, size_t max)
{
    size_t n = 0;

    for (; s[n] != '\0'; n++)
        if (n >= max || !((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= '0' && s[n] <= '9')))
            return false;
    return n > 0;
}
