/* sha256.c - see sha256.h. */
#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/str.h"

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t load(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void schedule(uint32_t w[64], const unsigned char *p)
{
    for (int i = 0; i < 16; i++)
        w[i] = load(p + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[i - 7] +
               (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
    }
}

static void block_plain(struct sha256 *s, const unsigned char *p)
{
    uint32_t w[64], v[8];

    schedule(w, p);
    memcpy(v, s->h, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                      k[i] + w[i];
        uint32_t t2 =
            (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

#if defined(__x86_64__)

/* Asked once: cpuid is slow in a virtual machine. */
static bool has_instructions(void)
{
    static int known; /* 1: yes, -1: no */
    unsigned a = 0, b = 0, c = 0, d = 0, sse = 0;

    if (known == 0) {
        __get_cpuid(1, &a, &b, &sse, &d);
        b = 0;
        __get_cpuid_count(7, 0, &a, &b, &c, &d);
        known = (b & bit_SHA) != 0 && (sse & bit_SSE4_1) != 0 && (sse & bit_SSSE3) != 0 ? 1 : -1;
    }
    return known > 0;
}

/* The processor does two rounds per instruction, on the state in halves ABEF and CDGH.
 * Five times as fast; exports and imports spend most of their time here. */
__attribute__((target("sha,sse4.1,ssse3"))) static void block_fast(struct sha256 *s,
                                                                   const unsigned char *p)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const void *)&s->h[0]), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const void *)&s->h[4]), 0x1b);
    __m128i abef = _mm_alignr_epi8(abcd, efgh, 8), cdgh = _mm_blend_epi16(efgh, abcd, 0xf0);
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4], m;

    for (int i = 0; i < 16; i++) {
        __m128i *now = &w[i % 4];

        if (i < 4)
            *now = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(p + 16 * i)), swap);
        else
            *now = _mm_sha256msg2_epu32(
                _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
                              _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4)),
                w[(i + 3) % 4]);
        m = _mm_add_epi32(*now, _mm_loadu_si128((const void *)&k[4 * i]));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, m);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(m, 0x0e));
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
    _mm_storeu_si128((void *)&s->h[0], _mm_blend_epi16(abef, cdgh, 0xf0));
    _mm_storeu_si128((void *)&s->h[4], _mm_alignr_epi8(cdgh, abef, 8));
}

#else

static bool has_instructions(void)
{
    return false;
}

#define block_fast block_plain

#endif

static void block(struct sha256 *s, const unsigned char *p)
{
    if (has_instructions())
        block_fast(s, p);
    else
        block_plain(s, p);
}

void sha256_init(struct sha256 *s)
{
    static const uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memcpy(s->h, h, sizeof(h));
    s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *from, size_t n)
{
    const unsigned char *p = from;
    size_t have = s->bytes % 64;

    s->bytes += n;
    if (have > 0) {
        size_t part = n < 64 - have ? n : 64 - have;

        memcpy(s->block + have, p, part);
        p += part;
        n -= part;
        if (have + part < 64)
            return;
        block(s, s->block);
    }
    for (; n >= 64; p += 64, n -= 64)
        block(s, p);
    if (n > 0)
        memcpy(s->block, p, n);
}

void sha256_hex(struct sha256 *s, char out[SHA256_HEX])
{
    static const unsigned char pad[64] = {0x80};
    uint64_t bits = s->bytes * 8;
    unsigned char raw[SHA256_SIZE], len[8];

    sha256_add(s, pad, 1 + (119 - s->bytes % 64) % 64);
    for (int i = 0; i < 8; i++)
        len[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, len, sizeof(len));
    for (int i = 0; i < SHA256_SIZE; i++)
        raw[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
    str_hex(out, raw, sizeof(raw));
}
