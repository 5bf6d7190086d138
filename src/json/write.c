/* write.c - see write.h. */
#include "json/write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define ONES 0x0101010101010101ull
#define HIGHS 0x8080808080808080ull

/* High bit set in every byte that is below 0x20, a quote, a backslash or not
 * ASCII. A borrow may also mark bytes above such a one; never a word without. */
static uint64_t special(uint64_t w)
{
    uint64_t quote = w ^ (ONES * '"'), back = w ^ (ONES * '\\');

    return (w | (w - ONES * 0x20) | (quote - ONES) | (back - ONES)) & HIGHS;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static size_t plain_ascii(const char *s, size_t n)
{
    size_t i = 0;
    uint64_t w[4];

    for (; i + sizeof(w) <= n; i += sizeof(w)) {
        memcpy(w, s + i, sizeof(w));
        if (special(w[0]) | special(w[1]) | special(w[2]) | special(w[3]))
            break;
    }
    while (i < n && is_plain((unsigned char)s[i]))
        i++;
    return i;
}

/* How many bytes may be copied as they are: up to the next that needs an escape
 * or is not UTF-8. */
static size_t plain(const char *s, size_t n)
{
    size_t i = 0;

    while ((i += plain_ascii(s + i, n - i)) < n) {
        int len = (unsigned char)s[i] < 0x80 ? 0 : str_utf8_char(s + i, n - i);

        if (len <= 0)
            break;
        i += (size_t)len;
    }
    return i;
}

static size_t broken_length(const char *s, size_t n)
{
    size_t len = 1;

    while (len < n && len < 3 && str_utf8_char(s, len + 1) < 0)
        len++;
    return len;
}

static int escape_one(struct buf *out, unsigned char c)
{
    static const char shorts[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    static const char hex[] = "0123456789abcdef";
    char two[2] = {'\\', c < 0x20 ? shorts[c] : (char)c};
    char six[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

    return two[1] != '\0' ? buf_add(out, two, sizeof(two)) : buf_add(out, six, sizeof(six));
}

int json_escape(struct buf *out, const char *s, size_t n)
{
    while (n > 0) {
        size_t len = plain(s, n);

        if (len > 0) {
            buf_add(out, s, len);
        } else if ((unsigned char)*s < 0x80) {
            escape_one(out, (unsigned char)*s);
            len = 1;
        } else {
            buf_adds(out, "\xef\xbf\xbd");
            len = broken_length(s, n);
        }
        s += len;
        n -= len;
    }
    return out->failed ? -1 : 0;
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

/* Before every value: it stands behind a key, in a list, or alone. */
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
    char text[20], *p = text + sizeof(text);

    do
        *--p = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    jw_raw(w, p, (size_t)(text + sizeof(text) - p));
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
    if (str_is_utf8(p, n)) {
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
