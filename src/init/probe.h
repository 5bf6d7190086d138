/* probe.h - one question to an HTTP server inside, and as much of the answer as is
 * needed: the three digits of its status. */
#ifndef INIT_PROBE_H
#define INIT_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "wire/init.h"

#define PROBE_PATH_MAX INIT_PATH_MAX
#define PROBE_ANSWER_MAX 13u /* "HTTP/1.1 200 " */

/* What can stand in the first line of a request: '/' first, no blanks, no controls. */
bool probe_path_is_valid(const char *path);
void probe_request(struct buf *out, const char *path, unsigned port);
/* The status in the first bytes of an answer; 0: more are needed; -1: not HTTP/1. */
int probe_status(const char *p, size_t n);

#endif
