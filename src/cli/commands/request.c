/* request.c - see request.h. */
#include "cli/commands/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/table.h"

/* jansson escapes control characters below 0x20. C1 controls (two bytes in UTF-8) are escaped
 * here: programs read the same text, and a terminal does not obey it. */
void request_dump(json_t *j, size_t flags)
{
    autofree char *text = json_dumps(j != NULL ? j : json_null(), flags | JSON_ENCODE_ANY);

    if (text == NULL)
        abort();
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0)
            printf("\\u%04x", (unsigned char)*++p);
        else
            putchar(*p);
    putchar('\n');
}

void request_print(json_t *j)
{
    request_dump(j, JSON_INDENT(2));
}

int request_print_text(json_t *answer, const char *name, struct err *e)
{
    const char *text = json_string_value(json_object_get(answer, name));

    if (text == NULL)
        return err_set(e, ERR_INTERNAL, "the server's answer has no %s", name);
    puts(text);
    return 0;
}

int request_print_made(const struct args *a, json_t *answer, const char *name, struct err *e)
{
    if (!args_flag(a, "json"))
        return request_print_text(answer, name, e);
    request_print(answer);
    return 0;
}

void request_print_list(const struct args *a, json_t *answer, const char *key,
                        const struct table_column *columns)
{
    json_t *list = json_object_get(answer, key), *item;
    size_t i;

    if (args_flag(a, "json"))
        request_print(answer);
    else if (args_has_option(a, "quiet") && args_flag(a, "quiet"))
        json_array_foreach(list, i, item)
            printf("%s\n", json_string_value(json_object_get(item, "id")));
    else
        table_print_list(list, columns);
}

/* JSON is UTF-8, so other bytes are refused here. */
int request_text(json_t *obj, const char *key, const char *value, const char *what, struct err *e)
{
    if (value != NULL && json_object_set_new(obj, key, json_string(value)) < 0)
        return err_set(e, ERR_INVALID, "%s is not UTF-8", what);
    return 0;
}

int request_pairs(const struct args *a, const char *option, const char *key, json_t *body,
                  struct err *e)
{
    json_t *obj = json_object();
    const char *pair;
    size_t at = 0;

    json_object_set_new(body, key, obj);
    while ((pair = args_next(a, option, &at)) != NULL) {
        const char *eq = strchr(pair, '='), *value = eq != NULL ? eq + 1 : getenv(pair);
        char name[256];

        if (eq == pair || *pair == '\0')
            return err_set(e, ERR_INVALID, "--%s: '%.60s' has no name; expected NAME=VALUE", option,
                           pair);
        if (value == NULL)
            return err_set(
                e, ERR_INVALID,
                "--%s: '%.60s' is not NAME=VALUE, and no variable of that name is set here", option,
                pair);
        if ((eq != NULL ? (size_t)(eq - pair) : strlen(pair)) >= sizeof(name))
            return err_set(e, ERR_INVALID, "--%s: the name is longer than 255 bytes", option);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(pair, "="), pair);
        if (request_text(obj, name, value, option, e) < 0)
            return -1;
    }
    return 0;
}

int request_duration(const struct args *a, const char *option, const char *key, json_t *body,
                     struct err *e)
{
    const char *text = args_value(a, option);
    uint64_t ms;

    if (text == NULL)
        return 0;
    if (str_duration_ms(text, &ms) < 0 || ms > INT64_MAX)
        return err_set(e, ERR_INVALID, "--%s: '%.60s' is not a time such as 30s, 5m or 2h", option,
                       text);
    json_object_set_new(body, key, json_integer((json_int_t)ms));
    return 0;
}

static int read_cores(const char *text, uint64_t *ret)
{
    char *end;
    double cores = strtod(text, &end);

    /* strtod also accepts blanks, exponents and hexadecimal */
    if (*text == '\0' || text[strspn(text, "0123456789.")] != '\0' || *end != '\0' ||
        !(cores > 0) || cores > 100000)
        return -1;
    *ret = (uint64_t)(cores * 1000 + 0.5);
    return 0;
}

static int read_count(const char *text, uint64_t *ret)
{
    return str_u64(text, INT64_MAX, ret);
}

int request_disk(const struct args *a, char out[PATH_TEXT_MAX], const char *path, struct err *e)
{
    const char *text = args_value(a, "disk");
    char number[24];
    uint64_t v;

    if (text != NULL && str_size(text, &v) < 0)
        return err_set(e, ERR_INVALID, "--disk: '%.60s' is not a size such as 512M or 2G", text);
    if (text != NULL)
        str_fmt(number, sizeof(number), "%llu", (unsigned long long)v);
    path_query(out, path, "disk", text == NULL ? NULL : number);
    return 0;
}

int request_limits(const struct args *a, json_t *body, struct err *e)
{
    /* clang-format off */
    enum { CORES, SIZE, N };
    static const struct {
        int (*read)(const char *text, uint64_t *ret);
        const char *want;
    } values[] = {
        [CORES] = {read_cores, "a number of cores such as 0.5 or 2"},
        [SIZE]  = {str_size,   "a size such as 512M or 2G"},
        [N]     = {read_count, "a number"},
    };
#define ROW(A, B, member, name, type, def, min, max, setting, api, value, ...) {name, #member, value},
    static const struct {
        const char *option, *key;
        unsigned value;
    } rows[] = {LIMITS(ROW, _, _)};
#undef ROW
    /* clang-format on */
    json_t *limits = json_object();

    json_object_set_new(body, "limits", limits);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = args_value(a, rows[i].option);
        uint64_t v;

        if (text == NULL)
            continue;
        if (values[rows[i].value].read(text, &v) < 0 || v > INT64_MAX)
            return err_set(e, ERR_INVALID, "--%s: '%.60s' is not %s", rows[i].option, text,
                           values[rows[i].value].want);
        json_object_set_new(limits, rows[i].key, json_integer((json_int_t)v));
    }
    return 0;
}

static int request_list(const struct args *a, const char *option, json_t *body, struct err *e)
{
    json_t *list = NULL;
    const char *value;
    size_t at = 0;

    while ((value = args_next(a, option, &at)) != NULL) {
        if (list == NULL) {
            list = json_array();
            json_object_set_new(body, option, list);
        }
        if (json_array_append_new(list, json_string(value)) < 0)
            return err_set(e, ERR_INVALID, "--%s is not UTF-8", option);
    }
    return 0;
}

int request_rules(const struct args *a, json_t *body, struct err *e)
{
    return request_list(a, "allow", body, e) < 0 ? -1 : request_list(a, "deny", body, e);
}

int request_sandbox(const struct args *a, json_t *body, struct err *e)
{
    autojson json_t *network = json_object();

    if (request_text(body, "template", args_value(a, "template"), "--template", e) < 0 ||
        request_pairs(a, "meta", "metadata", body, e) < 0 ||
        request_text(network, "mode", args_value(a, "network"), "--network", e) < 0 ||
        request_text(body, "fsync", args_value(a, "fsync"), "--fsync", e) < 0 ||
        request_rules(a, network, e) < 0)
        return -1;
    if (json_object_size(network) > 0)
        json_object_set(body, "network", network);
    return request_limits(a, body, e);
}

int request_argv(const struct args *a, int first, json_t *body, struct err *e)
{
    json_t *argv;

    if (first >= a->noperands)
        return 0;
    argv = json_array();
    json_object_set_new(body, "argv", argv);
    for (int i = first; i < a->noperands; i++)
        if (json_array_append_new(argv, json_string(a->operands[i])) < 0)
            return err_set(e, ERR_INVALID, "argument %d of the command is not UTF-8", i - first);
    return 0;
}

int request_as(const struct args *a, json_t *body, struct err *e)
{
    if (request_text(body, "cwd", args_value(a, "workdir"), "--workdir", e) < 0 ||
        request_text(body, "user", args_value(a, "user"), "--user", e) < 0)
        return -1;
    return request_pairs(a, "env", "env", body, e);
}

int request_command(const struct args *a, int first, json_t *body, struct err *e)
{
    if (args_flag(a, "tty") && args_value(a, "timeout") != NULL)
        return err_set(e, ERR_INVALID,
                       "--timeout and -t cannot be combined: a terminal has no timeout");
    if (args_flag(a, "detach") && (args_flag(a, "tty") || args_flag(a, "interactive")))
        return err_set(e, ERR_INVALID,
                       "-d and -%c cannot be combined: nothing is attached to a detached command",
                       args_flag(a, "tty") ? 't' : 'i');
    if (request_argv(a, first, body, e) < 0 || request_as(a, body, e) < 0)
        return -1;
    return request_duration(a, "timeout", "timeout_ms", body, e);
}
