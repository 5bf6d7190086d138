/* completion.c - `cove completion`: completion scripts for shells, generated from the command
 * tables. For names and ids of sandboxes they run `cove completion sandboxes`, which gives up after a
 * second: pressing Tab must not wait. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "config/config.h"
#include "json/read.h"

#define SCRIPT_MAX (256u << 10)

static bool is_shown(const struct cmd *c)
{
    return c->summary != NULL;
}

/* Single quotes work in both shells. */
static void quote(struct buf *out, const char *s)
{
    buf_addc(out, '\'');
    for (; *s != '\0'; s++)
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *s);
    buf_addc(out, '\'');
}

/* The options of the command, the settings if it accepts them, and --help. */
static void each_option(const struct cmd *c, struct buf *out,
                        void (*put)(struct buf *out, char letter, const char *name,
                                    const char *value, const char *doc))
{
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++)
        put(out, o->letter, o->name, o->value, o->doc);
    for (size_t i = 0; c->more_help != NULL && i < config_nkeys; i++)
        put(out, 0, config_keys[i].name, "VALUE", config_keys[i].doc);
    put(out, 0, "help", NULL, "show help");
}

/* Subcommands and other first words, separated by blanks. */
static void first_words(const struct cmd *c, struct buf *out)
{
    for (const struct cmd_sub *s = c->subs; s != NULL && s->name != NULL; s++)
        buf_addf(out, "%s%s", s == c->subs ? "" : " ", s->name);
    if (c->words != NULL)
        buf_adds(out, c->words);
}

/* Whether an operand of the command, or of one of its subcommands, is a sandbox. */
static bool takes_sandbox(const struct cmd *c)
{
    for (const struct cmd_sub *s = c->subs; s != NULL && s->name != NULL; s++)
        if (strstr(s->operands, "SANDBOX") != NULL)
            return true;
    return strstr(c->usage, "SANDBOX") != NULL || strcmp(c->name, "cp") == 0 ||
           strcmp(c->name, "ls") == 0 || strcmp(c->name, "cat") == 0;
}

/* ---- bash ---- */

static void bash_option(struct buf *out, char letter, const char *name, const char *value,
                        const char *doc)
{
    (void)value;
    (void)doc;
    if (letter != 0)
        buf_addf(out, "-%c ", letter);
    buf_addf(out, "--%s ", name);
}

static void bash_command(struct buf *out, const struct cmd *c)
{
    buf_addf(out, "    %s%s%s)\n        words='", c->name, c->alias != NULL ? "|" : "",
             c->alias != NULL ? c->alias : "");
    first_words(c, out);
    buf_adds(out, "'\n        options='");
    each_option(c, out, bash_option);
    buf_addf(out, "'\n        sandboxes=%s\n        ;;\n", takes_sandbox(c) ? "1" : "");
}

static void bash(struct buf *out)
{
    buf_adds(out, "# bash completion for cove; made by `cove completion bash`.\n"
                  "_cove()\n{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} words= options= sandboxes=\n"
                  "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
                  "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < cmd_count; i++)
        if (is_shown(cmd_all[i]))
            buf_addf(out, "%s ", cmd_all[i]->name);
    buf_adds(out, "' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < cmd_count; i++)
        if (is_shown(cmd_all[i]))
            bash_command(out, cmd_all[i]);
    buf_adds(out, "    esac\n"
                  "    if [[ $word == -* ]]; then\n"
                  "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                  "    elif [ \"$COMP_CWORD\" = 2 ] && [ -n \"$words\" ]; then\n"
                  "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                  "    elif [ -n \"$sandboxes\" ]; then\n"
                  "        COMPREPLY=($(compgen -W \"$(cove completion sandboxes 2>/dev/null)\" -- "
                  "\"$word\"))\n"
                  "    fi\n}\n"
                  "complete -o default -F _cove cove\n");
}

/* ---- zsh ---- */

static void zsh_option(struct buf *out, char letter, const char *name, const char *value,
                       const char *doc)
{
    autobuf struct buf one = BUF_INIT(4096);

    (void)letter;
    buf_addf(&one, "--%s[", name);
    for (; *doc != '\0'; doc++) { /* brackets and colons are special in zsh */
        if (strchr("[]:\\", *doc) != NULL)
            buf_addc(&one, '\\');
        buf_addc(&one, *doc);
    }
    buf_addf(&one, "]%s%s%s", value != NULL ? ":" : "", value != NULL ? value : "",
             value != NULL ? ":_files" : "");
    buf_addc(out, ' ');
    quote(out, buf_cstr(&one));
}

static void zsh_command(struct buf *out, const struct cmd *c)
{
    buf_addf(out, "        %s%s%s)\n            _arguments", c->name, c->alias != NULL ? "|" : "",
             c->alias != NULL ? c->alias : "");
    each_option(c, out, zsh_option);
    if (c->subs != NULL || c->words != NULL) {
        buf_adds(out, " '1:what:(");
        first_words(c, out);
        buf_adds(out, ")'");
    }
    buf_addf(out, " '*::argument:%s'\n            ;;\n",
             takes_sandbox(c) ? "_cove_sandboxes" : "_files");
}

static void zsh(struct buf *out)
{
    buf_adds(out, "#compdef cove\n# zsh completion for cove; made by `cove completion zsh`.\n"
                  "_cove_sandboxes()\n{\n    local -a all\n"
                  "    all=(${(f)\"$(cove completion sandboxes 2>/dev/null)\"})\n"
                  "    compadd -a all\n    _files\n}\n"
                  "_cove()\n{\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < cmd_count; i++) {
        autobuf struct buf one = BUF_INIT(4096);

        if (!is_shown(cmd_all[i]))
            continue;
        buf_addf(&one, "%s:%s", cmd_all[i]->name, cmd_all[i]->summary);
        buf_adds(out, "        ");
        quote(out, buf_cstr(&one));
        buf_addc(out, '\n');
    }
    buf_adds(out, "    )\n    if (( CURRENT == 2 )); then\n"
                  "        _describe command commands\n        return\n    fi\n"
                  "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                  "    case $command in\n");
    for (size_t i = 0; i < cmd_count; i++)
        if (is_shown(cmd_all[i]))
            zsh_command(out, cmd_all[i]);
    buf_adds(out, "    esac\n}\n"
                  "if [ \"$funcstack[1]\" = _cove ]; then\n    _cove \"$@\"\nelse\n"
                  "    compdef _cove cove\nfi\n");
}

/* ---- fish ---- */

static const struct cmd *fish_of; /* the command whose options fish_option() writes */

static void fish_option(struct buf *out, char letter, const char *name, const char *value,
                        const char *doc)
{
    buf_addf(out, "complete -c cove -n '__fish_seen_subcommand_from %s%s%s' -l %s", fish_of->name,
             fish_of->alias != NULL ? " " : "", fish_of->alias != NULL ? fish_of->alias : "", name);
    if (letter != 0)
        buf_addf(out, " -s %c", letter);
    buf_addf(out, "%s -d ", value != NULL ? " -r" : "");
    quote(out, doc);
    buf_addc(out, '\n');
}

static void fish_command(struct buf *out, const struct cmd *c)
{
    autobuf struct buf words = BUF_INIT(4096);

    buf_addf(out, "complete -c cove -f -n __fish_use_subcommand -a %s -d ", c->name);
    quote(out, c->summary);
    buf_addc(out, '\n');
    first_words(c, &words);
    if (words.len > 0)
        buf_addf(out, "complete -c cove -f -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name,
                 buf_cstr(&words));
    if (takes_sandbox(c))
        buf_addf(out,
                 "complete -c cove -n '__fish_seen_subcommand_from %s%s%s' -a '(cove completion "
                 "sandboxes 2>/dev/null)'\n",
                 c->name, c->alias != NULL ? " " : "", c->alias != NULL ? c->alias : "");
    fish_of = c;
    each_option(c, out, fish_option);
}

static void fish(struct buf *out)
{
    buf_adds(out, "# fish completion for cove; made by `cove completion fish`.\n");
    for (size_t i = 0; i < cmd_count; i++)
        if (is_shown(cmd_all[i]))
            fish_command(out, cmd_all[i]);
}

/* ---- sandboxes ---- */

#define SANDBOXES_SECONDS 1

/* Names and ids, one per line. Without a server there are none, and nothing is said. */
static int print_sandboxes(struct err *e)
{
    autojson json_t *answer = NULL;
    json_t *item;
    struct server s;
    size_t i;

    alarm(SANDBOXES_SECONDS);
    if (server_find(&s, e) < 0 ||
        client_call(&s, "GET", "/v1/sandboxes?limit=1000", NULL, &answer, e) < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "sandboxes"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));

        if (name != NULL && name[strcspn(name, " \t'\"$`\\")] == '\0')
            puts(name);
        puts(json_string_value(json_object_get(item, "id")));
    }
    return 0;
}

static int completion(const struct args *a, struct err *e)
{
    static const struct {
        const char *shell;
        void (*write)(struct buf *out);
    } rows[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    autobuf struct buf out = BUF_INIT(SCRIPT_MAX);

    if (strcmp(a->operands[0], "sandboxes") == 0)
        return print_sandboxes(e);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(a->operands[0], rows[i].shell) == 0)
            rows[i].write(&out);
    if (out.len == 0)
        return err_set(e, ERR_INVALID,
                       "no completion for shell '%.40s'; expected bash, zsh or fish",
                       a->operands[0]);
    fputs(buf_cstr(&out), stdout);
    return 0;
}

const struct cmd cmd_completion = {
    .name = "completion",
    .usage = "completion bash|zsh|fish",
    .summary = "print a script that completes commands, options and sandboxes in a shell",
    .about =
        "For the current shell: `source <(cove completion bash)`, in fish `cove completion fish |\n"
        "source`. `make install` installs the scripts where the shells find them.",
    .words = "bash zsh fish",
    .min = 1,
    .max = 1,
    .run = completion,
};
