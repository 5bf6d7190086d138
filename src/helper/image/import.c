/* import.c - see import.h. */
#include "helper/image/import.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "helper/archive/unpack.h"
#include "helper/call/call.h"
#include "helper/image/manifest.h"
#include "helper/image/members.h"
#include "helper/image/spool.h"
#include "helper/tree/path.h"
#include "json/read.h"

#define ARCHIVE "archive" /* in the spool */
#define BLOBS "blobs/sha256/"
#define PROGRESS_MS 200u
#define PROGRESS_EVERY 200u /* look at the clock once in so many entries */
#define AS_ARCHIVED (UNPACK_OWNERS | UNPACK_LINKS | UNPACK_FIFOS)

struct import {
    int root, spool, layers;
    uint64_t size; /* bytes received */
    uint64_t said_ms;
    const char *doing;
    struct source *from; /* being read; or NULL */
    uint64_t total;
    unsigned n;
    int fds[IMAGE_LAYERS_MAX]; /* directories of the finished layers */
    char chains[IMAGE_LAYERS_MAX][SHA256_HEX];
    struct unpack_count count;
    const char *format;
    json_t *settings;
};

/* ---- reporting ---- */

static void progress(void *arg)
{
    struct import *im = arg;
    uint64_t now = clock_mono_ms();

    if (now - im->said_ms < PROGRESS_MS)
        return;
    im->said_ms = now;
    printf("P %llu %llu %s\n", im->from == NULL ? 0 : source_done(im->from),
           (unsigned long long)im->total, im->doing);
    fflush(stdout);
}

/* Thousands of empty files are one read of the archive. */
static int each_entry(void *arg, struct err *e)
{
    struct import *im = arg;

    (void)e;
    if (im->count.entries % PROGRESS_EVERY == 0)
        progress(im);
    return 0;
}

/* A new phase is said at once. */
static void watch(struct import *im, struct source *from, uint64_t total)
{
    im->from = from;
    im->total = total;
    im->said_ms = 0;
    source_watch(from, progress, im);
}

static int say_result(struct import *im, struct err *e)
{
    autojson json_t *layers = json_array();
    autojson json_t *all = NULL;
    autofree char *text = NULL;

    for (unsigned i = 0; i < im->n; i++)
        json_array_append_new(layers, json_string(im->chains[i]));
    all = json_pack("{s:s, s:O, s:I, s:I, s:O}", "format", im->format, "layers", layers, "bytes",
                    (json_int_t)im->count.bytes, "files", (json_int_t)im->count.files, "settings",
                    im->settings);
    text = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);
    if (text == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (strlen(text) > IMAGE_LINE_MAX - 16)
        return err_set(e, ERR_TOO_LARGE, "env, entrypoint and cmd of the image are too long");
    printf("R %s\n", text);
    return 0;
}

/* ---- receiving ---- */

static int spool(struct import *im, struct err *e)
{
    autofd int fd = openat(im->spool, ARCHIVE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    static char piece[256 << 10];
    ssize_t n;

    if (fd < 0)
        return say_sys(e, "make", ARCHIVE);
    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0) {
        if (spool_write(fd, piece, (size_t)n, im->size, ARCHIVE, e) < 0)
            return -1;
        im->size += (uint64_t)n;
    }
    if (n < 0)
        return err_sys(e, "receive the archive");
    return im->size == 0 ? err_set(e, ERR_INVALID, "the archive is empty") : 0;
}

static struct source *open_archive(struct import *im, int *fd, const char *doing, struct err *e)
{
    struct source *from;

    *fd = openat(im->spool, ARCHIVE, O_RDWR | O_CLOEXEC);
    if (*fd < 0) {
        err_sys(e, "open the archive");
        return NULL;
    }
    im->doing = doing;
    from = source_open(*fd, NULL, e);
    if (from != NULL)
        watch(im, from, im->size);
    return from;
}

/* ---- one layer ---- */

static int check_digest(const char *what, unsigned at, const char *got, const char *want,
                        struct err *e)
{
    if (*want == '\0' || strcmp(got, want) == 0)
        return 0;
    return err_set(e, ERR_INVALID, "layer %u: its %s is sha256:%s, not sha256:%s", at, what, got,
                   want);
}

/* `digest` (stored bytes) and `diff_id` (decompressed bytes) are verified unless "". */
static int add_layer(struct import *im, struct source *from, bool marks, const char *digest,
                     const char *diff_id, struct err *e)
{
    char stored[SHA256_HEX], plain[SHA256_HEX], name[16];
    struct unpack_opts o = {.lower = im->fds,
                            .nlower = im->n,
                            .flags = AS_ARCHIVED | (marks ? UNPACK_MARKS : 0),
                            .count = &im->count,
                            .step = each_entry,
                            .arg = im};

    str_fmt(name, sizeof(name), "%u", im->n);
    if (mkdirat(im->layers, name, 0755) < 0)
        return say_sys(e, "create layer", name);
    o.fd = openat(im->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (o.fd < 0)
        return err_sys(e, "open layer %s", name);
    im->fds[im->n] = o.fd;
    if (unpack(from, &o, e) < 0)
        return -1;
    source_digests(from, stored, plain);
    if (check_digest("digest", im->n, stored, digest, e) < 0 ||
        check_digest("diff id", im->n, plain, diff_id, e) < 0)
        return -1;
    if (im->n > 0)
        memcpy(im->chains[im->n], im->chains[im->n - 1], SHA256_HEX);
    manifest_chain(im->chains[im->n], plain);
    im->n++;
    return 0;
}

/* ---- the formats ---- */

static void blob_name(char out[128], const char *digest)
{
    str_fmt(out, 128, BLOBS "%s", digest);
}

static int read_config(struct import *im, const struct members *m, const char *name,
                       const char *digest, struct manifest_config *ret, struct err *e)
{
    autofree char *text = NULL;
    size_t len;

    if (members_read(m, name, digest, &text, &len, e) < 0 || manifest_config(text, len, ret, e) < 0)
        return -1;
    im->settings = take_ptr(&ret->settings);
    return 0;
}

static const char *layer_name(const struct manifest_layer *l, char blob[128])
{
    blob_name(blob, l->digest);
    return l->member[0] != '\0' ? l->member : blob;
}

/* Equal layers are one file: it is needed until the last of them is unpacked. */
static bool needed_later(const struct members *m, const struct manifest *man, unsigned at)
{
    char blob[128], later[128];
    const char *name = layer_name(&man->layers[at], blob);

    for (unsigned i = at + 1; i < man->nlayers; i++)
        if (members_same(m, name, layer_name(&man->layers[i], later)))
            return true;
    return false;
}

/* A layer is given back to the disk while it is read, so that no layer is there twice. */
static int add_layers(struct import *im, const struct members *m, const struct manifest *man,
                      const struct manifest_config *c, struct err *e)
{
    static char doing[48]; /* im->doing refers to it */
    char blob[128];

    if (c->nlayers != man->nlayers)
        return err_set(e, ERR_INVALID, "the manifest has %u layers, but the config has %u",
                       man->nlayers, c->nlayers);
    im->doing = doing;
    for (unsigned i = 0; i < man->nlayers; i++) {
        const struct manifest_layer *l = &man->layers[i];
        const char *name = layer_name(l, blob);
        bool last = !needed_later(m, man, i);
        autofd int fd = -1;
        autosource struct source *from = NULL;
        struct stat st;

        snprintf(doing, sizeof(doing), "unpacking layer %u of %u", i + 1, man->nlayers);
        fd = members_open(m, name, e);
        if (fd < 0 || (from = source_open(fd, NULL, e)) == NULL || fstat(fd, &st) < 0)
            return -1;
        watch(im, from, (uint64_t)st.st_size);
        if (last)
            source_eat(from);
        if (add_layer(im, from, true, l->digest, c->diff_ids[i], e) < 0)
            return -1;
        if (last)
            members_remove(m, name);
    }
    return 0;
}

static int import_docker(struct import *im, const struct members *m, struct manifest *man,
                         struct manifest_config *c, struct err *e)
{
    autofree char *text = NULL;
    char digest[SHA256_HEX] = "";
    const char *last;
    size_t len, n;

    im->format = "docker";
    if (members_read(m, "manifest.json", "", &text, &len, e) < 0 ||
        manifest_docker(text, len, man, e) < 0)
        return -1;
    /* the name of the config contains its digest: "HEX.json", or a blob */
    last = path_name(man->config);
    n = strspn(last, "0123456789abcdef");
    if (n == SHA256_HEX - 1 && (last[n] == '\0' || strcmp(last + n, ".json") == 0))
        str_fmt(digest, sizeof(digest), "%.64s", last);
    if (read_config(im, m, man->config, digest, c, e) < 0)
        return -1;
    return add_layers(im, m, man, c, e);
}

/* An index may refer to another one, for several architectures; no deeper. */
static int find_manifest(const struct members *m, char digest[SHA256_HEX], struct err *e)
{
    char name[128] = "index.json";

    for (int depth = 0; depth < 3; depth++) {
        autofree char *text = NULL;
        struct manifest_ref ref;
        size_t len;

        if (members_read(m, name, digest, &text, &len, e) < 0 ||
            manifest_index(text, len, &ref, e) < 0)
            return -1;
        memcpy(digest, ref.digest, SHA256_HEX);
        if (ref.kind == MANIFEST_IMAGE)
            return 0;
        blob_name(name, digest);
    }
    return err_set(e, ERR_INVALID, "index.json: more than two levels of indexes");
}

static int import_oci(struct import *im, const struct members *m, struct manifest *man,
                      struct manifest_config *c, struct err *e)
{
    char name[128], digest[SHA256_HEX] = "";
    autofree char *text = NULL;
    size_t len;

    im->format = "oci";
    if (find_manifest(m, digest, e) < 0)
        return -1;
    blob_name(name, digest);
    if (members_read(m, name, digest, &text, &len, e) < 0 || manifest_oci(text, len, man, e) < 0)
        return -1;
    blob_name(name, man->config_digest);
    if (read_config(im, m, name, man->config_digest, c, e) < 0)
        return -1;
    return add_layers(im, m, man, c, e);
}

static int import_image(struct import *im, enum outer kind, struct err *e)
{
    static struct manifest man;
    static struct manifest_config config;
    struct members m = {0};
    autofd int fd = -1;
    struct source *from = open_archive(im, &fd, "reading the archive", e);
    int r = -1;

    if (from != NULL) {
        source_eat(from);
        r = members_extract(&m, im->spool, from, e);
    }
    source_close(from);
    unlinkat(im->spool, ARCHIVE, 0);
    if (r == 0)
        r = (kind == OUTER_OCI ? import_oci : import_docker)(im, &m, &man, &config, e);
    manifest_config_free(&config);
    members_free(&m);
    return r;
}

static int import_rootfs(struct import *im, struct err *e)
{
    autofd int fd = -1;
    autosource struct source *from = open_archive(im, &fd, "unpacking", e);

    if (from == NULL)
        return -1;
    source_eat(from);
    im->format = "rootfs";
    im->settings = manifest_no_settings();
    return add_layer(im, from, false, "", "", e);
}

static int detect(struct import *im, enum outer *ret, struct err *e)
{
    autofd int fd = -1;
    autosource struct source *from = open_archive(im, &fd, "reading the archive", e);

    return from == NULL ? -1 : members_detect(from, ret, e);
}

/* ---- the whole ---- */

static int make_dir(struct import *im, const char *name, int *ret, struct err *e)
{
    if (mkdirat(im->root, name, 0700) < 0 && errno != EEXIST)
        return say_sys(e, "make", name);
    *ret = openat(im->root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret < 0 ? err_sys(e, "open %s", name) : 0;
}

static void empty_spool(struct import *im)
{
    autofd int copy = openat(im->spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (d == NULL)
        return;
    take_fd(&copy);
    for (struct dirent *de; (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.')
            unlinkat(im->spool, de->d_name, 0);
    closedir(d);
    unlinkat(im->root, IMAGE_SPOOL, AT_REMOVEDIR);
}

static int import(struct import *im, struct err *e)
{
    enum outer kind;
    int r;

    if (make_dir(im, IMAGE_SPOOL, &im->spool, e) < 0 ||
        make_dir(im, IMAGE_LAYERS, &im->layers, e) < 0 || spool(im, e) < 0 ||
        detect(im, &kind, e) < 0)
        return -1;
    r = kind == OUTER_ROOTFS ? import_rootfs(im, e) : import_image(im, kind, e);
    if (r < 0)
        return -1;
    empty_spool(im);
    /* synced here, where only this template has to wait for it */
    if (syncfs(im->layers) < 0)
        return say_sys(e, "write out", "the layers");
    return say_result(im, e);
}

int import_main(const char *root)
{
    static struct import im;
    struct err e;
    int r;

    im = (struct import){.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                         .spool = -1,
                         .layers = -1,
                         .doing = ""};
    umask(0);
    r = im.root < 0 ? err_sys(&e, "open %s", root) : import(&im, &e);
    if (r < 0 && e.kind == ERR_DISK_FULL) {
        e.kind = ERR_TOO_LARGE;
        err_wrap(&e, "the image does not fit in the disk that its import may use; give it more "
                     "(--disk, or `disk` in the API)");
    }
    if (r < 0)
        say_failed(stdout, &e);
    fflush(stdout);
    for (unsigned i = 0; i < im.n; i++)
        drop_fd(&im.fds[i]);
    drop_fd(&im.root);
    drop_fd(&im.spool);
    drop_fd(&im.layers);
    json_drop(&im.settings);
    return r < 0;
}
