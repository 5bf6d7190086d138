/* openapi.c - /v1/openapi.json, generated from the rows of the surfaces. */
#include <ctype.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cove-version.h"
#include "front/planes/native/internal.h"

#define SCHEMAS_MAX 128

/* What a part of a path stands for. */
static const struct {
    const char *name, *doc;
} path_params[] = {
    {"id", "Id of a sandbox."},
    {"pid", "Id of a process, not its number."},
    {"name", "Name of a template."},
};

static void typed(struct json_w *w, const char *type)
{
    jw_open(w);
    jw_kstr(w, "type", type);
    jw_close(w);
}

/* ---- inputs ---- */

static void bounds(struct json_w *w, const struct json_field *f, const char *min, const char *max)
{
    if (f->min != 0)
        jw_ku64(w, min, f->min);
    if (f->max != 0)
        jw_ku64(w, max, f->max);
}

static void in_string(struct json_w *w, const struct json_field *f)
{
    jw_kstr(w, "type", "string");
    bounds(w, f, "minLength", "maxLength");
}

static void in_integer(struct json_w *w, const struct json_field *f)
{
    jw_kstr(w, "type", "integer");
    jw_kstr(w, "format", "int64");
    if (f->min == 0)
        jw_ku64(w, "minimum", 0);
    bounds(w, f, "minimum", "maximum");
}

static void in_number(struct json_w *w, const struct json_field *f)
{
    jw_kstr(w, "type", "number");
    bounds(w, f, "minimum", "maximum");
}

static void in_boolean(struct json_w *w, const struct json_field *f)
{
    (void)f;
    jw_kstr(w, "type", "boolean");
}

static void in_map(struct json_w *w, const struct json_field *f)
{
    jw_kstr(w, "type", "object");
    jw_key(w, "additionalProperties");
    typed(w, "string");
    bounds(w, f, "minProperties", "maxProperties");
}

static void in_list(struct json_w *w, const struct json_field *f)
{
    jw_kstr(w, "type", "array");
    jw_key(w, "items");
    typed(w, "string");
    bounds(w, f, "minItems", "maxItems");
}

static void in_any(struct json_w *w, const struct json_field *f)
{
    (void)w, (void)f;
}

static void (*const in_types[])(struct json_w *w, const struct json_field *f) = {
    [JSON_FIELD_STR] = in_string,    [JSON_FIELD_U64] = in_integer,  [JSON_FIELD_I64] = in_integer,
    [JSON_FIELD_DOUBLE] = in_number, [JSON_FIELD_BOOL] = in_boolean, [JSON_FIELD_STRMAP] = in_map,
    [JSON_FIELD_STRLIST] = in_list,  [JSON_FIELD_ANY] = in_any,      [JSON_FIELD_PATH] = in_string,
};

static void put_fields(struct json_w *w, const struct json_field *fields, size_t n,
                       const struct surface_nested *nested);

static const struct surface_nested *nested_of(const struct surface_nested *s, const char *name)
{
    for (; s != NULL && s->name != NULL; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static void put_field(struct json_w *w, const struct json_field *f,
                      const struct surface_nested *nested)
{
    const struct surface_nested *inner = nested_of(nested, f->name);

    jw_open(w);
    jw_kstr(w, "description", f->doc);
    if (inner != NULL)
        put_fields(w, inner->fields, inner->n, NULL);
    else
        in_types[f->type](w, f);
    jw_close(w);
}

/* The inside of the schema of an object; the caller opens and closes it. */
static void put_fields(struct json_w *w, const struct json_field *fields, size_t n,
                       const struct surface_nested *nested)
{
    jw_kstr(w, "type", "object");
    jw_kbool(w, "additionalProperties", false);
    jw_key(w, "properties");
    jw_open(w);
    for (size_t i = 0; i < n; i++) {
        jw_key(w, fields[i].name);
        put_field(w, &fields[i], nested);
    }
    jw_close(w);
    jw_key(w, "required");
    jw_open_list(w);
    for (size_t i = 0; i < n; i++)
        if (fields[i].required)
            jw_str(w, fields[i].name);
    jw_close_list(w);
}

static bool is_required(const struct surface_input *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->fields[i].required)
            return true;
    return false;
}

static void put_body(struct json_w *w, const struct surface_row *row)
{
    bool raw = row->flags & SURFACE_RAW_BODY;

    if (row->body == NULL && !raw)
        return;
    jw_key(w, "requestBody");
    jw_open(w);
    jw_kbool(w, "required", !raw && is_required(row->body));
    jw_key(w, "content");
    jw_open(w);
    jw_key(w, raw ? "application/octet-stream" : "application/json");
    jw_open(w);
    if (!raw) {
        jw_key(w, "schema");
        jw_open(w);
        put_fields(w, row->body->fields, row->body->n, row->body->nested);
        jw_close(w);
    }
    jw_close(w);
    jw_close(w);
    jw_close(w);
}

/* ---- parameters ---- */

static void open_param(struct json_w *w, const char *name, const char *in, bool required,
                       const char *doc)
{
    jw_open(w);
    jw_kstr(w, "name", name);
    jw_kstr(w, "in", in);
    jw_kbool(w, "required", required);
    jw_kstr(w, "description", doc);
    jw_key(w, "schema");
}

static void put_path_param(struct json_w *w, const char *name, size_t len)
{
    const char *doc = "";
    char copy[64];

    if (len > 3 && memcmp(name + len - 3, "...", 3) == 0)
        len -= 3;
    str_fmt(copy, sizeof(copy), "%.*s", (int)len, name);
    for (size_t i = 0; i < ARRAY_LEN(path_params); i++)
        if (strcmp(path_params[i].name, copy) == 0)
            doc = path_params[i].doc;
    open_param(w, copy, "path", true, doc);
    typed(w, "string");
    jw_close(w);
}

static void put_query_param(struct json_w *w, const struct json_field *f)
{
    bool map = f->type == JSON_FIELD_STRMAP;
    char name[64];

    str_fmt(name, sizeof(name), map ? "%s.NAME" : "%s", f->name);
    open_param(w, name, "query", f->required, f->doc);
    jw_open(w);
    if (map)
        jw_kstr(w, "type", "string");
    else
        in_types[f->type](w, f);
    jw_close(w);
    jw_close(w);
}

/* What acts for a key, and so for another one if an admin says so. */
static bool is_as_another(const struct surface_row *row)
{
    static const char *const paths[] = {"/v1/sandboxes", "/v1/snapshots"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (row->scope != SCOPE_ADMIN && strncmp(row->route.path, paths[i], strlen(paths[i])) == 0)
            return true;
    return false;
}

static void put_params(struct json_w *w, const struct surface_row *row)
{
    const char *p = row->route.path;

    jw_key(w, "parameters");
    jw_open_list(w);
    while ((p = strchr(p, '{')) != NULL) {
        p++;
        put_path_param(w, p, strcspn(p, "}"));
    }
    for (size_t i = 0; row->query != NULL && i < row->query->n; i++)
        put_query_param(w, &row->query->fields[i]);
    if (is_as_another(row)) {
        open_param(w, NATIVE_AS, "header", false,
                   "Id of the API key to act for; for admin keys only. Such calls are in the log "
                   "of the sandbox.");
        typed(w, "string");
        jw_close(w);
    }
    if (row->flags & SURFACE_RESUME) {
        open_param(w, "Last-Event-ID", "header", false, "Id of the last event seen.");
        typed(w, "string");
        jw_close(w);
    }
    jw_close_list(w);
}

/* ---- answers ---- */

static size_t count_answers(const struct surface_row *row)
{
    size_t n = 0;

    while (n < SURFACE_ANSWERS_MAX && row->answers[n] != NULL)
        n++;
    return n;
}

static void put_text_answer(struct json_w *w, const char *media, const char *doc)
{
    jw_key(w, media);
    jw_open(w);
    jw_key(w, "schema");
    jw_open(w);
    jw_kstr(w, "type", "string");
    if (doc != NULL)
        jw_kstr(w, "description", doc);
    jw_close(w);
    jw_close(w);
}

static void put_content(struct json_w *w, const struct surface_row *row)
{
    if (row->status == 204 || row->status == 101)
        return;
    jw_key(w, "content");
    jw_open(w);
    if (row->answers[0] != NULL) {
        size_t n = count_answers(row);

        jw_key(w, "application/json");
        jw_open(w);
        jw_key(w, "schema");
        if (n == 1) {
            shape_ref(w, row->answers[0]);
        } else {
            jw_open(w);
            jw_key(w, "oneOf");
            jw_open_list(w);
            for (size_t i = 0; i < n; i++)
                shape_ref(w, row->answers[i]);
            jw_close_list(w);
            jw_close(w);
        }
        jw_close(w);
    }
    if (row->events != NULL)
        put_text_answer(w, "text/event-stream", row->events);
    if (row->flags & SURFACE_RAW_ANSWER)
        put_text_answer(w, "application/octet-stream",
                        "The bytes of stdout and stderr as they come.");
    if (row->flags & SURFACE_BYTES)
        put_text_answer(w, "*/*", "The bytes.");
    if (row->flags & SURFACE_TEXT)
        put_text_answer(w, "text/plain", NULL);
    if (row->flags & SURFACE_PAGE)
        put_text_answer(w, "text/html", NULL);
    if (row->flags & SURFACE_OTHER) {
        jw_key(w, "application/json");
        jw_open(w);
        jw_close(w);
    }
    jw_close(w);
}

static const char *error_name(const struct plane *p)
{
    return p->manner->error != NULL ? p->manner->error->name : "Error";
}

/* ---- paths ---- */

static void put_operation(struct json_w *w, const struct plane *p, const struct surface_row *row)
{
    char method[8];
    size_t i = 0;
    char status[12], ref[128];

    for (; row->route.method[i] != '\0' && i + 1 < sizeof(method); i++)
        method[i] = (char)tolower((unsigned char)row->route.method[i]);
    method[i] = '\0';
    jw_key(w, method);
    jw_open(w);
    jw_kstr(w, "operationId", row->op);
    jw_kstr(w, "summary", row->summary);
    if (row->scope == SCOPE_PUBLIC) {
        jw_key(w, "security");
        jw_open_list(w);
        jw_close_list(w);
    }
    put_params(w, row);
    put_body(w, row);
    str_fmt(status, sizeof(status), "%d", row->status);
    jw_key(w, "responses");
    jw_open(w);
    jw_key(w, status);
    jw_open(w);
    jw_kstr(w, "description", row->summary);
    put_content(w, row);
    jw_close(w);
    jw_key(w, "default");
    jw_open(w);
    str_fmt(ref, sizeof(ref), "#/components/responses/%s", error_name(p));
    jw_kstr(w, "$ref", ref);
    jw_close(w);
    jw_close(w);
    jw_close(w);
}

static bool is_seen(const struct surface_row *rows, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(rows[k].route.path, rows[i].route.path) == 0)
            return true;
    return false;
}

/* As it is in the document: {path...} is a parameter like any other. */
static void put_path(struct json_w *w, const char *path)
{
    const char *dots = strstr(path, "...}");
    char plain[256];

    if (dots == NULL) {
        jw_key(w, path);
        return;
    }
    str_fmt(plain, sizeof(plain), "%.*s}", (int)(dots - path), path);
    jw_key(w, plain);
}

static void put_paths(struct json_w *w, const struct plane *p)
{
    const struct surface_row *rows = p->rows;

    for (size_t i = 0; i < p->nrows; i++) {
        if (is_seen(rows, i))
            continue;
        put_path(w, rows[i].route.path);
        jw_open(w);
        for (size_t k = i; k < p->nrows; k++)
            if (strcmp(rows[k].route.path, rows[i].route.path) == 0)
                put_operation(w, p, &rows[k]);
        jw_close(w);
    }
}

/* ---- components ---- */

struct schemas {
    const struct shape *all[SCHEMAS_MAX];
    size_t n;
};

static void gather(struct schemas *s, const struct shape *shape)
{
    if (shape == NULL || s->n == SCHEMAS_MAX)
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->all[i] == shape)
            return;
    s->all[s->n++] = shape;
    for (size_t i = 0; i < shape->n; i++)
        gather(s, shape->fields[i].of);
}

static void put_error_schema(struct json_w *w)
{
    static const char *const texts[] = {"message", "request_id", "errno"};

    jw_open(w);
    jw_kstr(w, "type", "object");
    jw_key(w, "properties");
    jw_open(w);
    jw_key(w, "code");
    jw_open(w);
    jw_kstr(w, "type", "string");
    jw_key(w, "enum");
    jw_open_list(w);
    for (int i = 0; i < ERR_KIND_COUNT; i++)
        jw_str(w, err_code((enum err_kind)i));
    jw_close_list(w);
    jw_close(w);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        jw_key(w, texts[i]);
        typed(w, "string");
    }
    jw_close(w);
    jw_close(w);
}

static void gather_plane(struct schemas *s, const struct plane *p)
{
    gather(s, p->manner->error);
    for (size_t i = 0; i < p->nrows; i++) {
        for (size_t k = 0; k < SURFACE_ANSWERS_MAX; k++) {
            gather(s, p->rows[i].answers[k]);
            gather(s, p->rows[i].event_shapes[k]);
        }
    }
}

static void put_schemas(struct json_w *w, const struct plane *const *planes, size_t n)
{
    struct schemas s = {.n = 0};

    for (size_t i = 0; i < n; i++)
        gather_plane(&s, planes[i]);
    jw_key(w, "schemas");
    jw_open(w);
    for (size_t i = 0; i < s.n; i++) {
        jw_key(w, s.all[i]->name);
        shape_schema(w, s.all[i]);
    }
    jw_key(w, "Error");
    jw_open(w);
    jw_kstr(w, "type", "object");
    jw_kstr(w, "description", "What went wrong; the code is the same as in docs/errors.md.");
    jw_key(w, "properties");
    jw_open(w);
    jw_key(w, "error");
    put_error_schema(w);
    jw_close(w);
    jw_close(w);
    jw_close(w);
}

static void put_error_response(struct json_w *w, const struct plane *p)
{
    char ref[128];

    str_fmt(ref, sizeof(ref), "#/components/schemas/%s", error_name(p));
    jw_key(w, error_name(p));
    jw_open(w);
    jw_kstr(w, "description", "It failed; the status is that of the code.");
    jw_key(w, "content");
    jw_open(w);
    jw_key(w, "application/json");
    jw_open(w);
    jw_key(w, "schema");
    jw_open(w);
    jw_kstr(w, "$ref", ref);
    jw_close(w);
    jw_close(w);
    jw_close(w);
    jw_close(w);
}

static const char fixed_components[] =
    "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
    "\"header\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-Key\"}}";
static const char security[] = "[{\"bearer\":[]},{\"header\":[]}]";

static void put_raw(struct json_w *w, const char *key, const char *json)
{
    jw_key(w, key);
    jw_raw(w, json, strlen(json));
}

int openapi_write(const struct plane *const *planes, size_t n, struct buf *out, struct err *e)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_kstr(&w, "openapi", "3.1.0");
    jw_key(&w, "info");
    jw_open(&w);
    jw_kstr(&w, "title", "Cove");
    jw_kstr(&w, "version", COVE_VERSION);
    jw_close(&w);
    put_raw(&w, "security", security);
    jw_key(&w, "paths");
    jw_open(&w);
    for (size_t i = 0; i < n; i++)
        put_paths(&w, planes[i]);
    jw_close(&w);
    jw_key(&w, "components");
    jw_open(&w);
    put_schemas(&w, planes, n);
    jw_key(&w, "responses");
    jw_open(&w);
    for (size_t i = 0; i < n; i++)
        put_error_response(&w, planes[i]);
    jw_close(&w);
    put_raw(&w, "securitySchemes", fixed_components);
    jw_close(&w);
    jw_close(&w);
    return out->failed ? err_set(e, ERR_INTERNAL, "openapi.json does not fit") : 0;
}
