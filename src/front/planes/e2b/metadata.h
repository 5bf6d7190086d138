/* metadata.h - metadata of an uploaded file: X-Metadata-NAME headers, stored as extended attributes
 * (ENTRY_XATTR). Names are lower case. */
#ifndef FRONT_PLANES_E2B_METADATA_H
#define FRONT_PLANES_E2B_METADATA_H

#include "base/buf.h"
#include "base/err.h"
#include "json/write.h"

struct http_req;

#define METADATA_NAME_MAX 246u   /* bytes: with its prefix what the kernel takes */
#define METADATA_BYTES_MAX 4096u /* names and values together */

struct metadata {
    struct buf lines; /* NAME=VALUE, each with a line end: as base/xattr.h has it */
};

/* ERR_INVALID. */
int metadata_read(struct metadata *m, struct http_req *r, struct err *e);
void metadata_free(struct metadata *m);
/* "metadata": {...}, unless there is none. */
void metadata_write(struct json_w *w, struct metadata *m);

#endif
