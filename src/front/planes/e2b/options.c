/* options.c - what E2B's create says that the engine does not know, kept with the
 * sandbox as a small JSON object. */
#include <string.h>

#include "front/planes/e2b/internal.h"
#include "json/read.h"
#include "json/write.h"

void e2b_options_write(const struct e2b_options *o, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_kbool(&w, "open", o->open);
    jw_kbool(&w, "private", o->private);
    jw_kstr(&w, "mask_host", o->mask_host);
    jw_close(&w);
}

struct e2b_options e2b_options_of(const struct sandbox *s)
{
    struct e2b_options o = {0};
    autojson json_t *doc = NULL;
    const char *host;
    struct err ignored;

    if (*s->plane == '\0' || json_parse(s->plane, strlen(s->plane), &doc, &ignored) < 0)
        return o;
    o.open = json_is_true(json_object_get(doc, "open"));
    o.private = json_is_true(json_object_get(doc, "private"));
    host = json_string_value(json_object_get(doc, "mask_host"));
    if (host != NULL && strlen(host) < sizeof(o.mask_host))
        strcpy(o.mask_host, host);
    return o;
}
