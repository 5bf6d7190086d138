/* query.c - see query.h. */
#include "front/plane/query.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* The result is never longer. */
int query_unescape(char *s, struct err *e)
{
    char *to = s;

    for (; *s != '\0'; s++) {
        if (*s != '%') {
            *to++ = *s == '+' ? ' ' : *s;
            continue;
        }
        if (hex(s[1]) < 0 || hex(s[2]) < 0 || (s[1] == '0' && s[2] == '0'))
            return err_set(e, ERR_INVALID, "query: bad percent-encoding");
        *to++ = (char)(hex(s[1]) << 4 | hex(s[2]));
        s += 2;
    }
    *to = '\0';
    return 0;
}

static json_t *number(const char *value)
{
    uint64_t v;

    return str_u64(value, INT64_MAX, &v) == 0 ? json_integer((json_int_t)v) : json_string(value);
}

static json_t *boolean(const char *value)
{
    if (strcmp(value, "1") == 0 || strcmp(value, "true") == 0)
        return json_true();
    if (strcmp(value, "0") == 0 || strcmp(value, "false") == 0)
        return json_false();
    return json_string(value);
}

/* A value that is not what the field wants stays text, and json_decode() says
 * what was expected. */
static json_t *typed(const struct json_field *f, const char *value)
{
    if (f != NULL && f->type == JSON_FIELD_U64)
        return number(value);
    if (f != NULL && f->type == JSON_FIELD_BOOL)
        return boolean(value);
    if (f != NULL && f->type == JSON_FIELD_PATH)
        return json_string_nocheck(value);
    return json_string(value);
}

static const struct json_field *field_of(const struct json_field *fields, size_t n,
                                         const char *name)
{
    size_t len = strcspn(name, ".");

    for (size_t i = 0; i < n; i++) {
        const struct json_field *f = &fields[i];
        bool map = f->type == JSON_FIELD_STRMAP;

        if (strlen(f->name) == len && strncmp(f->name, name, len) == 0 && map == (name[len] == '.'))
            return f;
    }
    return NULL;
}

static json_t *map_in(json_t *obj, const char *name)
{
    json_t *map = json_object_get(obj, name);

    if (map == NULL) {
        map = json_object();
        if (json_object_set_new(obj, name, map) < 0)
            return NULL;
    }
    return map;
}

static int put_listed(json_t *obj, const char *name, const char *value, struct err *e)
{
    json_t *list = json_object_get(obj, name);

    if (list == NULL)
        json_object_set_new(obj, name, list = json_array());
    if (json_array_append_new(list, json_string(value)) < 0)
        return err_set(e, ERR_INVALID, "query: %.60s: not UTF-8", name);
    return 0;
}

static int put_pair(json_t *obj, const struct json_field *f, const char *name, const char *value,
                    struct err *e)
{
    const char *full = name;

    if (f != NULL && f->type == JSON_FIELD_STRMAP) {
        obj = map_in(obj, f->name);
        name += strlen(f->name) + 1;
    }
    if (f != NULL && f->type == JSON_FIELD_STRLIST)
        return put_listed(obj, name, value, e);
    if (json_object_get(obj, name) != NULL)
        return err_set(e, ERR_INVALID, "query: %.60s is given twice", full);
    if (json_object_set_new(obj, name, typed(f, value)) < 0)
        return err_set(e, ERR_INVALID, "query: %.60s: not UTF-8", full);
    return 0;
}

int query_parse(const char *query, const struct json_field *fields, size_t n, json_t **ret,
                struct err *e)
{
    autofree char *copy = mem_text(query);
    autojson json_t *obj = json_object();
    char *rest = copy, *value, *name;
    size_t pairs = 0;

    while ((value = strsep(&rest, "&")) != NULL) {
        name = strsep(&value, "=");
        if (*name == '\0' && value == NULL)
            continue;
        if (++pairs > QUERY_PAIRS_MAX)
            return err_set(e, ERR_INVALID, "query: more than %d parameters", QUERY_PAIRS_MAX);
        if (value == NULL)
            value = name + strlen(name);
        if (query_unescape(name, e) < 0 || query_unescape(value, e) < 0 ||
            put_pair(obj, field_of(fields, n, name), name, value, e) < 0)
            return -1;
    }
    *ret = take_ptr(&obj);
    return 0;
}
