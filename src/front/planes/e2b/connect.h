/* connect.h - the Connect protocol with its JSON codec, as the clients of envd use it.
 *
 * A unary call is a message, answered with a message, or with {"code","message"} and
 * the status that goes with the code. A stream is asked for with one envelope and
 * answered 200 whatever happens: envelopes, the last of which says how it ended. Where
 * that one is missing the client knows that the sandbox is gone: see connect_cut(). */
#ifndef FRONT_PLANES_E2B_CONNECT_H
#define FRONT_PLANES_E2B_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "front/plane/call.h"
#include "loop/loop.h"

#define CONNECT_TYPE "application/connect+json"
#define CONNECT_ENVELOPE 5u /* bytes before each message of a stream: flags, length */
#define CONNECT_MESSAGE_MAX (8u << 20)
#define CONNECT_PING_S 90u /* between keepalives, where the client does not say */
#define CONNECT_PING_MAX_S 86400u
#define CONNECT_TIMEOUT_MAX_MS 9999999999u /* ten digits, as the protocol has it */

/* True for /package.Service/Method. */
bool connect_is_rpc(const struct call *c);
bool connect_is_stream(const struct call *c);

/* The word of an error: "not_found". Its status. */
const char *connect_code(const struct err *e);
int connect_status(const struct err *e);
void connect_write_error(const struct err *e, struct buf *out);

/* For surface_input.unwrap of a stream's row: the one message of its body. */
int connect_unwrap(const char **p, size_t *n, struct err *e);

/* What Connect-Timeout-Ms says; 0: nothing. */
uint64_t connect_timeout_ms(struct call *c);

/* ---- a stream ---- */

struct connect_stream { /* in the state of a call */
    struct call *c;
    struct loop_timer ping, limit;
    uint64_t ping_ms;
    const char *keepalive; /* the message without content */
};

/* Sends the head. With `limited` the time that the client gives ends the stream. */
void connect_begin(struct connect_stream *s, struct call *c, const char *keepalive, bool limited);
void connect_send(struct connect_stream *s, struct buf *message);
void connect_end(struct connect_stream *s);
/* For the `drop` of the state it is in. */
void connect_drop(struct connect_stream *s);

/* Ends a stream, begun or not, with an error. */
void connect_fail(struct call *c, const struct err *e);

#endif
