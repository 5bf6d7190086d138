/* read.c - see read.h. */
#include "json/read.h"

#include <string.h>

#include "base/own.h"

void json_drop(json_t **j)
{
    json_decref(*j);
}

/* Where the string that begins at text[at] ends: at its quote, or at `len`. */
static size_t string_end(const char *text, size_t len, size_t at)
{
    while (at < len) {
        const char *quote = memchr(text + at, '"', len - at);
        size_t end = quote != NULL ? (size_t)(quote - text) : len, slashes = 0;

        while (end - slashes > at && text[end - slashes - 1] == '\\')
            slashes++;
        if (slashes % 2 == 0)
            return end;
        at = end + 1;
    }
    return len;
}

/* Counted before jansson sees the text: its own bound (2048) protects its stack, ours protects code
 * that walks the document later, and the memory of what a few bytes of text can become. */
static int check_size(const char *text, size_t len, struct err *e)
{
    unsigned depth = 0;
    size_t nodes = 1;

    for (size_t i = 0; i < len; i++) {
        switch (text[i]) {
        case '"':
            i = string_end(text, len, i + 1);
            break;
        case '{':
        case '[':
            depth++;
            nodes++;
            break;
        case '}':
        case ']':
            depth -= depth > 0;
            break;
        case ',':
        case ':':
            nodes++;
            break;
        default:
            break;
        }
        if (depth > JSON_READ_DEPTH_MAX)
            return err_set(e, ERR_INVALID, "JSON is nested deeper than %d levels",
                           JSON_READ_DEPTH_MAX);
        if (nodes > JSON_READ_NODES_MAX)
            return err_set(e, ERR_INVALID, "JSON has more than %u values", JSON_READ_NODES_MAX);
    }
    return 0;
}

int json_parse(const char *text, size_t len, json_t **ret, struct err *e)
{
    json_error_t why;
    json_t *j;

    if (check_size(text, len, e) < 0)
        return -1;
    j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (j == NULL && json_error_code(&why) == json_error_null_character)
        return err_set(e, ERR_INVALID,
                       "JSON: \\u0000 in a string is not taken (line %d, column %d)", why.line,
                       why.column);
    if (j == NULL)
        return err_set(e, ERR_INVALID, "JSON: %s (line %d, column %d)", why.text, why.line,
                       why.column);
    *ret = j;
    return 0;
}

static bool is_bounded(const struct json_field *f)
{
    return f->min != 0 || f->max != 0;
}

static bool is_within(const struct json_field *f, uint64_t v)
{
    return !is_bounded(f) || (v >= f->min && (f->max == 0 || v <= f->max));
}

/* The error for a wrong value; names the bounds if there are any. */
static int expected(const struct json_field *f, const char *what, const char *unit, struct err *e)
{
    unsigned long long min = f->min, max = f->max;

    if (!is_bounded(f) || unit == NULL)
        return err_set(e, ERR_INVALID, "%s: expected %s", f->name, what);
    if (max == 0)
        return err_set(e, ERR_INVALID, "%s: expected %s of at least %llu%s", f->name, what, min,
                       unit);
    if (min == 0)
        return err_set(e, ERR_INVALID, "%s: expected %s of at most %llu%s", f->name, what, max,
                       unit);
    return err_set(e, ERR_INVALID, "%s: expected %s of %llu to %llu%s", f->name, what, min, max,
                   unit);
}

static int take_str(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    if (!json_is_string(v) || !is_within(f, json_string_length(v)))
        return expected(f, "a string", " bytes", e);
    *(const char **)at = json_string_value(v);
    return 0;
}

static int take_u64(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        !is_within(f, (uint64_t)json_integer_value(v)))
        return expected(f, "a whole number", "", e);
    *(uint64_t *)at = (uint64_t)json_integer_value(v);
    return 0;
}

static int take_i64(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    if (!json_is_integer(v))
        return expected(f, "a whole number", NULL, e);
    *(int64_t *)at = json_integer_value(v);
    return 0;
}

static int take_double(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    double d = json_number_value(v);

    if (!json_is_number(v) ||
        (is_bounded(f) && (d < (double)f->min || (f->max != 0 && d > (double)f->max))))
        return expected(f, "a number", "", e);
    *(double *)at = d;
    return 0;
}

static int take_bool(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    if (!json_is_boolean(v))
        return expected(f, "true or false", NULL, e);
    *(bool *)at = json_is_true(v);
    return 0;
}

static int take_strmap(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    const char *key;
    json_t *item;

    if (!json_is_object(v) || !is_within(f, json_object_size(v)))
        return expected(f, "an object of strings", " entries", e);
    json_object_foreach(v, key, item) if (!json_is_string(item)) return err_set(
        e, ERR_INVALID, "%s.%s: expected a string", f->name, key);
    *(json_t **)at = v;
    return 0;
}

static int take_strlist(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    size_t i;
    json_t *item;

    if (!json_is_array(v) || !is_within(f, json_array_size(v)))
        return expected(f, "a list of strings", " entries", e);
    json_array_foreach(v, i, item) if (!json_is_string(item)) return err_set(
        e, ERR_INVALID, "%s[%zu]: expected a string", f->name, i);
    *(json_t **)at = v;
    return 0;
}

static int take_any(const struct json_field *f, json_t *v, void *at, struct err *e)
{
    (void)f, (void)e;
    *(json_t **)at = v;
    return 0;
}

static int (*const takers[])(const struct json_field *f, json_t *v, void *at, struct err *e) = {
    [JSON_FIELD_PATH] = take_str,      [JSON_FIELD_STR] = take_str,
    [JSON_FIELD_U64] = take_u64,       [JSON_FIELD_I64] = take_i64,
    [JSON_FIELD_DOUBLE] = take_double, [JSON_FIELD_BOOL] = take_bool,
    [JSON_FIELD_STRMAP] = take_strmap, [JSON_FIELD_STRLIST] = take_strlist,
    [JSON_FIELD_ANY] = take_any,
};

static const struct json_field *field_named(const struct json_field *fields, size_t n,
                                            const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

int json_decode(json_t *obj, const struct json_field *fields, size_t n, void *out, struct err *e)
{
    const char *key;
    json_t *v;

    if (!json_is_object(obj))
        return err_set(e, ERR_INVALID, "expected a JSON object");
    json_object_foreach(obj, key, v)
    {
        const struct json_field *f = field_named(fields, n, key);

        if (f == NULL)
            return err_set(e, ERR_INVALID, "%s: unknown field", key);
        if (!json_is_null(v) && takers[f->type](f, v, (char *)out + f->offset, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < n; i++) {
        v = fields[i].required ? json_object_get(obj, fields[i].name) : obj;
        if (v == NULL || json_is_null(v))
            return err_set(e, ERR_INVALID, "%s: required", fields[i].name);
    }
    return 0;
}

void json_only(json_t *obj, const struct json_field *fields, size_t n)
{
    const char *key;
    json_t *v;
    void *next;

    json_object_foreach_safe(obj, next, key, v)
    {
        if (field_named(fields, n, key) == NULL)
            json_object_del(obj, key);
    }
}
