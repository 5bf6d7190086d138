/* sha256.h - SHA-256 (FIPS 180-4), for programs that carry no crypto library.
 *
 * For naming and checking contents only: nothing here is constant time, and no
 * secret goes through it (the front's tokens use OpenSSL). */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32
#define SHA256_HEX (2 * SHA256_SIZE + 1) /* with its NUL */

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
/* Lower-case hexadecimal. The state is used up. */
void sha256_hex(struct sha256 *s, char out[SHA256_HEX]);

#endif
