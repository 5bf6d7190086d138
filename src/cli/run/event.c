/* event.c - see event.h. */
#include "cli/run/event.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "json/read.h"

#define HEAD "{\"data\":\""
#define TAIL_TEXT "\"}"
#define TAIL_BASE64 "\",\"encoding\":\"base64\"}"

static bool ends_with(const char *p, size_t n, const char *tail)
{
    size_t len = strlen(tail);

    return n >= len && memcmp(p + n - len, tail, len) == 0;
}

/* The byte that a short escape such as \n stands for; 0 if it is not one. */
static char short_escape(char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = c != '\0' ? strchr(from, c) : NULL;

    return at != NULL ? to[at - from] : '\0';
}

/* Decodes the escape at p (after the backslash) if it is short, or \u00XX below 0x80. Returns
 * its length in characters, 0 for any other escape. */
static size_t fast_escape(const char *p, size_t n, struct buf *out)
{
    int high, low;

    if (n >= 1 && short_escape(*p) != '\0') {
        buf_addc(out, short_escape(*p));
        return 1;
    }
    if (n < 5 || memcmp(p, "u00", 3) != 0)
        return 0;
    high = str_hex_digit((unsigned char)p[3]);
    low = str_hex_digit((unsigned char)p[4]);
    if (high < 0 || high > 7 || low < 0)
        return 0;
    buf_addc(out, (char)(high << 4 | low));
    return 5;
}

/* Decodes the inside of a JSON string; false: leave it to jansson. */
static bool fast_text(const char *p, size_t n, struct buf *out)
{
    while (n > 0) {
        const char *escape = memchr(p, '\\', n);
        size_t plain = escape != NULL ? (size_t)(escape - p) : n, used;

        if (memchr(p, '"', plain) != NULL)
            return false;
        buf_add(out, p, plain);
        if (escape == NULL)
            break;
        used = fast_escape(escape + 1, n - plain - 1, out);
        if (used == 0)
            return false;
        p = escape + 1 + used;
        n -= plain + 1 + used;
    }
    return !out->failed;
}

static bool fast(const char *json, size_t len, struct buf *out)
{
    size_t head = strlen(HEAD);

    if (len <= head || memcmp(json, HEAD, head) != 0)
        return false;
    json += head;
    len -= head;
    if (ends_with(json, len, TAIL_BASE64))
        return str_unbase64(out, json, len - strlen(TAIL_BASE64)) == 0;
    return ends_with(json, len, TAIL_TEXT) && fast_text(json, len - strlen(TAIL_TEXT), out);
}

static int slow(const char *json, size_t len, struct buf *out, struct err *e)
{
    autojson json_t *j = json_loadb(json, len, JSON_ALLOW_NUL, NULL);
    json_t *data = json_object_get(j, "data");
    const char *encoding = json_string_value(json_object_get(j, "encoding"));
    int r;

    if (!json_is_string(data))
        return err_set(e, ERR_INTERNAL, "the server sent an output event without data");
    if (encoding != NULL && strcmp(encoding, "base64") == 0)
        r = str_unbase64(out, json_string_value(data), json_string_length(data));
    else
        r = buf_add(out, json_string_value(data), json_string_length(data));
    return r < 0
               ? err_set(e, ERR_INTERNAL, "the server sent an output event that cannot be decoded")
               : 0;
}

int event_bytes(const char *json, size_t len, struct buf *out, struct err *e)
{
    size_t before = out->len;

    if (fast(json, len, out))
        return 0;
    out->len = before;
    out->failed = false;
    return slow(json, len, out, e);
}
