/* frame.c - see frame.h. */
#include "front/plane/frame.h"

#include <string.h>

#include "base/own.h"
#include "front/engine/process.h"
#include "json/read.h"

struct control {
    const char *type;
    uint64_t cols, rows;
};

/* clang-format off */
static const struct json_field control_fields[] = {
    {"type", JSON_FIELD_STR, offsetof(struct control, type), 1, 32, true, "resize."},
    {"cols", JSON_FIELD_U64, offsetof(struct control, cols), 1, TERMINAL_SIDE_MAX, true, "Columns."},
    {"rows", JSON_FIELD_U64, offsetof(struct control, rows), 1, TERMINAL_SIDE_MAX, true, "Rows."},
};
/* clang-format on */

static int parse(const char *p, size_t n, json_t **ret, struct err *e)
{
    if (n > FRAME_CONTROL_MAX)
        return err_set(e, ERR_TOO_LARGE, "a control message has at most %u bytes",
                       FRAME_CONTROL_MAX);
    return json_parse(p, n, ret, e);
}

int frame_read(bool binary, const char *p, size_t n, struct frame *ret, struct err *e)
{
    autojson json_t *doc = NULL;
    struct control c = {0};
    const char *type;

    *ret = (struct frame){.act = FRAME_INPUT, .p = p, .n = n};
    if (binary)
        return 0;
    if (parse(p, n, &doc, e) < 0)
        return -1;
    type = json_string_value(json_object_get(doc, "type"));
    if (type != NULL && strcmp(type, "resize") != 0)
        return err_set(e, ERR_INVALID, "type: expected resize, not '%.32s'", type);
    if (json_decode(doc, control_fields, ARRAY_LEN(control_fields), &c, e) < 0)
        return -1;
    *ret = (struct frame){.act = FRAME_RESIZE, .cols = (unsigned)c.cols, .rows = (unsigned)c.rows};
    return 0;
}

/* A side that makes no sense is as good as none: a window may be minimised. */
static unsigned side(json_t *doc, const char *name)
{
    json_int_t v = json_integer_value(json_object_get(doc, name));

    return v >= 1 && v <= TERMINAL_SIDE_MAX ? (unsigned)v : 0;
}

static int read_size(const char *p, size_t n, enum frame_act act, struct frame *ret, struct err *e)
{
    autojson json_t *doc = NULL;

    if (parse(p, n, &doc, e) < 0)
        return -1;
    if (!json_is_object(doc))
        return err_set(e, ERR_INVALID, "expected a JSON object with columns and rows");
    *ret = (struct frame){.act = act, .cols = side(doc, "columns"), .rows = side(doc, "rows")};
    if (act == FRAME_RESIZE && (ret->cols == 0 || ret->rows == 0))
        return err_set(e, ERR_INVALID, "columns and rows: expected 1 to %u", TERMINAL_SIDE_MAX);
    return 0;
}

int frame_read_ttyd(bool first, const char *p, size_t n, struct frame *ret, struct err *e)
{
    if (first)
        return read_size(p, n, FRAME_HELLO, ret, e);
    if (n == 0)
        return err_set(e, ERR_INVALID, "an empty message");
    *ret = (struct frame){.act = FRAME_INPUT, .p = p + 1, .n = n - 1};
    switch (p[0]) {
    case '0':
        return 0;
    case '1':
        return read_size(p + 1, n - 1, FRAME_RESIZE, ret, e);
    case '2':
        ret->act = FRAME_PAUSE;
        return 0;
    case '3':
        ret->act = FRAME_RESUME;
        return 0;
    default:
        return err_set(e, ERR_INVALID, "unknown kind of message");
    }
}
