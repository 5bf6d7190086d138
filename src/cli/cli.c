/* cli.c - finds the command in argv, runs it, and turns its error into an exit status. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/cmd.h"
#include "cli/table.h"
#include "mem/mem.h"

#define HELP_MAX (64u << 10)
#define COMPLAINT_MAX 2048
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND 127
#define STATUS_IO 210 /* stdout could not be written; beside those of base/err.h */

/* clang-format off */
const struct cmd *const cmd_all[] = {
#define X(name) &cmd_##name,
    CMDS(X)
#undef X
};
/* clang-format on */
const size_t cmd_count = ARRAY_LEN(cmd_all);

const struct cmd *cmd_find(const char *name)
{
    for (size_t i = 0; i < cmd_count; i++) {
        const struct cmd *c = cmd_all[i];

        if (strcmp(c->name, name) == 0 || (c->alias != NULL && strcmp(c->alias, name) == 0))
            return c;
    }
    return NULL;
}

/* Edit distance (Damerau-Levenshtein): letters to insert, drop, change or swap. */
#define WORD_MAX 16
static size_t distance(const char *a, const char *b)
{
    size_t d[WORD_MAX + 1][WORD_MAX + 1], na = strlen(a), nb = strlen(b);

    if (na > WORD_MAX || nb > WORD_MAX)
        return WORD_MAX;
    for (size_t i = 0; i <= na; i++) {
        for (size_t j = 0; j <= nb; j++) {
            size_t best = i == 0 ? j : i;

            if (i > 0 && j > 0) {
                best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
                best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = d[i - 2][j - 2] + 1 < best ? d[i - 2][j - 2] + 1 : best;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

const char *cmd_nearest(const char *name)
{
    const char *nearest = NULL;
    size_t least = 3; /* more than two typing errors: a different word */

    for (size_t i = 0; i < cmd_count; i++) {
        size_t n = distance(name, cmd_all[i]->name);

        if (cmd_all[i]->summary != NULL && n < least && n < strlen(cmd_all[i]->name)) {
            least = n;
            nearest = cmd_all[i]->name;
        }
    }
    return nearest;
}

static void write_option(const struct cmd_opt *o, const char *doc, struct buf *out)
{
    char left[64], letter[8] = "      ";

    if (o->letter != 0)
        snprintf(letter, sizeof(letter), "  -%c, ", o->letter);
    snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->value != NULL ? " " : "",
             o->value != NULL ? o->value : "");
    buf_add_columns(out, left, 27, doc);
}

static bool is_sub(const struct cmd *c, const char *name, size_t n)
{
    for (const struct cmd_sub *s = c->subs; s->name != NULL; s++)
        if (strlen(s->name) == n && strncmp(s->name, name, n) == 0)
            return true;
    return false;
}

/* The text of an option for one subcommand, or NULL if it is for others: "take, import: name of
 * the snapshot; list: only snapshots of this name". A text that names none is for all. */
static const char *doc_for(const struct cmd *c, const struct cmd_sub *s, const char *doc, char *out,
                           size_t room)
{
    const char *part = doc;

    while (*part != '\0') {
        size_t end = strcspn(part, ";"), colon = strcspn(part, ":");
        bool names = colon < end, mine = false;

        for (const char *w = part; names && w < part + colon;) {
            size_t n = strcspn(w, ",:");

            names = is_sub(c, w, n);
            mine = mine || (strlen(s->name) == n && strncmp(w, s->name, n) == 0);
            w += n;
            w += strspn(w, ", ");
        }
        if (!names)
            return doc;
        if (mine) {
            snprintf(out, room, "%.*s", (int)(end - colon - 2), part + colon + 2);
            return out;
        }
        part += end;
        part += strspn(part, "; ");
    }
    return NULL;
}

void cmd_write_sub_help(const struct cmd *c, const struct cmd_sub *s, struct buf *out)
{
    bool any = false;

    buf_addf(out, "usage: cove %s %s%s%s%s\n\n%s\n", c->name, s->name,
             c->opts != NULL ? " [OPTIONS]" : "", *s->operands != '\0' ? " " : "", s->operands,
             s->doc);
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++) {
        char text[256];
        const char *doc = doc_for(c, s, o->doc, text, sizeof(text));

        if (doc == NULL)
            continue;
        if (!any)
            buf_adds(out, "\noptions:\n");
        any = true;
        write_option(o, doc, out);
    }
    buf_addf(out, "\n`cove help %s` has the rest.\n", c->name);
}

void cmd_write_help(const struct cmd *c, struct buf *out)
{
    buf_addf(out, "usage: cove %s\n", c->usage);
    if (c->alias != NULL)
        buf_addf(out, "alias: cove %s\n", c->alias);
    if (c->summary != NULL)
        buf_addf(out, "\n%s\n", c->summary);
    if (c->about != NULL)
        buf_addf(out, "\n%s\n", c->about);
    if (c->subs != NULL)
        buf_adds(out, "\nsubcommands:\n");
    for (const struct cmd_sub *s = c->subs; s != NULL && s->name != NULL; s++) {
        char left[64];

        snprintf(left, sizeof(left), "  %s %s", s->name, s->operands);
        buf_add_columns(out, left, 39, s->doc);
    }
    if (c->opts != NULL || c->more_help != NULL)
        buf_adds(out, "\noptions:\n");
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++)
        write_option(o, o->doc, out);
    if (c->more_help != NULL)
        c->more_help(out);
}

void cmd_write_help_all(struct buf *out)
{
    buf_adds(out, "usage: cove COMMAND [OPTIONS] [ARGUMENTS]\n\n"
                  "Sandboxes for AI agents, on machines you own.\n\n");
    for (size_t i = 0; i < cmd_count; i++)
        if (cmd_all[i]->summary != NULL)
            buf_addf(out, "  %-11s %s\n", cmd_all[i]->name, cmd_all[i]->summary);
    buf_adds(
        out,
        "\n`cove help COMMAND` shows its options. SANDBOX is an id, a name or an unambiguous\n"
        "beginning of an id. COVE_URL and COVE_API_KEY select the server, or --context NAME of "
        "any\n"
        "command (`cove context`); without them, root uses the daemon that was started last on\n"
        "this machine. With an admin key, --as KEY of any command acts for another key. Our own\n"
        "exit statuses are 200 to 213 (docs/errors.md); `run` and `exec` exit with the command's\n"
        "own.\n");
}

void cmd_complain(const char *name, const char *fmt, ...)
{
    char text[COMPLAINT_MAX];
    autofree char *shown = NULL;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    shown = table_printable(text, COMPLAINT_MAX);
    fprintf(stderr, "cove%s%s: %s\n", name != NULL ? " " : "", name != NULL ? name : "", shown);
}

/* The status, or STATUS_IO if it is 0 and not everything printed could be written. */
static int end_output(const struct cmd *c, int status)
{
    const char *why = fflush(stdout) != 0 ? strerror(errno)
                      : ferror(stdout)    ? "not all output could be written"
                                          : NULL;

    if (why == NULL || status != 0)
        return status;
    cmd_complain(c->name, "stdout: %s", why);
    return STATUS_IO;
}

/* As a shell: 127 if the program was not found, 126 if it cannot be executed. */
static int status_of(const struct err *e)
{
    if (e->kind == ERR_CANNOT_START && e->sys != 0)
        return e->sys == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    return err_exit(e->kind);
}

static int run(const struct cmd *c, int argc, char **argv)
{
    struct args a;
    struct err e = {0};
    bool help;
    int status = 0;

    if (args_parse(&a, c, argc, argv, &help, &e) < 0) {
        cmd_complain(c->name, "%s", e.msg);
        fprintf(stderr, "usage: cove %s\n", c->usage);
        if (c->opts != NULL)
            fprintf(stderr, "`cove help %s` lists its options.\n", c->name);
        return CMD_USAGE;
    }
    if (help) {
        autobuf struct buf out = BUF_INIT(HELP_MAX);

        const struct cmd_sub *sub = a.noperands > 0 ? c->subs : NULL;

        while (sub != NULL && sub->name != NULL && strcmp(sub->name, a.operands[0]) != 0)
            sub++;
        if (sub != NULL && sub->name != NULL)
            cmd_write_sub_help(c, sub, &out);
        else
            cmd_write_help(c, &out);
        fputs(buf_cstr(&out), stdout);
    } else if ((status = c->run(&a, &e)) < 0) {
        cmd_complain(c->name, "%s", e.msg);
        status = status_of(&e);
    }
    return end_output(c, status);
}

int cli_main(int argc, char **argv)
{
    autobuf struct buf out = BUF_INIT(HELP_MAX);
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct cmd *c;

    mem_for_json();
    /* If stdin, stdout or stderr is closed, the next file or socket opened would get its number
     * and receive our output. /dev/null takes the number, opened in the wrong direction so that
     * reading stdin and writing stdout still fail. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            abort();
    if (name == NULL) {
        cmd_write_help_all(&out);
        fputs(buf_cstr(&out), stderr);
        return CMD_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    c = cmd_find(name);
    if (c == NULL) {
        const char *nearest = cmd_nearest(name);

        cmd_complain(NULL, "unknown command '%s'%s%s%s", name,
                     nearest != NULL ? "; did you mean `cove " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "`?" : "");
        fprintf(stderr, "`cove help` lists all commands.\n");
        return CMD_USAGE;
    }
    return run(c, argc - 2, argv + 2);
}
