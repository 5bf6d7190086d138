/* write.c - see write.h. */
#include "json/write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define ONES 0x0101010101010101ull
#define HIGHS 0x8080808080808080ull
#define ESCAPED_MAX 6 /* bytes one byte may become */

/* High bit set in the first byte of the word that is below 0x20, a quote, a
 * backslash or not ASCII; a borrow may also set it in later bytes. */
static uint64_t special(uint64_t w)
{
    uint64_t quote = w ^ (ONES * '"'), back = w ^ (ONES * '\\');

    return (w | (w - ONES * 0x20) | (quote - ONES) | (back - ONES)) & HIGHS;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

/* How many of the eight bytes at `s` are plain. All eight are copied. */
static size_t copy_plain(char *o, const char *s)
{
    uint64_t w, marks;

    memcpy(&w, s, 8);
    memcpy(o, &w, 8);
    marks = special(w);
    return marks == 0 ? 8 : (size_t)__builtin_ctzll(marks) / 8;
}

static size_t broken_length(const char *s, size_t n)
{
    size_t len = 1;

    while (len < n && len < 3 && str_utf8_char(s, len + 1) < 0)
        len++;
    return len;
}

/* A byte that is not ASCII, with the rest of its character; *used is its length. */
static size_t write_wide(char *o, const char *s, size_t n, size_t *used)
{
    int len = str_utf8_char(s, n);

    if (len > 0) {
        *used = (size_t)len;
        memcpy(o, s, *used);
        return *used;
    }
    *used = broken_length(s, n);
    memcpy(o, "\xef\xbf\xbd", 3);
    return 3;
}

static size_t write_ascii(char *o, unsigned char c)
{
    static const char shorts[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    static const char hex[] = "0123456789abcdef";
    char second = c < 0x20 ? shorts[c] : c == '"' || c == '\\' ? (char)c : '\0';

    if (c >= 0x20 && second == '\0') {
        *o = (char)c;
        return 1;
    }
    *o++ = '\\';
    *o++ = second != '\0' ? second : 'u';
    if (second != '\0')
        return 2;
    *o++ = '0';
    *o++ = '0';
    *o++ = hex[c >> 4];
    *o++ = hex[c & 15];
    return ESCAPED_MAX;
}

/* Through a small buffer, so that the loop need not ask for room and the bound
 * of `out` is met exactly. */
int json_escape(struct buf *out, const char *s, size_t n)
{
    char tmp[4096], *o = tmp;
    const char *const full = tmp + sizeof(tmp) - 8 - ESCAPED_MAX, *end = n > 0 ? s + n : s;

    while (s < end) {
        size_t used = 1, plain = end - s >= 8 ? copy_plain(o, s) : 0;

        s += plain;
        o += plain;
        if (plain < 8 && (unsigned char)*s < 0x80)
            o += write_ascii(o, (unsigned char)*s);
        else if (plain < 8)
            o += write_wide(o, s, (size_t)(end - s), &used);
        s += plain < 8 ? used : 0;
        if (o > full) {
            buf_add(out, tmp, (size_t)(o - tmp));
            o = tmp;
        }
    }
    return buf_add(out, tmp, (size_t)(o - tmp));
}

void jw_init(struct json_w *w, struct buf *out)
{
    *w = (struct json_w){.out = out};
}

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Called before every value: after a key, in a list, or at the top. */
static void value(struct json_w *w)
{
    must(w->object[w->depth] == w->key && (w->depth > 0 || !w->comma[0]));
    if (!w->key && w->comma[w->depth])
        buf_addc(w->out, ',');
    w->comma[w->depth] = true;
    w->key = false;
}

static void down(struct json_w *w, char c, bool object)
{
    value(w);
    must(w->depth + 1 < JSON_DEPTH_MAX);
    w->depth++;
    w->comma[w->depth] = false;
    w->object[w->depth] = object;
    buf_addc(w->out, c);
}

static void up(struct json_w *w, char c, bool object)
{
    must(w->depth > 0 && w->object[w->depth] == object && !w->key);
    w->depth--;
    buf_addc(w->out, c);
}

void jw_open(struct json_w *w)
{
    down(w, '{', true);
}

void jw_close(struct json_w *w)
{
    up(w, '}', true);
}

void jw_open_list(struct json_w *w)
{
    down(w, '[', false);
}

void jw_close_list(struct json_w *w)
{
    up(w, ']', false);
}

static void quoted(struct json_w *w, const char *s, size_t n)
{
    buf_addc(w->out, '"');
    json_escape(w->out, s, n);
    buf_addc(w->out, '"');
}

void jw_key(struct json_w *w, const char *key)
{
    must(w->object[w->depth] && !w->key);
    if (w->comma[w->depth])
        buf_addc(w->out, ',');
    quoted(w, key, strlen(key));
    buf_addc(w->out, ':');
    w->key = true;
}

void jw_strn(struct json_w *w, const char *s, size_t n)
{
    value(w);
    quoted(w, s, n);
}

void jw_str(struct json_w *w, const char *s)
{
    jw_strn(w, s, strlen(s));
}

void jw_raw(struct json_w *w, const char *json, size_t n)
{
    value(w);
    buf_add(w->out, json, n);
}

void jw_u64(struct json_w *w, uint64_t v)
{
    char text[STR_DEC_MAX];

    jw_raw(w, text, str_dec(text, v));
}

void jw_i64(struct json_w *w, int64_t v)
{
    char text[24];

    jw_raw(w, text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)v));
}

void jw_num(struct json_w *w, double v)
{
    char text[32];
    int n = 0;

    if (!isfinite(v)) {
        jw_null(w);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    jw_raw(w, text, (size_t)n);
}

void jw_bool(struct json_w *w, bool v)
{
    jw_raw(w, v ? "true" : "false", v ? 4 : 5);
}

void jw_null(struct json_w *w)
{
    jw_raw(w, "null", 4);
}

void jw_kstr(struct json_w *w, const char *key, const char *s)
{
    jw_key(w, key);
    if (s == NULL)
        jw_null(w);
    else
        jw_str(w, s);
}

void jw_ku64(struct json_w *w, const char *key, uint64_t v)
{
    jw_key(w, key);
    jw_u64(w, v);
}

void jw_ki64(struct json_w *w, const char *key, int64_t v)
{
    jw_key(w, key);
    jw_i64(w, v);
}

void jw_kbool(struct json_w *w, const char *key, bool v)
{
    jw_key(w, key);
    jw_bool(w, v);
}

void jw_kbytes(struct json_w *w, const char *key, const void *p, size_t n)
{
    char encoding[128];

    jw_key(w, key);
    if (n == 0 || str_is_utf8(p, n)) {
        jw_strn(w, p, n);
        return;
    }
    value(w);
    buf_addc(w->out, '"');
    str_base64(w->out, p, n);
    buf_addc(w->out, '"');
    str_fmt(encoding, sizeof(encoding), "%s_encoding", key);
    jw_kstr(w, encoding, "base64");
}
