/* surface.h - surfaces: groups of endpoints, each a table of rows with their handlers.
 *
 * EXTEND  A new endpoint: a row and a handler in its surface's file; nothing else. */
#ifndef FRONT_PLANE_SURFACE_H
#define FRONT_PLANE_SURFACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "front/auth/auth.h"
#include "front/engine/engine.h"
#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/shape.h"
#include "http/http.h"
#include "http/route.h"
#include "json/read.h"

#define SURFACE_BODY_MAX (64u << 10) /* bytes of a JSON body, by default */
#define SURFACE_ANSWERS_MAX 3

/* The fields of an object inside the input; the handler decodes it itself. */
struct surface_nested {
    const char *name;
    const struct json_field *fields;
    size_t n;
};

/* The input of a handler, decoded from a JSON body or the query. */
struct surface_input {
    const struct json_field *fields;
    size_t n;
    size_t size;     /* of the struct */
    size_t body_max; /* 0: SURFACE_BODY_MAX */
    /* Sets defaults that are not zero; may be NULL. */
    void (*defaults)(void *in, const struct config *c);
    const struct surface_nested *nested; /* or NULL */
    /* Decodes what `in` has in another form, as base64, into `out`, which lives as long as the call
     * (call->unfolded). Called in any thread; may be NULL. */
    int (*unfold)(void *in, struct buf *out, struct err *e);
    /* Finds the JSON in an enveloped body; may be NULL. */
    int (*unwrap)(const char **p, size_t *n, struct err *e);
};

enum surface_flags {
    SURFACE_RAW_BODY = 1,   /* any bytes; the handler reads them itself */
    SURFACE_RAW_ANSWER = 2, /* also application/octet-stream, if the client accepts it */
    SURFACE_RESUME = 4,     /* Last-Event-ID continues the stream */
    SURFACE_TEXT = 8,       /* the answer is text/plain */
    SURFACE_OTHER = 16,     /* the answer is JSON without a shape */
    SURFACE_EARLY = 32,     /* answered while the engine is still starting */
    SURFACE_PAGE = 64,      /* the answer is text/html */
    SURFACE_BYTES = 128,    /* the answer is bytes, of a type that depends */
    SURFACE_ADMIN = 256,    /* an admin key may call it for a sandbox of any key... */
    SURFACE_AUDIT = 512,    /* ...which is audited, as it is for rows that change something */
};

/* The last row of a surface is all zero. */
struct surface_row {
    struct route route; /* first: route_find() looks at nothing else */
    enum scope scope;
    /* `in` is the struct of `body` or `query` (NULL without either); it and all it
     * points to are borrowed for the call. */
    void (*handle)(struct call *c, const void *in);
    const char *op;                                   /* operationId */
    const char *summary;                              /* one sentence */
    const struct surface_input *body, *query;         /* one of them at most */
    int status;                                       /* of success */
    const struct shape *answers[SURFACE_ANSWERS_MAX]; /* one of these; none: no body */
    const char *events; /* events of text/event-stream, if the row offers it... */
    const struct shape *event_shapes[SURFACE_ANSWERS_MAX]; /* ...and their shapes */
    unsigned flags;
    const char *failure, *missing; /* error codes of this row, for planes that have some per row */
};

/* Bytes that the body of a row may have. */
static inline size_t surface_body_max(const struct surface_row *row)
{
    return row->body->body_max != 0 ? row->body->body_max : SURFACE_BODY_MAX;
}

#define SURFACE_INPUT(table, type) .fields = (table), .n = ARRAY_LEN(table), .size = sizeof(type)
#define SHAPE(var, schema, text, table)                                                            \
    const struct shape var = {                                                                     \
        .name = (schema), .doc = (text), .fields = (table), .n = ARRAY_LEN(table)}

#endif
