/* each.c - see each.h. */
#include "cli/each.h"

#include "cli/client.h"
#include "cli/path.h"

int each_sandbox(const struct args *a, const char *command, const char *method, const char *suffix,
                 json_t *body, struct err *e)
{
    struct server s;
    int status = 0;

    if (server_find(&s, e) < 0)
        return -1;
    for (int i = 0; i < a->noperands; i++) {
        char path[PATH_TEXT_MAX];
        struct err failure = {0};

        if (client_call(&s, method, path_sandbox(path, a->operands[i], suffix), body, NULL,
                        &failure) == 0)
            continue;
        cmd_complain(command, "%s: %s", a->operands[i], failure.msg);
        if (status == 0)
            status = err_exit(failure.kind);
    }
    return status;
}
