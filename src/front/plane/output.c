/* output.c - see output.h. */
#include "front/plane/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "front/plane/shape.h"

static const char letters[OUTPUT_STREAMS] = {'o', 'e'};

const char *output_name(unsigned stream)
{
    return stream == 2 ? "stderr" : "stdout";
}

static struct output_held *held_of(struct output *o, unsigned stream)
{
    return &o->held[stream == 2];
}

static void put_json(struct buf *out, const char *p, size_t n)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    shape_put_bytes(&w, "data", "encoding", p, n);
    jw_close(&w);
}

static void put(const struct output *o, struct buf *out, const char *p, size_t n)
{
    (o->put != NULL ? o->put : put_json)(out, p, n);
}

static bool put_whole(const struct output *o, struct output_held *h, const char *p, size_t n,
                      struct buf *out)
{
    size_t whole = str_utf8_whole(p, n);

    if (whole > 0)
        put(o, out, p, whole);
    h->n = n - whole;
    memcpy(h->p, p + whole, h->n);
    return whole > 0;
}

bool output_take(struct output *o, unsigned stream, uint64_t pos, const char *p, size_t n,
                 struct buf *out)
{
    struct output_held *h = held_of(o, stream);
    autobuf struct buf joined = BUF_INIT(n + OUTPUT_HELD_MAX);

    o->pos = pos + n;
    if (n == 0)
        return false;
    if (h->n == 0)
        return put_whole(o, h, p, n, out);
    buf_add(&joined, h->p, h->n);
    buf_add(&joined, p, n);
    out->failed = out->failed || joined.failed;
    return put_whole(o, h, buf_data(&joined), joined.len, out);
}

bool output_flush(struct output *o, unsigned stream, struct buf *out)
{
    struct output_held *h = held_of(o, stream);

    if (h->n == 0)
        return false;
    put(o, out, h->p, h->n);
    h->n = 0;
    return true;
}

const char *output_id(const struct output *o, char out[OUTPUT_ID_MAX])
{
    char hex[2 * OUTPUT_HELD_MAX + 1];
    size_t at;

    str_fmt(out, OUTPUT_ID_MAX, "%llu", (unsigned long long)o->pos);
    for (size_t i = 0; i < OUTPUT_STREAMS; i++) {
        if (o->held[i].n == 0)
            continue;
        at = strlen(out);
        str_hex(hex, o->held[i].p, o->held[i].n);
        str_fmt(out + at, OUTPUT_ID_MAX - at, "-%c%s", letters[i], hex);
    }
    return out;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "oE282": fills the stream it names. Only the beginning of a character may be
 * there, since nothing else is ever held. */
static int resume_held(struct output *o, const char *word)
{
    const char *letter = memchr(letters, word[0], sizeof(letters));
    struct output_held h = {.n = 0};

    if (letter == NULL)
        return -1;
    for (word++; *word != '\0'; word += 2) {
        int high = hex_digit(word[0]), low = word[1] != '\0' ? hex_digit(word[1]) : -1;

        if (high < 0 || low < 0 || h.n == OUTPUT_HELD_MAX)
            return -1;
        h.p[h.n++] = (char)(high << 4 | low);
    }
    if (h.n == 0 || str_utf8_whole(h.p, h.n) != 0)
        return -1;
    o->held[letter - letters] = h;
    return 0;
}

int output_resume(struct output *o, const char *id, struct err *e)
{
    char copy[OUTPUT_ID_MAX], *rest = copy, *word;
    bool good = strlen(id) < sizeof(copy);

    if (good) {
        str_fmt(copy, sizeof(copy), "%s", id);
        word = strsep(&rest, "-");
        good = str_u64(word, UINT64_MAX, &o->pos) == 0;
        while (good && (word = strsep(&rest, "-")) != NULL)
            good = resume_held(o, word) == 0;
    }
    return good ? 0
                : err_set(e, ERR_INVALID, "'%.40s' is not the id of an event of this stream", id);
}
