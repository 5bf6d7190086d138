/* options.c - what E2B's create says that the engine does not know, kept with the
 * sandbox as a small JSON object. */
#include <string.h>

#include "front/planes/e2b/inside.h"
#include "json/read.h"
#include "json/write.h"

void e2b_options_write(const struct e2b_options *o, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_kbool(&w, "open", o->open);
    jw_close(&w);
}

struct e2b_options e2b_options_of(const struct sandbox *s)
{
    static const struct json_field fields[] = {
        {"open", JSON_FIELD_BOOL, offsetof(struct e2b_options, open)},
    };
    struct e2b_options o = {0};
    autojson json_t *doc = NULL;
    struct err ignored;

    if (*s->plane == '\0' || json_parse(s->plane, strlen(s->plane), &doc, &ignored) < 0)
        return o;
    json_only(doc, fields, ARRAY_LEN(fields));
    if (json_decode(doc, fields, ARRAY_LEN(fields), &o, &ignored) < 0)
        return (struct e2b_options){0};
    return o;
}
