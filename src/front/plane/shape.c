/* shape.c - see shape.h. */
#include "front/plane/shape.h"

#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"

static bool is_costly_text(const char *p, size_t n)
{
    size_t escapes = 0;

    if (n <= SHAPE_TEXT_ALWAYS)
        return false;
    for (size_t i = 0; i < n; i++)
        escapes += (unsigned char)p[i] < 0x08;
    return escapes > n / 5;
}

void shape_put_bytes(struct json_w *w, const char *key, const char *encoding, const void *p,
                     size_t n)
{
    autobuf struct buf b64 = BUF_INIT(n / 3 * 4 + 8);

    jw_key(w, key);
    if (str_is_utf8(p, n) && !is_costly_text(p, n)) {
        jw_strn(w, p, n);
        return;
    }
    buf_addc(&b64, '"');
    str_base64(&b64, p, n);
    buf_addc(&b64, '"');
    w->out->failed = w->out->failed || b64.failed;
    jw_raw(w, buf_data(&b64), b64.len);
    jw_kstr(w, encoding, "base64");
}

static void put_str(struct json_w *w, const struct shape_field *f, const void *at)
{
    jw_kstr(w, f->name, *(const char *const *)at);
}

static void put_u64(struct json_w *w, const struct shape_field *f, const void *at)
{
    jw_ku64(w, f->name, *(const uint64_t *)at);
}

static void put_bool(struct json_w *w, const struct shape_field *f, const void *at)
{
    jw_kbool(w, f->name, *(const bool *)at);
}

static void put_time(struct json_w *w, const struct shape_field *f, const void *at)
{
    uint64_t ms = *(const uint64_t *)at;
    char text[CLOCK_TEXT_MAX];

    jw_kstr(w, f->name, ms != 0 ? clock_text(ms, text) : NULL);
}

static void put_json(struct json_w *w, const struct shape_field *f, const void *at)
{
    const char *json = *(const char *const *)at;

    if (json == NULL || *json == '\0')
        json = "{}";
    jw_key(w, f->name);
    jw_raw(w, json, strlen(json));
}

static void put_strv(struct json_w *w, const struct shape_field *f, const void *at)
{
    const struct shape_bytes *v = at;

    jw_key(w, f->name);
    jw_open_list(w);
    for (size_t i = 0, len; i < v->n; i += len + 1) {
        len = strnlen(v->p + i, v->n - i);
        jw_strn(w, v->p + i, len);
    }
    jw_close_list(w);
}

static const char *encoding_of(const struct shape_field *f, char out[64])
{
    if (f->encoding != NULL)
        return f->encoding;
    str_fmt(out, 64, "%s_encoding", f->name);
    return out;
}

static void put_bytes(struct json_w *w, const struct shape_field *f, const void *at)
{
    const struct shape_bytes *v = at;
    char name[64];

    shape_put_bytes(w, f->name, encoding_of(f, name), v->p, v->n);
}

static void put_object(struct json_w *w, const struct shape_field *f, const void *at)
{
    const void *from = *(const void *const *)at;

    jw_key(w, f->name);
    if (from == NULL)
        jw_null(w);
    else
        shape_write(w, f->of, from);
}

static void put_list(struct json_w *w, const struct shape_field *f, const void *at)
{
    const struct shape_bytes *v = at;

    jw_key(w, f->name);
    jw_open_list(w);
    if (v->n > 0)
        jw_raw(w, v->p, v->n);
    jw_close_list(w);
}

/* clang-format off */
static const struct {
    void (*put)(struct json_w *w, const struct shape_field *f, const void *at);
    const char *type, *format;
    size_t size; /* what SHAPE_OMITTED looks at for zero */
} types[SHAPE_TYPE_COUNT] = {
    [SHAPE_STR]    = {put_str,    "string",  NULL,        sizeof(char *)},
    [SHAPE_U64]    = {put_u64,    "integer", "int64",     sizeof(uint64_t)},
    [SHAPE_BOOL]   = {put_bool,   "boolean", NULL,        sizeof(bool)},
    [SHAPE_TIME]   = {put_time,   "string",  "date-time", sizeof(uint64_t)},
    [SHAPE_MAP]    = {put_json,   "object",  NULL,        sizeof(char *)},
    [SHAPE_ANY]    = {put_json,   "object",  NULL,        sizeof(char *)},
    [SHAPE_STRV]   = {put_strv,   "array",   NULL,        sizeof(struct shape_bytes)},
    [SHAPE_BYTES]  = {put_bytes,  "string",  NULL,        sizeof(struct shape_bytes)},
    [SHAPE_OBJECT] = {put_object, "object",  NULL,        sizeof(void *)},
    [SHAPE_LIST]   = {put_list,   "array",   NULL,        sizeof(struct shape_bytes)},
};
/* clang-format on */

static bool is_empty(const struct shape_field *f, const void *at)
{
    static const char zero[sizeof(struct shape_bytes)];

    if (memcmp(at, zero, types[f->type].size) == 0)
        return true;
    return f->type == SHAPE_STR && **(const char *const *)at == '\0';
}

void shape_write(struct json_w *w, const struct shape *s, const void *from)
{
    jw_open(w);
    for (size_t i = 0; i < s->n; i++) {
        const struct shape_field *f = &s->fields[i];
        const void *at = (const char *)from + f->offset;

        if (f->presence != SHAPE_OMITTED || !is_empty(f, at))
            types[f->type].put(w, f, at);
    }
    jw_close(w);
}

void shape_ref(struct json_w *w, const struct shape *s)
{
    char ref[128];

    str_fmt(ref, sizeof(ref), "#/components/schemas/%s", s->name);
    jw_open(w);
    jw_kstr(w, "$ref", ref);
    jw_close(w);
}

static void schema_type(struct json_w *w, const struct shape_field *f)
{
    if (f->presence != SHAPE_NULLABLE) {
        jw_kstr(w, "type", types[f->type].type);
        return;
    }
    jw_key(w, "type");
    jw_open_list(w);
    jw_str(w, types[f->type].type);
    jw_str(w, "null");
    jw_close_list(w);
}

static void schema_inside(struct json_w *w, const struct shape_field *f)
{
    if (f->type == SHAPE_LIST || f->type == SHAPE_STRV)
        jw_key(w, "items");
    else if (f->type == SHAPE_MAP)
        jw_key(w, "additionalProperties");
    else
        return;
    if (f->of != NULL) {
        shape_ref(w, f->of);
        return;
    }
    jw_open(w);
    jw_kstr(w, "type", "string");
    jw_close(w);
}

static void schema_field(struct json_w *w, const struct shape_field *f)
{
    jw_key(w, f->name);
    jw_open(w);
    jw_kstr(w, "description", f->doc);
    if (f->type == SHAPE_OBJECT) {
        jw_key(w, "oneOf");
        jw_open_list(w);
        shape_ref(w, f->of);
        if (f->presence == SHAPE_NULLABLE) {
            jw_open(w);
            jw_kstr(w, "type", "null");
            jw_close(w);
        }
        jw_close_list(w);
    } else {
        schema_type(w, f);
        if (types[f->type].format != NULL)
            jw_kstr(w, "format", types[f->type].format);
        schema_inside(w, f);
    }
    jw_close(w);
}

/* What put_bytes() may write beside the value. */
static void schema_encoding(struct json_w *w, const struct shape_field *f)
{
    char name[64];

    jw_key(w, encoding_of(f, name));
    jw_open(w);
    jw_kstr(w, "type", "string");
    jw_kstr(w, "const", "base64");
    jw_kstr(w, "description", "There when the bytes are not UTF-8; else they are sent as text.");
    jw_close(w);
}

void shape_schema(struct json_w *w, const struct shape *s)
{
    jw_open(w);
    jw_kstr(w, "type", "object");
    jw_kstr(w, "description", s->doc);
    jw_key(w, "properties");
    jw_open(w);
    for (size_t i = 0; i < s->n; i++) {
        schema_field(w, &s->fields[i]);
        if (s->fields[i].type == SHAPE_BYTES)
            schema_encoding(w, &s->fields[i]);
    }
    jw_close(w);
    jw_key(w, "required");
    jw_open_list(w);
    for (size_t i = 0; i < s->n; i++)
        if (s->fields[i].presence != SHAPE_OMITTED)
            jw_str(w, s->fields[i].name);
    jw_close_list(w);
    jw_close(w);
}

void shape_append(struct buf *list, const struct shape *s, const void *from)
{
    struct json_w w;

    if (list->len > 0)
        buf_addc(list, ',');
    jw_init(&w, list);
    shape_write(&w, s, from);
}

struct shape_bytes shape_list(const struct buf *list)
{
    return (struct shape_bytes){buf_data(list), list->failed ? SHAPE_CUT : list->len};
}
