/* enter.h - calls on a sandbox through its workspace: /v1/workspaces/NAME/exec is
 * /v1/sandboxes/ID/exec of the sandbox behind the name, by the same row and handler. */
#ifndef FRONT_PLANES_NATIVE_ENTER_H
#define FRONT_PLANES_NATIVE_ENTER_H

#include "front/plane/call.h"

/* plane_manner.alias and plane_manner.enter. */
bool workspace_alias(struct call *c, const char *path, struct buf *out);
int workspace_enter(struct call *c, struct err *e);

#endif
