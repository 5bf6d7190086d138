/* place.h - a file, local or in a sandbox: PATH or SANDBOX:PATH, as scp has it.
 *
 * A colon after a slash belongs to a local path, so ./a:b is a local file. "-" is standard
 * input or output. */
#ifndef CLI_FILES_PLACE_H
#define CLI_FILES_PLACE_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/client/client.h"

#define PLACE_TARGET_MAX 24576 /* a request target, encoded */

struct place {
    char sandbox[256]; /* "": local */
    const char *path;  /* points into the text that was parsed */
    bool stream;       /* "-" */
};

/* ERR_INVALID for an empty path or an empty sandbox. */
int place_parse(struct place *p, const char *text, struct err *e);

/* "/v1/sandboxes/ID/WHAT?path=PATH", then &user=USER unless `user` is NULL, then `more`,
 * which is not encoded ("&depth=1", ""). */
const char *place_target(char out[PLACE_TARGET_MAX], const struct place *p, const char *what,
                         const char *path, const char *user, const char *more);

/* What the API says about the file at p->path; links are followed. NULL and `e` also if it
 * does not exist. */
json_t *place_stat(const struct server *s, const struct place *p, const char *user, struct err *e);
bool place_is_dir(const json_t *file);
/* One page of the listing of p->path. `more` as above; *after is the cursor of the last page
 * (NULL at first) and becomes the next one, NULL after the last page. */
int place_list(const struct server *s, const struct place *p, const char *user, const char *more,
               char **after, json_t **ret, struct err *e);
/* A field that is text, or base64 if FIELD_encoding says so. Belongs to the caller. */
char *place_text(const json_t *file, const char *field);

#endif
