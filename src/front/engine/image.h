/* image.h - what an image says about running it, on its way through the front.
 *
 * It comes out of an archive that anybody may have written, by way of a helper
 * that the archive may have taken over: checked here, once, before it is kept. */
#ifndef FRONT_ENGINE_IMAGE_H
#define FRONT_ENGINE_IMAGE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/image.h"

#define IMAGE_WORDS_MAX 1024u /* of env, of entrypoint, of cmd */

/* What the helper found: its last line. */
struct image_result {
    char format[16];
    struct buf layers;   /* strv: chain ids, lowest first */
    struct buf settings; /* JSON text, as checked */
    uint64_t bytes, files;
};

void image_result_init(struct image_result *r);
void image_result_free(struct image_result *r);
int image_result_read(const char *text, size_t len, struct image_result *ret, struct err *e);

/* From settings to what a sandbox keeps: user, workdir, then env, each with its
 * NUL. An image that names no user means root, one without workdir "/". */
int image_defaults(const char *text, size_t len, struct buf *out, struct err *e);

#endif
