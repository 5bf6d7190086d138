/* transfer.h - moves bytes between the body of a request or answer and files of a sandbox.
 *
 * Bytes are passed on as they come, and the sender is paused while the receiver does not take them.
 * An answer begins with its first byte, so a wrong path has a status; a later failure cuts the
 * connection. Each function uses the state of the call. It answers failures itself; `done`
 * answers success. */
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

/* Sends a directory as an archive, to be saved as `name`; NULL: without a name. */
void transfer_pack(struct call *c, const struct archive_pack_opts *o, const char *name);
/* The body is an archive and becomes the contents of a directory. */
void transfer_unpack(struct call *c, const struct archive_unpack_opts *o,
                     void (*done)(struct call *c, const struct archive_result *r));

extern const struct call_source file_source; /* a struct file_call */

#endif
