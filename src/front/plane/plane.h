/* plane.h - a plane: one vendor's API, as a set of surfaces and a struct plane_manner.
 *
 * A plane decodes requests, calls the engine and encodes answers; it holds no logic of its own.
 * Every endpoint is one row in the table of its surface (surface.h), from which dispatch,
 * authorization and input checks follow. The manner is what differs between planes: who may call,
 * which sandbox is meant, and how an error looks. */
#ifndef FRONT_PLANE_PLANE_H
#define FRONT_PLANE_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/histogram.h"
#include "base/list.h"
#include "config/config.h"

struct auth;
struct call;
struct engine;
struct http_req;
struct http_server;
struct shape;
struct surface_row;

struct plane_manner {
    const struct surface_row *const *surfaces;
    size_t nsurfaces;
    /* Sets c->key to the key that was presented; fails if it may not call c->row. */
    int (*authorize)(struct call *c, struct err *e);
    /* Which sandbox the call is about, into c->ref, of which the key is set; NULL: the first
     * parameter of the path names it. */
    int (*resolve)(struct call *c, struct err *e);
    /* Another path, in `out`, under which rows are looked for if none has the path of the call; false:
     * none. Or NULL. */
    bool (*alias)(struct call *c, const char *path, struct buf *out);
    /* The last check before the handler: 0, or 1 if it calls plane_go_on() or answers later. Or NULL. */
    int (*enter)(struct call *c, struct err *e);
    /* Writes the body of an error. It must not contain the text of ERR_INTERNAL. */
    void (*write_error)(struct call *c, const struct err *e, struct buf *out);
    /* HTTP status of an error; NULL: that of its kind. */
    int (*status)(const struct call *c, const struct err *e);
    /* Shape of an error in openapi.json; NULL: the native one. */
    const struct shape *error;
    /* Answers an error completely, with body and status; false: it did not. Or NULL. */
    bool (*fail)(struct call *c, const struct err *e);
    /* As the vendor's server does: ignore unknown fields and parameters, and Content-Type. */
    bool lenient;
};

/* How often a row was answered with 1xx..5xx; [0]: the client disconnected first. */
#define PLANE_CLASSES 6
struct plane_count {
    uint64_t by_class[PLANE_CLASSES];
    struct histogram took; /* from the head of the request to the head of the answer */
};

struct plane {
    const struct plane_manner *manner;
    struct engine *engine;
    struct auth *auth;
    const struct config *config;
    const struct http_server *server; /* or NULL */
    struct surface_row *rows;         /* all surfaces, joined */
    size_t nrows;
    struct plane_count *counts; /* per row; one more for requests without */
    uint64_t started_ms;
    struct list calls;
};

/* All but `p` are borrowed for the life of the front. */
void plane_init(struct plane *p, const struct plane_manner *manner, struct engine *g,
                struct auth *a, const struct config *c);
/* Callbacks of the engine hold requests whose client is gone: free the server
 * first, then the engine, then this. */
void plane_free(struct plane *p);

/* The server is about to exit: ends streams that clients can resume with Last-Event-ID, since they
 * would not end by themselves. */
void plane_drain(struct plane *p);

/* After plane_manner.enter: the handler. */
void plane_go_on(struct call *c);

/* Answers the request, now or later. */
void plane_handle(struct plane *p, struct http_req *r);

#endif
