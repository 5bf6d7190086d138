/* plane.h - a set of surfaces and one manner of speaking.
 *
 * A plane decodes, calls the engine, encodes; it holds no logic of its own. Every
 * endpoint is one row in the table of its surface (surface.h): the row yields
 * dispatch, authorization and input checks. What differs between planes, who may
 * call and how an error looks, is the plane's manner. */
#ifndef FRONT_PLANE_PLANE_H
#define FRONT_PLANE_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
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
    /* Who calls, into c->key, and whether they may; the row is known. */
    int (*authorize)(struct call *c, struct err *e);
    /* Which sandbox the call is about, into c->ref, of which the key is set; NULL: the first
     * parameter of the path names it. */
    int (*resolve)(struct call *c, struct err *e);
    /* The body of an error. What is internal must not be in it. */
    void (*write_error)(struct call *c, const struct err *e, struct buf *out);
    /* Its status; NULL: that of its kind. */
    int (*status)(const struct call *c, const struct err *e);
    /* The same in openapi.json: NULL: the native one. */
    const struct shape *error;
    /* Answers in its own way, body, status and all; false: it has not. Or NULL. */
    bool (*fail)(struct call *c, const struct err *e);
    /* As the server whose clients these are: fields and parameters that are unknown
     * are left alone, and so is what a body says it is. */
    bool lenient;
};

/* How often a row was answered with 1xx..5xx; [0]: the client left first. */
#define PLANE_CLASSES 6
struct plane_count {
    uint64_t by_class[PLANE_CLASSES];
};

struct plane {
    const struct plane_manner *manner;
    struct engine *engine;
    struct auth *auth;
    const struct config *config;
    const struct http_server *server; /* or NULL */
    struct surface_row *rows;         /* all surfaces, one behind the other */
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

/* The server is about to end: streams that a client can resume with the id of the
 * last event it saw end now, since they would not by themselves. */
void plane_drain(struct plane *p);

/* Answers the request, now or later. */
void plane_handle(struct plane *p, struct http_req *r);

#endif
