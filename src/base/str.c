/* str.c - see str.h. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"

static int digits(const char *s, const char **end, uint64_t *ret)
{
    uint64_t v = 0;
    const char *p = s;

    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return -1;
    if (p == s)
        return -1;
    *end = p;
    *ret = v;
    return 0;
}

int str_u64(const char *s, uint64_t max, uint64_t *ret)
{
    const char *end;
    uint64_t v;

    if (digits(s, &end, &v) < 0 || *end != '\0' || v > max)
        return -1;
    *ret = v;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static int scaled(const char *s, const struct unit *units, size_t n, uint64_t *ret)
{
    const char *end;
    uint64_t v;

    if (digits(s, &end, &v) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (strcmp(end, units[i].name) == 0)
            return __builtin_mul_overflow(v, units[i].factor, ret) ? -1 : 0;
    return -1;
}

int str_size(const char *s, uint64_t *ret)
{
    static const struct unit units[] = {
        {"", 1}, {"K", 1ull << 10}, {"M", 1ull << 20}, {"G", 1ull << 30}, {"T", 1ull << 40}};

    return scaled(s, units, ARRAY_LEN(units), ret);
}

int str_duration_ms(const char *s, uint64_t *ret)
{
    static const struct unit units[] = {{"", 1000},       {"ms", 1},          {"s", 1000},
                                        {"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 86400 * 1000}};

    return scaled(s, units, ARRAY_LEN(units), ret);
}

int str_utf8_char(const void *at, size_t n)
{
    const unsigned char *p = at;
    unsigned char c = p[0], lo = 0x80, hi = 0xbf;
    int len;

    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (c == 0xe0)
        lo = 0xa0;
    else if (c == 0xed)
        hi = 0x9f;
    else if (c == 0xf0)
        lo = 0x90;
    else if (c == 0xf4)
        hi = 0x8f;
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n)
            return -1;
        if (p[i] < lo || p[i] > hi)
            return 0;
        lo = 0x80;
        hi = 0xbf;
    }
    return len;
}

/* Skips plain ASCII eight bytes at a time. */
static size_t ascii_run(const unsigned char *p, size_t n)
{
    size_t i = 0;
    uint64_t w;

    for (; i + 8 <= n; i += 8) {
        memcpy(&w, p + i, 8);
        if (w & 0x8080808080808080ull)
            break;
    }
    return i;
}

bool str_is_utf8(const void *p, size_t n)
{
    const unsigned char *s = p;
    size_t i = 0;

    while ((i += ascii_run(s + i, n - i)) < n) {
        int len = str_utf8_char(s + i, n - i);

        if (len <= 0)
            return false;
        i += (size_t)len;
    }
    return true;
}

size_t str_utf8_whole(const void *p, size_t n)
{
    const unsigned char *s = p;

    for (size_t back = 1; back <= 3 && back <= n; back++) {
        if ((s[n - back] & 0xc0) == 0x80)
            continue; /* a continuation byte: look further left for its start */
        return str_utf8_char(s + n - back, back) < 0 ? n - back : n;
    }
    return n;
}

static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int str_base64(struct buf *out, const void *p, size_t n)
{
    const unsigned char *s = p;
    size_t need = (n + 2) / 3 * 4;
    char *o = buf_room(out, need);

    if (o == NULL)
        return -1;
    for (; n >= 3; n -= 3, s += 3) {
        *o++ = b64[s[0] >> 2];
        *o++ = b64[(s[0] & 3) << 4 | s[1] >> 4];
        *o++ = b64[(s[1] & 15) << 2 | s[2] >> 6];
        *o++ = b64[s[2] & 63];
    }
    if (n > 0) {
        *o++ = b64[s[0] >> 2];
        *o++ = b64[(s[0] & 3) << 4 | (n > 1 ? s[1] >> 4 : 0)];
        *o++ = n > 1 ? b64[(s[1] & 15) << 2] : '=';
        *o++ = '=';
    }
    buf_added(out, need);
    return 0;
}

/* The value of a base64 character plus 1; 0 if it is not one. */
/* clang-format off */
static const uint8_t unb64[256] = {
    ['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8,
    ['I'] = 9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};
/* clang-format on */

/* Four characters to three bytes; false if one of them is not base64. */
static bool unb64_group(const char *s, char out[3])
{
    uint32_t a = unb64[(uint8_t)s[0]], b = unb64[(uint8_t)s[1]], c = unb64[(uint8_t)s[2]],
             d = unb64[(uint8_t)s[3]];
    uint32_t w = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);

    if (a == 0 || b == 0 || c == 0 || d == 0)
        return false;
    out[0] = (char)(w >> 16);
    out[1] = (char)(w >> 8);
    out[2] = (char)w;
    return true;
}

int str_unbase64(struct buf *out, const char *s, size_t n)
{
    size_t pad = 0;
    char last[4], *o;

    if (n % 4 != 0)
        return -1;
    if (n == 0)
        return 0;
    o = buf_room(out, n / 4 * 3);
    if (o == NULL)
        return -1;
    for (size_t i = 0; i + 4 < n; i += 4)
        if (!unb64_group(s + i, o + i / 4 * 3))
            return -1;
    memcpy(last, s + n - 4, 4);
    while (pad < 2 && last[3 - pad] == '=')
        last[3 - pad++] = 'A';
    if (!unb64_group(last, o + n / 4 * 3 - 3))
        return -1;
    buf_added(out, n / 4 * 3 - pad);
    return 0;
}

int str_hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void str_hex(char *out, const void *p, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = p;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = hex[s[i] >> 4];
        out[2 * i + 1] = hex[s[i] & 15];
    }
    out[2 * n] = '\0';
}

size_t str_dec(char out[STR_DEC_MAX], uint64_t v)
{
    char text[STR_DEC_MAX], *p = text + sizeof(text);
    size_t n;

    do
        *--p = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    n = (size_t)(text + sizeof(text) - p);
    memcpy(out, p, n);
    return n;
}

void str_fmt(char *out, size_t room, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(out, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room)
        abort();
}
