/* transfer.h - between the body of a request or an answer and the files of a sandbox.
 *
 * Bytes are passed on as they come, held back while the other side does not take them.
 * An answer begins when there is something to send: what is wrong with a path is a
 * status, and only a failure behind that cuts the connection. Each of these uses the
 * state of the call, and answers it: failures here, success by `done`. */
#ifndef FRONT_PLANE_TRANSFER_H
#define FRONT_PLANE_TRANSFER_H

#include "front/engine/archive.h"
#include "front/engine/file.h"
#include "front/plane/download.h"

/* Sends a file, under a `name` that says its type. */
void transfer_read(struct call *c, const struct file_at *at, const char *name, enum download_as as);
/* The body becomes a file. */
void transfer_write(struct call *c, const struct file_at *at, const struct file_write_opts *o,
                    void (*done)(struct call *c, const struct file_info *f));

/* Sends a directory as an archive, to be saved under `name`; NULL: nothing is said of that. */
void transfer_pack(struct call *c, const struct archive_pack_opts *o, const char *name);
/* The body is an archive and becomes the contents of a directory. */
void transfer_unpack(struct call *c, const struct archive_unpack_opts *o,
                     void (*done)(struct call *c, const struct archive_result *r));

extern const struct call_source file_source; /* a struct file_call */

#endif
