/* oom.c - see oom.h. */
#include "cli/client/oom.h"

#include <stdbool.h>
#include <stdio.h>

const char *oom_text(const json_t *exit, const char *sandbox, char out[OOM_TEXT_MAX])
{
    bool itself = json_is_true(json_object_get(exit, "oom"));

    if (!itself && !json_is_true(json_object_get(exit, "oom_meanwhile")))
        return NULL;
    snprintf(out, OOM_TEXT_MAX,
             "%s was killed: sandbox %.100s reached its memory limit; `cove update --memory SIZE "
             "%.100s` raises it",
             itself ? "the command" : "the command failed after another process", sandbox, sandbox);
    return out;
}
