/* chunk.c - see chunk.h. */
#include "http/chunk.h"

#include "base/str.h"

#define SIZE_DIGITS_MAX 15 /* so that the size never overflows */

enum kind { HEX, NAME, COLON, SEMI, BLANK, TEXT, CR, LF, BAD, KIND_COUNT };

enum state {
    BEGIN, /* first digit of a size */
    SIZE,
    EXT,
    SIZE_LF,
    DATA, /* not in the table: taken in one piece */
    DATA_CR,
    DATA_LF,
    TRAILERS, /* first byte of a trailer, or the end */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    END,
    NO, /* refused */
    STATE_COUNT
};

/* clang-format off */
static const unsigned char next[STATE_COUNT][KIND_COUNT] = {
    /*                  HEX            NAME           COLON          SEMI           BLANK          TEXT           CR          LF        BAD */
    [BEGIN]         = { SIZE,          NO,            NO,            NO,            NO,            NO,            NO,         NO,       NO },
    [SIZE]          = { SIZE,          NO,            NO,            EXT,           NO,            NO,            SIZE_LF,    NO,       NO },
    [EXT]           = { EXT,           EXT,           EXT,           EXT,           EXT,           EXT,           SIZE_LF,    NO,       NO },
    [SIZE_LF]       = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         DATA,     NO },
    [DATA]          = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         NO,       NO },
    [DATA_CR]       = { NO,            NO,            NO,            NO,            NO,            NO,            DATA_LF,    NO,       NO },
    [DATA_LF]       = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         BEGIN,    NO },
    [TRAILERS]      = { TRAILER_NAME,  TRAILER_NAME,  NO,            NO,            NO,            NO,            LAST_LF,    NO,       NO },
    [TRAILER_NAME]  = { TRAILER_NAME,  TRAILER_NAME,  TRAILER_VALUE, NO,            NO,            NO,            NO,         NO,       NO },
    [TRAILER_VALUE] = { TRAILER_VALUE, TRAILER_VALUE, TRAILER_VALUE, TRAILER_VALUE, TRAILER_VALUE, TRAILER_VALUE, TRAILER_LF, NO,       NO },
    [TRAILER_LF]    = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         TRAILERS, NO },
    [LAST_LF]       = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         END,      NO },
    [END]           = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         NO,       NO },
    [NO]            = { NO,            NO,            NO,            NO,            NO,            NO,            NO,         NO,       NO },
};
/* clang-format on */

static enum kind kind_of(unsigned char c)
{
    switch (c) {
    case ':':
        return COLON;
    case ';':
        return SEMI;
    case ' ':
    case '\t':
        return BLANK;
    case '\r':
        return CR;
    case '\n':
        return LF;
    default:
        if (str_hex_digit(c) >= 0)
            return HEX;
        if (http_is_tchar(c))
            return NAME;
        return c > 0x20 && c != 0x7f ? TEXT : BAD;
    }
}

static int over(struct http_chunk *k, struct http_fault *f, int status, const char *why)
{
    k->state = NO;
    return http_refuse(f, status, why);
}

static int step(struct http_chunk *k, unsigned char c, struct http_fault *f)
{
    bool trailer;

    if (k->state == BEGIN)
        k->left = k->line = 0;
    k->state = next[k->state][kind_of(c)];
    if (k->state == NO)
        return over(k, f, 400, "the chunked body is malformed");
    trailer = k->state >= TRAILERS;
    k->line++;
    if (trailer && k->line > HTTP_TRAILERS_MAX)
        return over(k, f, 431, "the trailers are too large");
    if (!trailer && k->line > HTTP_CHUNK_LINE_MAX)
        return over(k, f, 400, "a chunk's size line is too long");
    if (k->state == SIZE && k->line > SIZE_DIGITS_MAX)
        return over(k, f, 400, "a chunk is too large");
    if (k->state == SIZE)
        k->left = k->left << 4 | (unsigned)str_hex_digit(c);
    if (k->state == DATA && k->left == 0) {
        k->state = TRAILERS;
        k->line = 0;
    }
    return 0;
}

enum http_chunk_event http_chunk_next(struct http_chunk *k, const char *p, size_t n, size_t *used,
                                      struct http_str *ret, struct http_fault *f)
{
    size_t i = 0;

    while (i < n && k->state != END) {
        if (k->state == DATA) {
            *ret = (struct http_str){.p = p + i, .len = n - i < k->left ? n - i : (size_t)k->left};
            *used = i + ret->len;
            k->left -= ret->len;
            if (k->left == 0)
                k->state = DATA_CR;
            return HTTP_CHUNK_DATA;
        }
        if (step(k, (unsigned char)p[i++], f) < 0)
            return HTTP_CHUNK_BAD;
    }
    *used = i;
    return k->state == END ? HTTP_CHUNK_END : HTTP_CHUNK_MORE;
}
