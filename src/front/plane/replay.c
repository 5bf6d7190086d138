/* replay.c - see replay.h. Sequences as in ECMA-48, and questions as xterm's list of them has it. */
#include "front/plane/replay.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

#define ESC 0x1b
#define BEL 0x07
#define ENQ 0x05
#define CAN 0x18
#define SUB 0x1a

enum extent { MORE, WHOLE, BROKEN };

/* CSI [prefix] [parameters] [intermediate] final. `params`: what the first one must be, if anything. */
static const struct {
    char final, prefix, intermediate; /* prefix 0: none; '*': any */
    const char *params;               /* NULL: any */
} questions[] = {
    {'c', 0, 0, NULL},   /* what are you: DA1 */
    {'c', '>', 0, NULL}, /* DA2 */
    {'c', '=', 0, NULL}, /* DA3 */
    {'n', 0, 0, NULL},   /* status, cursor position: DSR */
    {'n', '?', 0, NULL}, /* DECDSR */
    {'x', 0, 0, NULL},   /* DECREQTPARM */
    {'t', 0, 0, " 11 13 14 15 16 18 19 20 21 "},
    {'p', 0, '$', NULL},   /* is this mode set: DECRQM */
    {'p', '?', '$', NULL}, /* likewise, DEC's modes */
    {'q', '>', 0, NULL},   /* name and version: XTVERSION */
    {'u', '?', 0, NULL},   /* keyboard protocol */
    {'m', '?', 0, NULL},   /* key modifiers: XTQMODKEYS */
    {'S', '?', 0, NULL},   /* graphics: XTSMGRAPHICS */
    {'y', '*', '*', NULL}, /* checksum of an area: DECRQCRA */
    {'w', 0, '$', NULL},   /* DECRQPSR */
    {'u', 0, '$', NULL},   /* DECRQTSR */
};

static bool is_csi_question(const unsigned char *s, size_t n)
{
    char prefix = s[2] >= '<' && s[2] <= '?' ? (char)s[2] : 0;
    char intermediate = n > 3 && s[n - 2] >= 0x20 && s[n - 2] <= 0x2f ? (char)s[n - 2] : 0;
    char first[16] = " ";
    size_t at = 2 + (prefix != 0), len = 0;

    while (at + len < n && s[at + len] >= '0' && s[at + len] <= '9' && len < 8)
        len++;
    memcpy(first + 1, s + at, len);
    first[1 + len] = ' ';
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        if (questions[i].final == (char)s[n - 1] &&
            (questions[i].prefix == '*' || questions[i].prefix == prefix) &&
            questions[i].intermediate == intermediate &&
            (questions[i].params == NULL || strstr(questions[i].params, first) != NULL))
            return true;
    return false;
}

static bool holds(const struct replay *r, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= r->n; i++)
        if (memcmp(r->held + i, word, n) == 0)
            return true;
    return false;
}

/* ESC ] ... (colours, titles), ESC P ... (capabilities, settings), ESC _ G ... (pictures). */
static bool is_string_question(const struct replay *r)
{
    const unsigned char *s = r->held;
    size_t n = r->n;

    switch (s[1]) {
    case ']':
        return holds(r, ";?");
    case 'P':
        return n > 4 && (s[2] == '+' || s[2] == '$') && s[3] == 'q';
    case '_':
        return n > 3 && s[2] == 'G' && holds(r, "a=q");
    default:
        return false;
    }
}

static bool is_string(unsigned char second)
{
    return second == ']' || second == 'P' || second == '_' || second == '^' || second == 'X';
}

/* Whether the sequence in held[] is complete with its last byte. */
static enum extent extent(const unsigned char *s, size_t n)
{
    unsigned char last = s[n - 1];

    if (n == 1)
        return MORE; /* ESC */
    if (last == CAN || last == SUB)
        return BROKEN;
    if (n == 2)
        return s[1] == '[' || is_string(s[1]) || (s[1] >= 0x20 && s[1] <= 0x2f) ? MORE : WHOLE;
    if (is_string(s[1]))
        return (s[1] == ']' && last == BEL) || (s[n - 2] == ESC && last == '\\') ? WHOLE : MORE;
    if (last < 0x20 || last > 0x7e)
        return BROKEN; /* an ESC, or a control character amid it */
    return last >= (s[1] == '[' ? 0x40 : 0x30) ? WHOLE : MORE;
}

static bool is_question(const struct replay *r)
{
    if (r->held[1] == '[')
        return is_csi_question(r->held, r->n);
    return r->n == 2 ? r->held[1] == 'Z' : is_string_question(r); /* ESC Z: DECID */
}

void replay_end(struct replay *r, struct buf *out)
{
    buf_add(out, r->held, r->n);
    r->n = 0;
}

void replay_add(struct replay *r, const char *p, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];

        if (r->n == 0 && c != ESC) {
            buf_addc(out, c == ENQ ? '\0' : (char)c);
            continue;
        }
        r->held[r->n++] = c;
        switch (extent(r->held, r->n)) {
        case WHOLE:
            if (is_question(r))
                memset(r->held, 0, r->n);
            replay_end(r, out);
            break;
        case BROKEN:
            r->n -= c == ESC; /* which begins another one */
            replay_end(r, out);
            if (c == ESC)
                r->held[r->n++] = c;
            break;
        case MORE:
            if (r->n == REPLAY_HELD_MAX)
                replay_end(r, out);
            break;
        }
    }
}
