/* place.h - a file, here or in a sandbox: SANDBOX:PATH, as scp has it.
 *
 * A colon behind a slash is part of a local name, so ./a:b is one; - is standard input
 * or output. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/client.h"

#define PLACE_TARGET_MAX 16384 /* of a request, all of it encoded */

struct place {
    char sandbox[256]; /* "": here */
    const char *path;  /* points into what was given */
    bool stream;       /* - */
};

/* ERR_INVALID for an empty path, or a sandbox's name that is none. */
int place_parse(struct place *p, const char *text, struct err *e);

/* "/v1/sandboxes/ID/WHAT?path=PATH" and &user=USER unless that is NULL, then `more`, which
 * is ours ("&depth=1", ""). */
const char *place_target(char out[PLACE_TARGET_MAX], const struct place *p, const char *what,
                         const char *path, const char *user, const char *more);
/* Bytes for a query. */
void place_encode(char *out, size_t room, const char *s);

/* What it is; links are followed. NULL and `e`: also if there is nothing. */
json_t *place_stat(const struct server *s, const struct place *p, const char *path,
                   const char *user, struct err *e);
/* A field that is text, or base64 if FIELD_encoding says so. Belongs to the caller. */
char *place_text(const json_t *file, const char *field);

#endif
