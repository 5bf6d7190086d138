/* fill.h - creates a sandbox and fills it before anything knows of it. */
#ifndef FRONT_ENGINE_SANDBOX_FILL_H
#define FRONT_ENGINE_SANDBOX_FILL_H

#include "front/engine/engine.h"

struct filling;
/* The sandbox runs, has no row and no client knows it: a front that starts meanwhile destroys it.
 * Ends with filling_done(), from inside or later. */
typedef void fill_cb(void *arg, const char *id, struct filling *f);

/* As engine_create() from a template. */
void create_filled(struct engine *g, const struct create_opts *o, fill_cb *fill,
                   engine_sandbox_cb *cb, void *arg);
/* `e` NULL: it becomes a sandbox of the key. Else it is destroyed and the creation fails. */
void filling_done(struct filling *f, const struct err *e);
/* Without an answer: the engine ends. */
void filling_drop(struct filling *f);

#endif
