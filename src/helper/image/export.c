/* export.c - see export.h. */
#include "helper/image/export.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "helper/archive/pack.h"
#include "helper/call/call.h"
#include "helper/image/manifest.h"
#include "json/read.h"

#define LAYOUT "{\"imageLayoutVersion\":\"1.0.0\"}"
#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"

/* Receives the layer: the first time only hashes it, the second time writes it too. */
struct sink {
    struct sha256 hash;
    uint64_t size;
    struct archive *outer; /* or NULL */
};

struct blob {
    char digest[SHA256_HEX];
    uint64_t size;
    char *text; /* or NULL: the layer */
};

/* ---- the layer ---- */

static la_ssize_t sink_write(struct archive *a, void *arg, const void *p, size_t n)
{
    struct sink *s = arg;

    sha256_add(&s->hash, p, n);
    s->size += n;
    if (s->outer != NULL && archive_write_data(s->outer, p, n) != (la_ssize_t)n) {
        archive_set_error(a, -1, "%s", archive_error_string(s->outer));
        return -1;
    }
    return (la_ssize_t)n;
}

static int pack_layer(struct sink *s, struct err *e)
{
    struct archive *a = archive_write_new();
    int r = a == NULL ? err_set(e, ERR_INTERNAL, "out of memory") : pack_format(a, "tar", e);

    sha256_init(&s->hash);
    s->size = 0;
    if (r == 0 && archive_write_open(a, s, NULL, sink_write, NULL) != ARCHIVE_OK)
        r = pack_failed(a, e);
    if (r == 0)
        r = pack_tree(a, "/", NULL, PACK_WHOLE, e);
    return pack_end(a, r, e);
}

/* ---- the documents ---- */

static int blob_of(struct blob *b, json_t *doc, struct err *e)
{
    struct sha256 h;

    b->text = doc == NULL ? NULL : json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
    if (b->text == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    b->size = strlen(b->text);
    sha256_init(&h);
    sha256_add(&h, b->text, b->size);
    sha256_hex(&h, b->digest);
    return 0;
}

static json_t *named(const char *digest)
{
    return json_sprintf("sha256:%s", digest);
}

static int make_config(struct blob *ret, const json_t *settings, const struct blob *layer,
                       struct err *e)
{
    static const char *const names[][2] = {{"env", "Env"},
                                           {"user", "User"},
                                           {"workdir", "WorkingDir"},
                                           {"entrypoint", "Entrypoint"},
                                           {"cmd", "Cmd"}};
    autojson json_t *config = json_object(), *doc = NULL;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_t *value = json_object_get(settings, names[i][0]);

        if (value != NULL)
            json_object_set(config, names[i][1], value);
    }
    doc = json_pack("{s:s, s:s, s:O, s:{s:s, s:[o]}}", "architecture", MANIFEST_MACHINE, "os",
                    "linux", "config", config, "rootfs", "type", "layers", "diff_ids",
                    named(layer->digest));
    return blob_of(ret, doc, e);
}

static json_t *refer(const char *type, const struct blob *b)
{
    return json_pack("{s:s, s:o, s:I}", "mediaType", type, "digest", named(b->digest), "size",
                     (json_int_t)b->size);
}

/* ---- the file ---- */

static int entry(struct archive *a, const char *path, uint64_t size, struct err *e)
{
    struct archive_entry *en = archive_entry_new();
    int r;

    if (en == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    archive_entry_set_pathname(en, path);
    archive_entry_set_filetype(en, AE_IFREG);
    archive_entry_set_perm(en, 0644);
    archive_entry_set_size(en, (int64_t)size);
    r = archive_write_header(a, en) == ARCHIVE_OK ? 0 : pack_failed(a, e);
    archive_entry_free(en);
    return r;
}

static int put(struct archive *a, const char *path, const char *text, struct err *e)
{
    size_t n = strlen(text);

    if (entry(a, path, n, e) < 0)
        return -1;
    return archive_write_data(a, text, n) == (la_ssize_t)n ? 0 : pack_failed(a, e);
}

static const char *path_of(char out[128], const struct blob *b)
{
    str_fmt(out, 128, "blobs/sha256/%s", b->digest);
    return out;
}

struct image {
    struct blob layer, config, manifest, index;
};

static int send_image(const struct image *im, struct err *e)
{
    struct archive *a = archive_write_new();
    int r = a == NULL ? err_set(e, ERR_INTERNAL, "out of memory") : pack_format(a, "tar.zst", e);
    struct sink again = {.outer = a};
    char path[128], digest[SHA256_HEX];

    if (r == 0 && archive_write_open_fd(a, STDOUT_FILENO) != ARCHIVE_OK)
        r = pack_failed(a, e);
    if (r == 0 &&
        (put(a, "oci-layout", LAYOUT, e) < 0 || put(a, "index.json", im->index.text, e) < 0 ||
         put(a, path_of(path, &im->config), im->config.text, e) < 0 ||
         put(a, path_of(path, &im->manifest), im->manifest.text, e) < 0 ||
         entry(a, path_of(path, &im->layer), im->layer.size, e) < 0 || pack_layer(&again, e) < 0))
        r = -1;
    if (r == 0) {
        sha256_hex(&again.hash, digest);
        if (strcmp(digest, im->layer.digest) != 0)
            r = err_set(e, ERR_CONFLICT, "the files were changed while they were packed");
    }
    return pack_end(a, r, e);
}

static int export_image(const char *text, const char *name, struct err *e)
{
    autojson json_t *settings = NULL, *manifest = NULL, *index = NULL;
    struct image im = {0};
    struct sink first = {0};
    json_t *ref;
    int r = -1;

    if (json_parse(text, strlen(text), &settings, e) < 0 || pack_layer(&first, e) < 0)
        return -1;
    sha256_hex(&first.hash, im.layer.digest);
    im.layer.size = first.size;
    if (make_config(&im.config, settings, &im.layer, e) < 0)
        goto out;
    manifest =
        json_pack("{s:i, s:s, s:o, s:[o]}", "schemaVersion", 2, "mediaType", MANIFEST_TYPE,
                  "config", refer(CONFIG_TYPE, &im.config), "layers", refer(LAYER_TYPE, &im.layer));
    if (blob_of(&im.manifest, manifest, e) < 0)
        goto out;
    ref = refer(MANIFEST_TYPE, &im.manifest);
    if (*name != '\0')
        json_object_set_new(ref, "annotations",
                            json_pack("{s:s}", "org.opencontainers.image.ref.name", name));
    index = json_pack("{s:i, s:[o]}", "schemaVersion", 2, "manifests", ref);
    if (blob_of(&im.index, index, e) == 0)
        r = send_image(&im, e);
out:
    free(im.config.text);
    free(im.manifest.text);
    free(im.index.text);
    return r;
}

int export_main(int argc, char **argv)
{
    struct err e;

    if (argc != 2)
        return 64;
    return export_image(argv[0], argv[1], &e) < 0 ? say_failed(stderr, &e) : 0;
}
