/* kind.h - a plane as the front sees it: one row of the table in front/front.c.
 *
 * EXTEND  Another plane: a folder in front/planes/ with its surfaces and one of these, and its row in
 *         front/front.c. */
#ifndef FRONT_PLANE_KIND_H
#define FRONT_PLANE_KIND_H

#include "front/plane/plane.h"

struct token_mint;
struct workspaces;

struct plane_opts { /* all borrowed for as long as the front runs */
    struct engine *engine;
    struct auth *auth;
    struct token_mint *tokens;
    struct workspaces *workspaces;
    const struct config *config;
    unsigned port; /* that we listen on */
    /* Planes that were made before and are `documented`. */
    struct plane *const *documented;
    size_t ndocumented;
};

/* A path stands for itself and everything below it; the longest that fits is taken. */
struct plane_door {
    const char *path;
    void (*handle)(struct plane *p, struct http_req *r); /* NULL: plane_handle() */
};

struct plane_kind {
    const char *name;
    const struct plane_door *doors; /* {0} ends */
    bool documented;                /* its rows are in /v1/openapi.json */
    int (*make)(const struct plane_opts *o, struct plane **ret, struct err *e);
    void (*free)(struct plane *p); /* as plane_free() says */
};

#endif
