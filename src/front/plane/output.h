/* output.h - output of a command as events, without cutting a character in two.
 *
 * The kernel hands over output in pieces that end anywhere. A piece that ends
 * inside a UTF-8 character is sent without its last one to three bytes; they wait
 * for the rest of the character. What is not UTF-8 goes as base64 (or however the
 * plane shows bytes). No byte is lost, changed or sent twice.
 *
 * The id of an event is a place to resume from: the position behind the piece
 * and, since bytes that are held back lie before it, those bytes too:
 *
 *     POSITION[-oHEX][-eHEX]      held of stdout, held of stderr
 *
 * To a client it is opaque; a bare position is one as well. */
#ifndef FRONT_PLANE_OUTPUT_H
#define FRONT_PLANE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define OUTPUT_ID_MAX 64
#define OUTPUT_HELD_MAX 3
#define OUTPUT_STREAMS 2            /* stdout, stderr */
#define OUTPUT_EVENT_MAX (2u << 20) /* bytes of one event: PROCESS_CHUNK_MAX, escaped */

/* How an event shows a piece: what output_take() appends to `out`. */
typedef void output_put(struct buf *out, const char *p, size_t n);

struct output {
    output_put *put; /* NULL: the JSON object {"data":...}, with "encoding":"base64" if need be */
    bool no_ids;     /* events have no id: the client cannot resume */
    uint64_t pos;    /* after everything taken, held bytes included */
    struct output_held {
        char p[OUTPUT_HELD_MAX];
        size_t n;
    } held[OUTPUT_STREAMS];
};

/* "stdout" or "stderr" for PROCESS_STDOUT or PROCESS_STDERR. */
const char *output_name(unsigned stream);

/* Takes a piece of `stream` that begins at `pos` and writes what the event to send
 * says to `out`. False: all of it is held back, there is nothing to send. */
bool output_take(struct output *o, unsigned stream, uint64_t pos, const char *p, size_t n,
                 struct buf *out);
/* The same for bytes that never became a character, at the end or at a gap. */
bool output_flush(struct output *o, unsigned stream, struct buf *out);

const char *output_id(const struct output *o, char out[OUTPUT_ID_MAX]);
/* Continues where an id says. ERR_INVALID if it is none of ours. */
int output_resume(struct output *o, const char *id, struct err *e);

#endif
