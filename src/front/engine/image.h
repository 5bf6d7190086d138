/* image.h - the settings of an image (env, user, workdir, entrypoint, cmd).
 *
 * They come from an untrusted archive, through a helper that the archive may have compromised, so
 * they are checked here before they are stored. */
#ifndef FRONT_ENGINE_IMAGE_H
#define FRONT_ENGINE_IMAGE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/image.h"

#define IMAGE_WORDS_MAX 1024u /* of env, of entrypoint, of cmd */

/* The last line of the helper. */
struct image_result {
    char format[16];
    struct buf layers;   /* strv: chain ids, lowest first */
    struct buf settings; /* JSON text, as checked */
    uint64_t bytes, files;
};

void image_result_init(struct image_result *r);
void image_result_free(struct image_result *r);
int image_result_read(const char *text, size_t len, struct image_result *ret, struct err *e);

/* From settings to what a sandbox stores: user, workdir, then env, each with its NUL. Defaults:
 * root and "/". */
int image_defaults(const char *text, size_t len, struct buf *out, struct err *e);

#endif
