/* files.h - what both ways through /files share. */
#ifndef FRONT_PLANES_E2B_FILES_H
#define FRONT_PLANES_E2B_FILES_H

#include "front/planes/e2b/internal.h"
#include "front/planes/e2b/signature.h"

struct files_in {
    const char *path, *user, *signature, *expiration; /* NULL: not given */
};

/* Whether the request may: see signature.h. */
int files_check(struct call *c, const struct files_in *in, const char *operation, struct err *e);
const char *files_user(const struct files_in *in); /* NULL: the default */

void files_post(struct call *c, const void *in); /* upload.c */

#endif
