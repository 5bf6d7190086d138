/* event.h - the bytes in an output event.
 *
 * {"data":"..."} or {"data":"...","encoding":"base64"}. A general JSON reader
 * builds a document for each piece of output, a character at a time, and was the
 * slowest part of `cove exec`; what the server usually writes is read directly
 * here, and everything unusual is still left to the general reader. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the bytes of the event to `out`. */
int event_bytes(const char *json, size_t len, struct buf *out, struct err *e);

#endif
