/* ls.c - `cove ls`: lists a directory of a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/commands/request.h"
#include "cli/files/place.h"
#include "cli/table.h"

#define SHOWN_MAX 16384 /* a path and the target of a link */

struct listing {
    struct server server;
    struct place at;
    const char *user;
    bool all, long_form, deep, json;
    size_t skip; /* bytes of each path that name the listed directory and are not shown */
    struct table table;
};

static char type_letter(const char *type)
{
    static const struct {
        const char *type;
        char letter;
    } letters[] = {
        {"directory", 'd'}, {"symlink", 'l'}, {"fifo", 'p'}, {"socket", 's'}, {"device", 'c'}};

    for (size_t i = 0; type != NULL && i < ARRAY_LEN(letters); i++)
        if (strcmp(letters[i].type, type) == 0)
            return letters[i].letter;
    return '-';
}

/* -rw-r--r--, as ls prints it. */
static void mode_text(const json_t *file, char out[11])
{
    const char *octal = json_string_value(json_object_get(file, "mode"));
    unsigned mode = octal != NULL ? (unsigned)strtoul(octal, NULL, 8) : 0;

    out[0] = type_letter(json_string_value(json_object_get(file, "type")));
    for (int i = 0; i < 9; i++)
        out[i + 1] = (char)(mode & (0400u >> i) ? "rwxrwxrwx"[i] : '-');
    if (mode & 04000)
        out[3] = mode & 0100 ? 's' : 'S';
    if (mode & 02000)
        out[6] = mode & 010 ? 's' : 'S';
    if (mode & 01000)
        out[9] = mode & 01 ? 't' : 'T';
    out[10] = '\0';
}

static void add_owner(struct table *t, const json_t *file, const char *name, const char *id)
{
    const char *text = json_string_value(json_object_get(file, name));

    char number[TABLE_TEXT_MAX];

    table_add(t, text != NULL && *text != '\0' ? text
                                               : table_number(json_object_get(file, id), number));
}

static void add_row(struct listing *l, const json_t *file, const char *name, const char *target)
{
    autobuf struct buf shown = BUF_INIT(SHOWN_MAX);
    char mode[11], time[20], size[TABLE_TEXT_MAX];

    mode_text(file, mode);
    snprintf(time, sizeof(time), "%.16s",
             json_string_value(json_object_get(file, "modified_at")) ?: "-");
    buf_addf(&shown, "%s%s%s", name, target != NULL ? " -> " : "", target != NULL ? target : "");
    table_add(&l->table, mode);
    add_owner(&l->table, file, "owner", "uid");
    add_owner(&l->table, file, "group", "gid");
    table_add(&l->table, table_number(json_object_get(file, "size"), size));
    table_add(&l->table, time);
    table_add_whole(&l->table, buf_cstr(&shown));
}

static void show(struct listing *l, const json_t *file)
{
    autofree char *path = place_text(file, "path"), *target = place_text(file, "target");
    const char *name = path;

    if (path == NULL)
        return;
    if (l->skip > 0 && strlen(path) > l->skip)
        name = path + l->skip + strspn(path + l->skip, "/");
    if (l->long_form) {
        add_row(l, file, name, target);
    } else if (isatty(STDOUT_FILENO) == 1) { /* control characters must not reach a terminal */
        autofree char *shown = table_printable(name, SIZE_MAX);

        puts(shown);
    } else {
        puts(name);
    }
}

static int list(struct listing *l, struct err *e)
{
    autojson json_t *at = place_stat(&l->server, &l->at, l->user, e);
    autofree char *path = place_text(at, "path"), *after = NULL;
    char more[64];

    if (at == NULL)
        return -1;
    if (!place_is_dir(at)) {
        if (l->json)
            request_print(at);
        else
            show(l, at);
        return 0;
    }
    l->skip = path != NULL ? strlen(path) : 0;
    snprintf(more, sizeof(more), "&depth=%d&hidden=%d", l->deep ? 400 : 1, l->all);
    do {
        autojson json_t *page = NULL;
        json_t *file;
        size_t i;

        if (place_list(&l->server, &l->at, l->user, more, &after, &page, e) < 0)
            return -1;
        if (l->json) {
            request_print(page);
            continue;
        }
        json_array_foreach(json_object_get(page, "files"), i, file) show(l, file);
    } while (after != NULL);
    return 0;
}

static int run(const struct args *a, struct err *e)
{
    static struct listing l;
    char whole[512];
    const char *place = a->operands[0];
    int r;

    l.user = args_value(a, "user");
    l.all = args_flag(a, "all");
    l.long_form = args_flag(a, "long");
    l.deep = args_flag(a, "recursive");
    l.json = args_flag(a, "json");
    if (strchr(place, ':') == NULL) {
        if (snprintf(whole, sizeof(whole), "%s:", place) >= (int)sizeof(whole))
            return err_set(e, ERR_INVALID, "'%.60s...' is too long for a sandbox id", place);
        place = whole;
    }
    if (place_parse(&l.at, place, e) < 0 || server_find(&l.server, e) < 0)
        return -1;
    if (l.at.sandbox[0] == '\0')
        return err_set(e, ERR_INVALID, "%s: not a SANDBOX:PATH", a->operands[0]);
    table_init(&l.table, "MODE", "OWNER", "GROUP", "SIZE", "MODIFIED", "NAME", NULL);
    r = list(&l, e);
    if (r == 0 && l.long_form && !l.json)
        table_print(&l.table);
    table_free(&l.table);
    return r;
}

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'l', "long", NULL, "show modes, owners, sizes and times"},
    {'a', "all", NULL, "show names that begin with a dot too"},
    {'R', "recursive", NULL, "list everything below the directory"},
    {'u', "user", "USER", "act as this user of the sandbox [user]"},
    {0, "json", NULL, "print JSON, one document for each 10,000 entries"},
    {0},
};
/* clang-format on */

const struct cmd cmd_ls = {
    .name = "ls",
    .usage = "ls [OPTIONS] SANDBOX[:PATH]",
    .summary = "list files of a sandbox",
    .about = "Without a PATH: the directory in which commands start.",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = run,
};
