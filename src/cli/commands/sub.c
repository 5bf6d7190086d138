/* sub.c - see sub.h. */
#include "cli/commands/sub.h"

#include <string.h>

#include "base/buf.h"
#include "cli/client/client.h"
#include "cli/client/path.h"

#define NAMES_MAX 256u

static int unknown(const struct args *a, struct err *e)
{
    autobuf struct buf names = BUF_INIT(NAMES_MAX);

    for (const struct cmd_sub *s = a->cmd->subs; s->name != NULL; s++)
        buf_addf(&names, "%s%s", names.len == 0 ? "" : s[1].name == NULL ? " or " : ", ", s->name);
    return err_set(e, ERR_INVALID, "unknown subcommand '%.40s'; expected %s", a->operands[0],
                   buf_cstr(&names));
}

int sub_run(const struct args *a, struct err *e)
{
    const struct cmd_sub *sub = a->cmd->subs;
    const char *want;
    struct server s;
    int i = 1;

    while (sub->name != NULL && strcmp(sub->name, a->operands[0]) != 0)
        sub++;
    if (sub->name == NULL)
        return unknown(a, e);
    for (want = sub->operands; *want != '\0'; want += strcspn(want, " "), want += *want == ' ', i++)
        if (i >= a->noperands && *want != '[')
            return err_set(e, ERR_INVALID, "%s: %.*s is missing; usage: cove %s %s %s", sub->name,
                           (int)strcspn(want, " ."), want, a->cmd->name, sub->name, sub->operands);
    if (a->noperands > i && strstr(sub->operands, "...") == NULL)
        return err_set(e, ERR_INVALID, "%s: unexpected argument '%.60s'", sub->name,
                       a->operands[i]);
    if (sub->local)
        return sub->run(a, NULL, e);
    return server_find(&s, e) < 0 ? -1 : sub->run(a, &s, e);
}

int each_sandbox(const struct args *a, int first, const struct server *s, const char *method,
                 const char *suffix, json_t *body)
{
    int status = 0;

    for (int i = first; i < a->noperands; i++) {
        char path[PATH_TEXT_MAX];
        struct err e = {0};

        if (client_call(s, method, path_sandbox(path, a->operands[i], suffix), body, NULL, &e) == 0)
            continue;
        cmd_complain(a->cmd->name, "%s: %s", a->operands[i], e.msg);
        if (status == 0)
            status = err_exit(e.kind);
    }
    return status;
}
