/* help.c - `cove help`, and the documents that are generated from the same tables. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cmd.h"
#include "config/config.h"
#include "cove-version.h"
#include "front/workspace/states.h"

#define TEXT_MAX (1u << 20)

static int help(const struct args *a, struct err *e)
{
    autobuf struct buf out = BUF_INIT(TEXT_MAX);
    const struct cmd *c = NULL;
    const char *nearest;

    if (a->noperands > 0) {
        c = cmd_find(a->operands[0]);
        nearest = c == NULL ? cmd_nearest(a->operands[0]) : NULL;
        if (c == NULL)
            return err_set(e, ERR_INVALID, "unknown command '%.40s'%s%s%s", a->operands[0],
                           nearest != NULL ? "; did you mean '" : "",
                           nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    }
    if (a->noperands > 1) {
        const struct cmd_sub *s = c->subs;

        while (s != NULL && s->name != NULL && strcmp(s->name, a->operands[1]) != 0)
            s++;
        if (s == NULL || s->name == NULL)
            return err_set(e, ERR_INVALID, "`cove %s` has no subcommand '%.40s'", c->name,
                           a->operands[1]);
        cmd_write_sub_help(c, s, &out);
    } else if (c != NULL)
        cmd_write_help(c, &out);
    else
        cmd_write_help_all(&out);
    fputs(buf_cstr(&out), stdout);
    return 0;
}

const struct cmd cmd_help = {
    .name = "help",
    .usage = "help [COMMAND [SUBCOMMAND]]",
    .summary = "show the help of a command, or list all commands",
    .max = 2,
    .run = help,
};

static void docs_errors(struct buf *out)
{
    buf_adds(out,
             "# Errors\n\n"
             "Generated from `src/base/err.h` by `make docs`.\n\n"
             "The API answers `{\"error\":{\"code\",\"message\",\"request_id\"}}`; the CLI "
             "prints the message and exits\nwith the status below: always between 200 and 213, "
             "so it is never the status of a command that\n`run`, `exec`, `shell` or `session "
             "exec` ran (up to 125; 128 + N after signal N), nor what they say of\na program "
             "that was not found (127) or cannot be executed (126). For `internal` the "
             "message stays in the daemon's log, under the request id.\n\n"
             "| code | HTTP | exit | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < ERR_KIND_COUNT; i++)
        buf_addf(out, "| `%s` | %d | %d | %s |\n", err_code((enum err_kind)i),
                 err_http((enum err_kind)i), err_exit((enum err_kind)i),
                 err_meaning((enum err_kind)i));
}

static void docs_config(struct buf *out)
{
    buf_adds(out, "# Settings of `cove serve`\n\n"
                  "Generated from `src/config/config.h` by `make docs`.\n\n"
                  "Each is an option (`--name value`) and a line of the file given with `--config` "
                  "(`name = value`).\nThe command line wins over the file, the file over the "
                  "default.\n\n| name | default | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < config_nkeys; i++)
        buf_addf(out, "| `%s` | %s%s%s | %s |\n", config_keys[i].name,
                 *config_keys[i].def != '\0' ? "`" : "", config_keys[i].def,
                 *config_keys[i].def != '\0' ? "`" : "", config_keys[i].doc);
}

static void docs_commands(struct buf *out)
{
    buf_adds(out,
             "# Commands\n\nGenerated from the tables in `src/cli/commands/` by `make docs`.\n");
    for (size_t i = 0; i < cmd_count; i++) {
        if (cmd_all[i]->summary == NULL)
            continue;
        buf_addf(out, "\n## cove %s\n\n```\n", cmd_all[i]->name);
        cmd_write_help(cmd_all[i], out);
        buf_adds(out, "```\n");
    }
}

/* Escapes text for troff: dots and quotes at the start of a line, backslashes, dashes. */
static void man_text(struct buf *out, const char *s)
{
    for (bool first = true; *s != '\0'; s++) {
        if (first && (*s == '.' || *s == '\''))
            buf_adds(out, "\\&");
        if (*s == '\\' || *s == '-')
            buf_addc(out, '\\');
        if (*s == '\\')
            buf_addc(out, 'e');
        else
            buf_addc(out, *s);
        first = *s == '\n';
    }
}

static void man_opt(struct buf *out, const struct cmd_opt *o)
{
    buf_adds(out, ".TP\n.B ");
    if (o->letter != 0)
        buf_addf(out, "\\-%c\\fR,\\fB ", o->letter);
    buf_adds(out, "\\-\\-");
    man_text(out, o->name);
    if (o->value != NULL)
        buf_addf(out, " \\fI%s\\fR", o->value);
    buf_addc(out, '\n');
    man_text(out, o->doc);
    buf_addc(out, '\n');
}

static void man_command(struct buf *out, const struct cmd *c)
{
    buf_addf(out, ".SS %s\n.B cove ", c->name);
    man_text(out, c->usage);
    buf_adds(out, "\n.PP\n");
    man_text(out, c->summary);
    buf_adds(out, ".\n");
    if (c->about != NULL) {
        buf_adds(out, ".PP\n.nf\n"); /* keep its line breaks */
        man_text(out, c->about);
        buf_adds(out, "\n.fi\n");
    }
    for (const struct cmd_sub *s = c->subs; s != NULL && s->name != NULL; s++) {
        buf_addf(out, ".TP\n.B %s %s\n", s->name, s->operands);
        man_text(out, s->doc);
        buf_addc(out, '\n');
    }
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++)
        man_opt(out, o);
}

static void docs_man(struct buf *out)
{
    static const char *const wants[] = {"TEXT", "N", "SIZE", "TIME"}; /* by type of the setting */

    buf_addf(out,
             ".\\\" Generated from the tables in src/cli/commands by `make docs`.\n"
             ".TH COVE 1 \"\" \"cove %s\"\n.SH NAME\ncove \\- sandboxes for AI agents, on machines "
             "you own\n.SH SYNOPSIS\n.B cove\n.I COMMAND\n[OPTIONS] [ARGUMENTS]\n.SH COMMANDS\n",
             COVE_VERSION);
    for (size_t i = 0; i < cmd_count; i++)
        if (cmd_all[i]->summary != NULL)
            man_command(out, cmd_all[i]);
    buf_adds(out, ".SH SETTINGS\nOptions of \\fBcove serve\\fR, and lines (name = value) of the "
                  "file given with \\fB\\-\\-config\\fR.\n");
    for (size_t i = 0; i < config_nkeys; i++) {
        man_opt(out, &(struct cmd_opt){.name = config_keys[i].name,
                                       .value = wants[config_keys[i].type],
                                       .doc = config_keys[i].doc});
        if (*config_keys[i].def != '\0') {
            buf_adds(out, "Default: ");
            man_text(out, config_keys[i].def);
            buf_adds(out, ".\n");
        }
    }
    buf_adds(
        out,
        ".SH ENVIRONMENT\n.TP\n.B COVE_URL\nthe server, as http://HOST:PORT\n"
        ".TP\n.B COVE_API_KEY\nthe API key\n.TP\n.B COVE_CONTEXT\nthe server of that name (see "
        "\\fBcontext\\fR), as the option \\fB\\-\\-context\\fR of any command\n"
        ".TP\n.B COVE_AS\nwith an admin key: the key to act for, as the option "
        "\\fB\\-\\-as\\fR of any command\n"
        ".PP\nWithout them and without a current context, root uses the "
        "daemon that was started last on this machine, from\n\\fI/run/cove/default\\fR.\n"
        ".SH FILES\n.TP\n.I /var/lib/cove\nthe default state directory "
        "(\\fB\\-\\-state\\fR): all data of the daemon\n"
        ".TP\n.I DIR/api-key\nthe first API key; only root can read it\n"
        ".TP\n.I ~/.config/cove/contexts.json\nnames, URLs and keys of \\fBcove context\\fR; "
        "only its owner may read it\n"
        ".TP\n.I /run/cove/default\nURL and key file of the daemon that was started last\n"
        ".SH EXIT STATUS\n\\fBrun\\fR, \\fBexec\\fR, \\fBshell\\fR and \\fBsession exec\\fR "
        "exit with the status of "
        "the command they ran: 128 + N after signal N, 124 after \\fB\\-\\-timeout\\fR, 127 if the "
        "program was not found, 126 if it cannot be executed. A failure of cove itself is "
        "between 200 and 213, which no shell uses: 200 after a usage error, 210 if stdout "
        "could not be written, or:\n");
    for (int i = 0; i < ERR_KIND_COUNT; i++) {
        buf_addf(out, ".TP\n.B %d\n%s: ", err_exit((enum err_kind)i), err_code((enum err_kind)i));
        man_text(out, err_meaning((enum err_kind)i));
        buf_addc(out, '\n');
    }
}

/* A cell without effect is left out; of several events with one end there is one arrow. */
static void states_arrows(struct buf *out, int from)
{
    for (int to = 0; to < WS_STATE_COUNT; to++) {
        const char *sep = " : ";

        for (int ev = 0; ev < WS_EVENT_COUNT; ev++) {
            const struct ws_step *s = &ws_steps[from][ev];

            if (to == from || s->tell == WS_NEVER || s->tell == WS_LATER || (int)s->next != to)
                continue;
            if (*sep == ' ')
                buf_addf(out, "    %s --> %s", ws_states[from].name, ws_states[to].name);
            buf_addf(out, "%s%s", sep, ws_events[ev].name);
            sep = ", ";
        }
        if (*sep == ',')
            buf_addc(out, '\n');
    }
}

static void docs_workspaces(struct buf *out)
{
    buf_adds(out, "<!-- Generated from src/front/workspace/states.h by `make docs`. -->\n\n"
                  "# The life of a workspace\n\n```mermaid\nstateDiagram-v2\n    [*] --> COLD\n");
    for (int s = 0; s < WS_STATE_COUNT; s++)
        states_arrows(out, s);
    buf_adds(out, "```\n\n| state | shown as | what it means |\n|---|---|---|\n");
    for (int s = 0; s < WS_STATE_COUNT; s++)
        buf_addf(out, "| %s | %s | %s |\n", ws_states[s].name, ws_states[s].shown,
                 ws_states[s].meaning);
    buf_adds(out, "\n| event | what it means |\n|---|---|\n");
    for (int ev = 0; ev < WS_EVENT_COUNT; ev++)
        buf_addf(out, "| %s | %s |\n", ws_events[ev].name, ws_events[ev].meaning);
}

static int docs(const struct args *a, struct err *e)
{
    static const struct {
        const char *name;
        void (*write)(struct buf *out);
    } rows[] = {
        {"errors", docs_errors}, {"config", docs_config},         {"commands", docs_commands},
        {"man", docs_man},       {"workspaces", docs_workspaces},
    };
    autobuf struct buf out = BUF_INIT(TEXT_MAX);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(a->operands[0], rows[i].name) == 0)
            rows[i].write(&out);
    if (out.len == 0)
        return err_set(e, ERR_INVALID, "unknown document '%.40s'", a->operands[0]);
    fputs(buf_cstr(&out), stdout);
    return 0;
}

const struct cmd cmd_docs = {
    .name = "internal-docs",
    .usage = "internal-docs errors|config|commands|man|workspaces",
    .min = 1,
    .max = 1,
    .run = docs,
};
