/* intake.h - the JSON body of a request: received, counted, decoded, and given to the handler.
 *
 * What a body becomes in memory is held on the account of its key before a byte of it is read. A body
 * of some length is decoded in a thread, so that other requests do not wait for it, and its document
 * is freed in one. */
#ifndef FRONT_PLANE_INTAKE_H
#define FRONT_PLANE_INTAKE_H

struct call;

/* Reads the body of the call, whose row has one; then calls the row's handler. */
void intake_begin(struct call *c);
/* With the call. */
void intake_free(struct call *c);

#endif
