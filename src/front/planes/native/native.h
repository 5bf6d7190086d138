/* native.h - the native API: /v1/..., /health and /metrics.
 *
 * Decodes, calls the engine, encodes; no logic of its own. Every endpoint is one
 * row in the table of its surface (surface.h): the row yields dispatch,
 * authorization, input checks and its part of /v1/openapi.json. */
#ifndef NATIVE_NATIVE_H
#define NATIVE_NATIVE_H

#include "base/err.h"
#include "config/config.h"

struct auth;
struct engine;
struct http_req;
struct http_server;
struct native;

/* All but `ret` are borrowed for ever. */
int native_new(struct engine *g, struct auth *a, const struct config *c, struct native **ret,
               struct err *e);
/* Callbacks of the engine hold requests whose client is gone: free the server
 * first, then the engine, then this. */
void native_free(struct native *n);
/* For the number of connections in /metrics; borrowed, NULL to forget it. */
void native_set_server(struct native *n, const struct http_server *s);

/* The server is about to end: streams that a client can resume with the id of the
 * last event it saw end now, since they would not by themselves. */
void native_drain(struct native *n);

/* Answers the request, now or later. */
void native_handle(struct native *n, struct http_req *r);

#endif
