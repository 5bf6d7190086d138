/* ls.c - `cove ls`: what is in a directory of a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/place.h"
#include "cli/request.h"
#include "cli/table.h"

#define SHOWN_MAX 16384 /* a path, and what it leads to */

struct listing {
    struct server server;
    struct place at;
    const char *user;
    bool all, long_form, deep, json;
    size_t skip; /* of paths: what is shown is below the directory */
    struct table table;
};

/* A tenant's name must not be able to repaint the terminal. */
static void print_name(const char *name)
{
    autofree char *shown = NULL;

    if (isatty(STDOUT_FILENO) == 1)
        name = shown = table_printable(name, SIZE_MAX);
    puts(name);
}

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

/* As ls has it: -rw-r--r--. */
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

static void add_who(struct table *t, const json_t *file, const char *name, const char *id)
{
    const char *text = json_string_value(json_object_get(file, name));
    char number[24];

    snprintf(number, sizeof(number), "%lld",
             (long long)json_integer_value(json_object_get(file, id)));
    table_add(t, text != NULL && *text != '\0' ? text : number);
}

static void add_row(struct listing *l, const json_t *file, const char *name, const char *target)
{
    autobuf struct buf shown = BUF_INIT(SHOWN_MAX);
    char mode[11], size[24], time[20];

    mode_text(file, mode);
    snprintf(size, sizeof(size), "%lld",
             (long long)json_integer_value(json_object_get(file, "size")));
    snprintf(time, sizeof(time), "%.16s",
             json_string_value(json_object_get(file, "modified_at")) ?: "-");
    buf_addf(&shown, "%s%s%s", name, target != NULL ? " -> " : "", target != NULL ? target : "");
    table_add(&l->table, mode);
    add_who(&l->table, file, "owner", "uid");
    add_who(&l->table, file, "group", "gid");
    table_add(&l->table, size);
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
    if (l->long_form)
        add_row(l, file, name, target);
    else
        print_name(name);
}

static int page(struct listing *l, char **after, struct err *e)
{
    char target[PLACE_TARGET_MAX], more[PLACE_TARGET_MAX / 2], code[8192] = "";
    autojson json_t *answer = NULL;
    const char *next;
    json_t *file;
    size_t i;

    if (*after != NULL)
        place_encode(code, sizeof(code), *after);
    snprintf(more, sizeof(more), "&depth=%d&hidden=%d&limit=10000%s%.7000s", l->deep ? 400 : 1,
             l->all, *after != NULL ? "&after=" : "", code);
    place_target(target, &l->at, "files/list", l->at.path, l->user, more);
    if (client_call(&l->server, "GET", target, NULL, &answer, e) < 0)
        return -1;
    if (l->json)
        request_print(answer);
    json_array_foreach(json_object_get(answer, "files"), i, file)
    {
        if (!l->json)
            show(l, file);
    }
    next = json_string_value(json_object_get(answer, "next"));
    free(*after);
    *after = next != NULL ? strdup(next) : NULL;
    return 0;
}

static int list(struct listing *l, struct err *e)
{
    autojson json_t *at = place_stat(&l->server, &l->at, l->at.path, l->user, e);
    const char *type = json_string_value(json_object_get(at, "type"));
    autofree char *path = place_text(at, "path"), *after = NULL;

    if (at == NULL)
        return -1;
    if (type != NULL && strcmp(type, "directory") != 0) {
        if (l->json)
            request_print(at);
        else
            show(l, at);
        return 0;
    }
    l->skip = path != NULL ? strlen(path) : 0;
    do {
        if (page(l, &after, e) < 0)
            return -1;
    } while (after != NULL);
    return 0;
}

static int run(const struct args *a, struct err *e)
{
    static struct listing l;
    char whole[512];
    int r;

    l.user = args_value(a, "user");
    l.all = args_flag(a, "all");
    l.long_form = args_flag(a, "long");
    l.deep = args_flag(a, "recursive");
    l.json = args_flag(a, "json");
    if (strchr(a->operands[0], ':') == NULL) {
        if (snprintf(whole, sizeof(whole), "%s:", a->operands[0]) >= (int)sizeof(whole))
            return err_set(e, ERR_INVALID, "that is no sandbox");
    }
    if (place_parse(&l.at, strchr(a->operands[0], ':') == NULL ? whole : a->operands[0], e) < 0 ||
        server_find(&l.server, e) < 0)
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
    {'l', "long", NULL, "with modes, owners, sizes and times"},
    {'a', "all", NULL, "names that begin with a dot too"},
    {'R', "recursive", NULL, "everything below it"},
    {'u', "user", "USER", "whose rights are used in the sandbox [user]"},
    {0, "json", NULL, "as JSON, one document for each 10,000 entries"},
    {0},
};
/* clang-format on */

const struct cmd cmd_ls = {
    .name = "ls",
    .usage = "ls [OPTIONS] SANDBOX[:PATH]",
    .summary = "list files of a sandbox",
    .about = "Without a PATH: where its commands start.",
    .opts = opts,
    .min = 1,
    .max = 1,
    .run = run,
};
