/* shape.h - the fields of an answer, as a table.
 *
 * One table yields both the JSON of an answer and its schema in openapi.json, so the two cannot
 * differ. A handler fills a plain struct and names its shape. */
#ifndef FRONT_PLANE_SHAPE_H
#define FRONT_PLANE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/write.h"

/* Above this size text is sent as base64 too when it is mostly control characters:
 * as JSON each of them would take six bytes. */
#define SHAPE_TEXT_ALWAYS (4u << 10)

struct shape_bytes {
    const char *p;
    size_t n;
};

enum shape_type {
    SHAPE_STR,    /* const char *; NULL: null */
    SHAPE_U64,    /* uint64_t */
    SHAPE_BOOL,   /* bool */
    SHAPE_TIME,   /* uint64_t, ms since 1970, shown as RFC 3339; 0: null */
    SHAPE_MAP,    /* const char *, the JSON of an object of strings */
    SHAPE_ANY,    /* const char *, the JSON of any object */
    SHAPE_STRV,   /* struct shape_bytes, NUL-terminated strings */
    SHAPE_BYTES,  /* struct shape_bytes; base64, and NAME_encoding says so, if it is not text */
    SHAPE_OBJECT, /* const void *, `of` says what; NULL: null */
    SHAPE_LIST,   /* struct shape_bytes, the JSON of `of`s with commas between them */
    SHAPE_TYPE_COUNT
};

enum shape_presence {
    SHAPE_ALWAYS,
    SHAPE_NULLABLE, /* always there, may be null */
    SHAPE_OMITTED,  /* left out when it is NULL, "", 0, false or empty */
};

struct shape;

struct shape_field {
    const char *name;
    enum shape_type type;
    size_t offset;   /* offsetof() in the struct */
    const char *doc; /* one sentence */
    enum shape_presence presence;
    const struct shape *of;
    const char *encoding; /* SHAPE_BYTES: another name than NAME_encoding */
};

struct shape {
    const char *name; /* of the schema: "Sandbox" */
    const char *doc;
    const struct shape_field *fields;
    size_t n;
};

void shape_write(struct json_w *w, const struct shape *s, const void *from);
/* The JSON Schema of it; other shapes are referred to by name. */
void shape_schema(struct json_w *w, const struct shape *s);
/* "$ref": "#/components/schemas/NAME", as an object. */
void shape_ref(struct json_w *w, const struct shape *s);

/* Appends one element, and the comma before it, to what becomes a SHAPE_LIST. */
void shape_append(struct buf *list, const struct shape *s, const void *from);
/* If the list exceeded its buf, the length is SHAPE_CUT, which no buf can take, so writing the
 * answer fails: half a row is not JSON. */
struct shape_bytes shape_list(const struct buf *list);
#define SHAPE_CUT SIZE_MAX

/* The value, followed by "ENCODING": "base64" if it is not text. */
void shape_put_bytes(struct json_w *w, const char *key, const char *encoding, const void *p,
                     size_t n);

#endif
