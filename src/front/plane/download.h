/* download.h - a file as the answer to GET and HEAD: one range, strong ETags, conditions. */
#ifndef FRONT_PLANE_DOWNLOAD_H
#define FRONT_PLANE_DOWNLOAD_H

#include "front/engine/file.h"
#include "front/plane/call.h"

/* What a client may do with it. */
enum download_as {
    DOWNLOAD_SHOWN, /* of the type its name says */
    DOWNLOAD_SAVED, /* likewise, and to be saved under its name */
};

/* `application/octet-stream` for an ending we do not know. */
const char *download_type(const char *path);

/* Answers with what `f` holds, whose fd is taken; not for a stream. `name` is what it is
 * called, any bytes. */
void download_reply(struct call *c, const struct file_content *f, const char *name,
                    enum download_as as);
/* The headers of one that comes as a stream, before call_begin_bytes(). */
void download_stream_headers(struct call *c, const char *name, enum download_as as);

#endif
