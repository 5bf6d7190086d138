/* metadata.c - see metadata.h. */
#include "front/planes/e2b/metadata.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "http/http.h"

static const char prefix[] = "X-Metadata-";

static bool is_printable(const struct http_str *s)
{
    for (size_t i = 0; i < s->len; i++)
        if ((unsigned char)s->p[i] < 0x20 || (unsigned char)s->p[i] > 0x7e)
            return false;
    return true;
}

/* Several of one name are a client that contradicts itself. */
static bool has_name(struct metadata *m, const struct http_str *name)
{
    const char *p = buf_cstr(&m->lines);

    for (; *p != '\0'; p += strcspn(p, "\n") + 1)
        if (strncasecmp(p, name->p, name->len) == 0 && p[name->len] == '=')
            return true;
    return false;
}

static int add(struct metadata *m, const struct http_str *name, const struct http_str *value,
               struct err *e)
{
    if (name->len == 0 || name->len > METADATA_NAME_MAX)
        return err_set(e, ERR_INVALID, "metadata: expected a name of 1 to %u bytes",
                       METADATA_NAME_MAX);
    if (!is_printable(value))
        return err_set(e, ERR_INVALID, "metadata: %.60s: only printable ASCII", name->p);
    if (has_name(m, name))
        return err_set(e, ERR_INVALID, "metadata: %.60s is given twice", name->p);
    for (size_t i = 0; i < name->len; i++)
        buf_addc(&m->lines, (char)tolower((unsigned char)name->p[i]));
    buf_addc(&m->lines, '=');
    buf_add(&m->lines, value->p, value->len);
    buf_addc(&m->lines, '\n');
    return m->lines.failed
               ? err_set(e, ERR_INVALID, "metadata: more than %u bytes", METADATA_BYTES_MAX)
               : 0;
}

int metadata_read(struct metadata *m, struct http_req *r, struct err *e)
{
    struct http_str name, value;
    size_t skip = sizeof(prefix) - 1;

    buf_init(&m->lines, METADATA_BYTES_MAX);
    for (size_t i = 0; http_header_at(r, i, &name, &value); i++) {
        if (name.len < skip || strncasecmp(name.p, prefix, skip) != 0)
            continue;
        name.p += skip;
        name.len -= skip;
        if (add(m, &name, &value, e) < 0)
            return -1;
    }
    return 0;
}

void metadata_free(struct metadata *m)
{
    buf_free(&m->lines);
}

void metadata_write(struct json_w *w, struct metadata *m)
{
    const char *p = buf_cstr(&m->lines);

    if (*p == '\0')
        return;
    jw_key(w, "metadata");
    jw_open(w);
    while (*p != '\0') {
        size_t name = strcspn(p, "="), value = strcspn(p + name + 1, "\n");
        char key[METADATA_NAME_MAX + 1];

        memcpy(key, p, name);
        key[name] = '\0';
        jw_key(w, key);
        jw_strn(w, p + name + 1, value);
        p += name + value + 2;
    }
    jw_close(w);
}
