/* oom.h - that a command ended because its sandbox reached its memory limit, in words. */
#ifndef CLI_CLIENT_OOM_H
#define CLI_CLIENT_OOM_H

#include <jansson.h>

#define OOM_TEXT_MAX 512u

/* By the server's description of an exit. NULL: that was not why. */
const char *oom_text(const json_t *exit, const char *sandbox, char out[OOM_TEXT_MAX]);

#endif
