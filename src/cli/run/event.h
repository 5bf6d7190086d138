/* event.h - decodes the bytes of an output event.
 *
 * {"data":"..."} or {"data":"...","encoding":"base64"}. jansson builds a document for each
 * piece of output, a character at a time, which was the slowest part of `cove exec`. What the
 * server usually writes is decoded directly; everything else is left to jansson. */
#ifndef CLI_RUN_EVENT_H
#define CLI_RUN_EVENT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the decoded bytes to `out`. */
int event_bytes(const char *json, size_t len, struct buf *out, struct err *e);

#endif
