/* manifest.c - see manifest.h. */
#include "front/engine/archives/manifest.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "front/engine/archives.h"
#include "mem/mem.h"
#include "wire/archive.h"
#include "json/read.h"
#include "json/write.h"

#define FORMAT "cove-archive"

static const char *const part_names[MANIFEST_PARTS] = {
    [MANIFEST_GONE] = "gone", [MANIFEST_TAR] = "tar"};

void manifest_free(struct manifest *m)
{
    for (int i = 0; i < MANIFEST_PARTS; i++)
        free(m->parts[i].v);
    free(m->spec);
    *m = (struct manifest){0};
}

struct manifest_chunk *manifest_add(struct manifest *m, enum manifest_part part)
{
    struct manifest_list *l = &m->parts[part];

    if (m->parts[MANIFEST_GONE].n + m->parts[MANIFEST_TAR].n >= ARCHIVE_CHUNKS_MAX)
        return NULL;
    if (l->n == l->room) {
        l->room = l->room * 2 + 16;
        l->v = mem_again(l->v, l->room, sizeof(*l->v));
    }
    l->v[l->n] = (struct manifest_chunk){0};
    return &l->v[l->n++];
}

uint64_t manifest_stored(const struct manifest *m)
{
    uint64_t sum = 0;

    for (int i = 0; i < MANIFEST_PARTS; i++)
        for (size_t j = 0; j < m->parts[i].n; j++)
            sum += m->parts[i].v[j].size;
    return sum;
}

void manifest_digest(const void *p, size_t n, char out[SHA256_HEX])
{
    unsigned char raw[SHA256_SIZE];

    if (EVP_Digest(p, n, raw, NULL, EVP_sha256(), NULL) != 1)
        abort(); /* libcrypto without SHA-256, or no memory: nothing can be verified */
    for (size_t i = 0; i < SHA256_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

/* ---- write ---- */

int manifest_write(const struct manifest *m, struct buf *to, struct err *e)
{
    struct json_w w;

    jw_init(&w, to);
    jw_open(&w);
    jw_kstr(&w, "format", FORMAT);
    jw_ku64(&w, "version", MANIFEST_VERSION);
    jw_ku64(&w, "created_ms", m->created_ms);
    jw_kstr(&w, "template", m->template);
    jw_kstr(&w, "base", m->base);
    jw_ku64(&w, "entries", m->entries);
    jw_ku64(&w, "bytes", m->bytes);
    for (int i = 0; i < MANIFEST_PARTS; i++) {
        jw_key(&w, part_names[i]);
        jw_open_list(&w);
        for (size_t j = 0; j < m->parts[i].n; j++) {
            jw_open_list(&w);
            jw_str(&w, m->parts[i].v[j].digest);
            jw_u64(&w, m->parts[i].v[j].size);
            jw_close_list(&w);
        }
        jw_close_list(&w);
    }
    jw_key(&w, "spec");
    if (m->spec != NULL)
        jw_raw(&w, m->spec, strlen(m->spec));
    else
        jw_null(&w);
    jw_close(&w);
    return to->failed ? err_set(e, ERR_TOO_LARGE, "the manifest of the archive is too large") : 0;
}

/* ---- read ---- */

static bool is_digest(const char *s)
{
    return s != NULL && strlen(s) == SHA256_HEX - 1 &&
           strspn(s, "0123456789abcdef") == SHA256_HEX - 1;
}

static int broken(struct err *e, const char *what)
{
    return err_set(e, ERR_INTERNAL, "the manifest of the archive is damaged: %s", what);
}

static int read_part(const json_t *doc, enum manifest_part part, struct manifest *m, struct err *e)
{
    const json_t *list = json_object_get(doc, part_names[part]), *one;
    size_t i;

    if (!json_is_array(list))
        return broken(e, part_names[part]);
    json_array_foreach(list, i, one)
    {
        const char *digest = json_string_value(json_array_get(one, 0));
        json_int_t size = json_integer_value(json_array_get(one, 1));
        struct manifest_chunk *c = manifest_add(m, part);

        if (!is_digest(digest) || size <= 0 || size > ARCHIVE_FRAME_MAX)
            return broken(e, part_names[part]);
        if (c == NULL)
            return err_set(e, ERR_TOO_LARGE, "the archive has more than %u chunks",
                           ARCHIVE_CHUNKS_MAX);
        memcpy(c->digest, digest, SHA256_HEX);
        c->size = (uint32_t)size;
    }
    return 0;
}

static int take_number(const json_t *doc, const char *name, uint64_t *ret)
{
    const json_t *j = json_object_get(doc, name);

    if (!json_is_integer(j) || json_integer_value(j) < 0)
        return -1;
    *ret = (uint64_t)json_integer_value(j);
    return 0;
}

static int read_doc(const json_t *doc, struct manifest *m, struct err *e)
{
    const char *format = json_string_value(json_object_get(doc, "format"));
    const char *template = json_string_value(json_object_get(doc, "template"));
    const char *base = json_string_value(json_object_get(doc, "base"));
    const json_t *spec = json_object_get(doc, "spec");
    uint64_t version;

    if (format == NULL || strcmp(format, FORMAT) != 0 || take_number(doc, "version", &version) < 0)
        return broken(e, "it is no manifest");
    if (version != MANIFEST_VERSION)
        return err_set(e, ERR_UNSUPPORTED,
                       "the archive has format %llu, this release knows %u; use a newer release",
                       (unsigned long long)version, MANIFEST_VERSION);
    if (template == NULL || strlen(template) >= sizeof(m->template) || !is_digest(base) ||
        take_number(doc, "created_ms", &m->created_ms) < 0 ||
        take_number(doc, "entries", &m->entries) < 0 || take_number(doc, "bytes", &m->bytes) < 0)
        return broken(e, "a field is missing");
    str_fmt(m->template, sizeof(m->template), "%s", template);
    memcpy(m->base, base, SHA256_HEX);
    m->spec = json_is_object(spec) ? json_dumps(spec, JSON_COMPACT) : NULL;
    if (read_part(doc, MANIFEST_GONE, m, e) < 0 || read_part(doc, MANIFEST_TAR, m, e) < 0)
        return -1;
    return m->parts[MANIFEST_TAR].n == 0 ? broken(e, "it has no chunks") : 0;
}

int manifest_read(const char *text, size_t len, struct manifest *ret, struct err *e)
{
    autojson json_t *doc = NULL;

    *ret = (struct manifest){0};
    if (json_parse(text, len, &doc, e) < 0) {
        e->kind = ERR_INTERNAL;
        return err_wrap(e, "the manifest of the archive is damaged");
    }
    if (read_doc(doc, ret, e) == 0)
        return 0;
    manifest_free(ret);
    return -1;
}
