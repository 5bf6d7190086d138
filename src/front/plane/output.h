/* output.h - output of a command as events, without splitting a character.
 *
 * The kernel returns output in pieces that end anywhere. A piece that ends inside a UTF-8 character
 * is sent without its last one to three bytes; they wait for the rest of the character. Bytes that
 * are not UTF-8 are sent as base64 (or as the plane encodes bytes). No byte is lost, changed or
 * sent twice. call_output() in call.c sends the events.
 *
 * The id of an event is where to resume: the position after the piece and, since held bytes lie
 * before it, those bytes too:
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

/* How output_take() encodes a piece. */
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

/* Takes a piece of `stream` that begins at `pos` and writes the data of the event to `out`. False:
 * all of it is held, there is nothing to send. */
bool output_take(struct output *o, unsigned stream, uint64_t pos, const char *p, size_t n,
                 struct buf *out);
/* The same for bytes that never became a character, at the end or at a gap. */
bool output_flush(struct output *o, unsigned stream, struct buf *out);

const char *output_id(const struct output *o, char out[OUTPUT_ID_MAX]);
/* Continues after the event with that id. ERR_INVALID if it is not such an id. */
int output_resume(struct output *o, const char *id, struct err *e);

#endif
