/* manifest.c - see manifest.h. */
#include "helper/image/manifest.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "json/read.h"

/* clang-format off */
static const struct {
    const char *type;
    enum manifest_kind kind;
} ref_types[] = {
    {"application/vnd.oci.image.manifest.v1+json",                MANIFEST_IMAGE},
    {"application/vnd.docker.distribution.manifest.v2+json",      MANIFEST_IMAGE},
    {"application/vnd.oci.image.index.v1+json",                   MANIFEST_INDEX},
    {"application/vnd.docker.distribution.manifest.list.v2+json", MANIFEST_INDEX},
};

/* The compression is detected from the bytes, not from this name. */
static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
};
/* clang-format on */

static json_t *parse(const char *text, size_t len, const char *what, struct err *e)
{
    json_t *j = NULL;

    if (len > MANIFEST_MAX)
        err_set(e, ERR_TOO_LARGE, "%s: larger than %u bytes", what, MANIFEST_MAX);
    else if (json_parse(text, len, &j, e) < 0)
        err_wrap(e, "%s", what);
    return j;
}

static int copy(char *out, size_t room, const json_t *j, const char *what, struct err *e)
{
    const char *s = json_string_value(j);

    if (s == NULL || *s == '\0' || strlen(s) >= room)
        return err_set(e, ERR_INVALID, "%s: expected a string of 1 to %zu bytes", what, room - 1);
    str_fmt(out, room, "%s", s);
    return 0;
}

static int digest(char out[SHA256_HEX], const json_t *j, const char *what, struct err *e)
{
    const char *s = json_string_value(j);

    if (s == NULL || strncmp(s, "sha256:", 7) != 0 || strlen(s + 7) != SHA256_HEX - 1 ||
        strspn(s + 7, "0123456789abcdef") != SHA256_HEX - 1)
        return err_set(e, ERR_INVALID, "%s: expected sha256: and 64 lower-case digits", what);
    str_fmt(out, SHA256_HEX, "%s", s + 7);
    return 0;
}

static int layer_count(const json_t *list, const char *what, unsigned *ret, struct err *e)
{
    size_t n = json_array_size(list);

    if (n == 0)
        return err_set(e, ERR_INVALID, "%s: expected a list of at least one layer", what);
    if (n > IMAGE_LAYERS_MAX)
        return err_set(e, ERR_TOO_LARGE, "%s: %zu layers, more than %u", what, n, IMAGE_LAYERS_MAX);
    *ret = (unsigned)n;
    return 0;
}

int manifest_docker(const char *text, size_t len, struct manifest *ret, struct err *e)
{
    autojson json_t *j = parse(text, len, "manifest.json", e);
    json_t *image = json_array_get(j, 0), *layers = json_object_get(image, "Layers");

    *ret = (struct manifest){0};
    if (j == NULL)
        return -1;
    if (json_array_size(j) != 1)
        return err_set(
            e, ERR_INVALID,
            "manifest.json: expected one image, not %zu; run `docker save` with one image",
            json_array_size(j));
    if (copy(ret->config, sizeof(ret->config), json_object_get(image, "Config"),
             "manifest.json: Config", e) < 0 ||
        layer_count(layers, "manifest.json: Layers", &ret->nlayers, e) < 0)
        return -1;
    for (unsigned i = 0; i < ret->nlayers; i++)
        if (copy(ret->layers[i].member, MANIFEST_NAME_MAX, json_array_get(layers, i),
                 "manifest.json: Layers", e) < 0)
            return -1;
    return 0;
}

/* ---- OCI ---- */

static int ref_of(const json_t *d, struct manifest_ref *ret, struct err *e)
{
    const char *type = json_string_value(json_object_get(d, "mediaType"));

    for (size_t i = 0; type != NULL && i < ARRAY_LEN(ref_types); i++)
        if (strcmp(ref_types[i].type, type) == 0) {
            ret->kind = ref_types[i].kind;
            return digest(ret->digest, json_object_get(d, "digest"), "index: digest", e);
        }
    return err_set(e, ERR_INVALID, "index: media type '%.100s' is not an image",
                   type != NULL ? type : "");
}

/* 2: for this machine; 1: no platform given; 0: for another machine. */
static int fits(const json_t *d)
{
    const json_t *p = json_object_get(d, "platform");
    const char *os = json_string_value(json_object_get(p, "os"));
    const char *machine = json_string_value(json_object_get(p, "architecture"));

    if (os == NULL && machine == NULL)
        return 1;
    return os != NULL && machine != NULL && strcmp(os, "linux") == 0 &&
                   strcmp(machine, MANIFEST_MACHINE) == 0
               ? 2
               : 0;
}

int manifest_index(const char *text, size_t len, struct manifest_ref *ret, struct err *e)
{
    autojson json_t *j = parse(text, len, "index", e);
    const json_t *list = json_object_get(j, "manifests");
    size_t n = json_array_size(list), count[3] = {0};
    const json_t *best[3] = {NULL};

    if (j == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *d = json_array_get(list, i);
        int fit = fits(d);

        count[fit]++;
        best[fit] = d;
    }
    for (int fit = 2; fit > 0; fit--)
        if (count[fit] == 1)
            return ref_of(best[fit], ret, e);
    if (count[1] + count[2] == 0)
        return err_set(e, ERR_INVALID, "index: none of the %zu images is for linux/%s", n,
                       MANIFEST_MACHINE);
    return err_set(e, ERR_INVALID, "index: %zu images for this machine; expected one",
                   count[2] > 0 ? count[2] : count[1]);
}

int manifest_oci(const char *text, size_t len, struct manifest *ret, struct err *e)
{
    autojson json_t *j = parse(text, len, "manifest", e);
    const json_t *layers = json_object_get(j, "layers");
    const json_t *config = json_object_get(json_object_get(j, "config"), "digest");

    *ret = (struct manifest){0};
    if (j == NULL)
        return -1;
    if (digest(ret->config_digest, config, "manifest: config digest", e) < 0 ||
        layer_count(layers, "manifest: layers", &ret->nlayers, e) < 0)
        return -1;
    for (unsigned i = 0; i < ret->nlayers; i++) {
        const json_t *d = json_array_get(layers, i);
        const char *type = json_string_value(json_object_get(d, "mediaType"));
        size_t k = 0;

        while (type != NULL && k < ARRAY_LEN(layer_types) && strcmp(layer_types[k], type) != 0)
            k++;
        if (type == NULL || k == ARRAY_LEN(layer_types))
            return err_set(e, ERR_INVALID,
                           "manifest: a layer has the unsupported media type '%.100s'",
                           type != NULL ? type : "");
        if (digest(ret->layers[i].digest, json_object_get(d, "digest"), "manifest: layer digest",
                   e) < 0)
            return -1;
    }
    return 0;
}

/* ---- the config ---- */

static int take_list(json_t *to, const char *name, const json_t *config, const char *from,
                     struct err *e)
{
    json_t *list = json_object_get(config, from), *s;
    size_t i;

    if (list == NULL || json_is_null(list))
        return json_object_set_new(to, name, json_array());
    if (!json_is_array(list))
        return err_set(e, ERR_INVALID, "config: %s: expected a list of strings", from);
    json_array_foreach(list, i, s) if (!json_is_string(s)) return err_set(
        e, ERR_INVALID, "config: %s: expected a list of strings", from);
    return json_object_set(to, name, list);
}

static int take_text(json_t *to, const char *name, const json_t *config, const char *from,
                     struct err *e)
{
    json_t *s = json_object_get(config, from);

    if (s == NULL || json_is_null(s))
        return json_object_set_new(to, name, json_string(""));
    if (!json_is_string(s))
        return err_set(e, ERR_INVALID, "config: %s: expected a string", from);
    return json_object_set(to, name, s);
}

static int settings(const json_t *config, json_t **ret, struct err *e)
{
    autojson json_t *to = json_object();

    if (take_list(to, "env", config, "Env", e) < 0 ||
        take_text(to, "user", config, "User", e) < 0 ||
        take_text(to, "workdir", config, "WorkingDir", e) < 0 ||
        take_list(to, "entrypoint", config, "Entrypoint", e) < 0 ||
        take_list(to, "cmd", config, "Cmd", e) < 0)
        return -1;
    *ret = take_ptr(&to);
    return 0;
}

json_t *manifest_no_settings(void)
{
    json_t *ret = NULL;
    struct err e;

    settings(NULL, &ret, &e);
    return ret;
}

int manifest_config(const char *text, size_t len, struct manifest_config *ret, struct err *e)
{
    autojson json_t *j = parse(text, len, "config", e);
    const json_t *ids = json_object_get(json_object_get(j, "rootfs"), "diff_ids");
    const char *os = json_string_value(json_object_get(j, "os"));
    const char *machine = json_string_value(json_object_get(j, "architecture"));

    ret->settings = NULL;
    if (j == NULL)
        return -1;
    if ((os != NULL && *os != '\0' && strcmp(os, "linux") != 0) ||
        (machine != NULL && *machine != '\0' && strcmp(machine, MANIFEST_MACHINE) != 0))
        return err_set(e, ERR_INVALID, "the image is for %.32s/%.32s; this host is linux/%s",
                       os != NULL ? os : "linux", machine != NULL ? machine : "?",
                       MANIFEST_MACHINE);
    if (layer_count(ids, "config: diff_ids", &ret->nlayers, e) < 0)
        return -1;
    for (unsigned i = 0; i < ret->nlayers; i++)
        if (digest(ret->diff_ids[i], json_array_get(ids, i), "config: diff_ids", e) < 0)
            return -1;
    return settings(json_object_get(j, "config"), &ret->settings, e);
}

void manifest_config_free(struct manifest_config *c)
{
    json_drop(&c->settings);
}

void manifest_chain(char chain[SHA256_HEX], const char diff_id[SHA256_HEX])
{
    struct sha256 s;

    if (chain[0] == '\0') {
        memcpy(chain, diff_id, SHA256_HEX);
        return;
    }
    sha256_init(&s);
    sha256_add(&s, "sha256:", 7);
    sha256_add(&s, chain, SHA256_HEX - 1);
    sha256_add(&s, " sha256:", 8);
    sha256_add(&s, diff_id, SHA256_HEX - 1);
    sha256_hex(&s, chain);
}
