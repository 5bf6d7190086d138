/* image_store.c - see image_store.h. A version's file is sealed (sealed.h); it and the files
 * of names have twins (file.h). */
#include "keeper/images/image_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/disk.h"
#include "keeper/file.h"
#include "keeper/quarantine.h"
#include "keeper/sealed.h"

#define STORE_PREFIX ".image-"
#define RECORD_MAX (64u << 10) /* bytes of a version's file */
#define LAYER_TEXT (2 * IMAGE_CHAIN + 64)

/* A layer is three strings: its chain id, the store it is in, and its number there. */
/* clang-format off */
#define VERSION_FIELDS(F, S) \
    F(S, STR, id, 31) F(S, STR, format, 15) F(S, U64, bytes, 0) F(S, U64, files, 0) F(S, U64, created_ms, 0) \
    F(S, BYTES, settings, IMAGE_SETTINGS_MAX) F(S, STRV, layers, (IMAGE_LAYERS_MAX * LAYER_TEXT))
/* clang-format on */

struct version_file {
    VERSION_FIELDS(WIRE_MEMBER, version_file)
};
static const struct wire_field fields[] = {VERSION_FIELDS(WIRE_FIELD, version_file)};
static const struct wire_msg message = {"template", 0, sizeof(struct version_file), fields,
                                        ARRAY_LEN(fields)};
static const struct sealed_kind kind = {
    .magic = 0x69766f63u /* "covi" */, .version = 2, .fields = &message};

/* As release 0.1.0 wrote it: this head, its layers, its settings and a sum over all of it, as
 * that machine had them in memory. */
#define V1_MAGIC 0x636f7669u
struct image_head {
    uint32_t magic, version, nlayers, settings_len;
    uint64_t bytes, files, created_ms;
    char format[16];
};

struct image *image_new(uint32_t nlayers, const char *settings, uint32_t len, struct err *e)
{
    size_t layers = nlayers * sizeof(struct image_layer);
    struct image *im = calloc(1, sizeof(*im) + layers + len);

    if (im == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    im->nlayers = nlayers;
    im->settings_len = len;
    im->layers = (struct image_layer *)(void *)(im + 1);
    im->settings = (char *)im->layers + layers;
    if (len > 0 && settings != NULL)
        memcpy(im->settings, settings, len);
    list_init(&im->link);
    return im;
}

void image_free(struct image *im)
{
    free(im);
}

/* ---- files ---- */

int image_save(struct images *s, const struct image *im, struct err *e)
{
    autobuf struct buf out = BUF_INIT(RECORD_MAX), layers = BUF_INIT(RECORD_MAX);
    struct version_file f = {.id = im->id,
                             .format = im->format,
                             .bytes = im->bytes,
                             .files = im->files,
                             .created_ms = im->created_ms,
                             .settings = {im->settings, im->settings_len}};

    for (unsigned i = 0; i < im->nlayers; i++) {
        char number[16];

        str_fmt(number, sizeof(number), "%u", im->layers[i].index);
        wire_strv_add(&layers, im->layers[i].chain);
        wire_strv_add(&layers, im->layers[i].store);
        wire_strv_add(&layers, number);
    }
    if (layers.failed)
        return err_set(e, ERR_INTERNAL, "out of memory");
    f.layers = wire_strv_of(&layers);
    if (sealed_put(&out, &kind, &f, e) < 0)
        return -1;
    return file_put_twins(s->versions_fd, im->id, buf_data(&out), out.len, e);
}

void image_unlink(struct images *s, const struct image *im)
{
    struct err e;

    if (file_remove_twins(s->versions_fd, im->id, &e) < 0)
        log_warn("%s", e.msg);
}

int image_name_save(struct images *s, const char *name, const char *id, struct err *e)
{
    return file_put_twins(s->names_fd, name, id, strlen(id), e);
}

int image_name_unlink(struct images *s, const char *name, struct err *e)
{
    if (file_remove_twins(s->names_fd, name, e) < 0)
        return -1;
    return fsync(s->names_fd) < 0 ? err_sys(e, "remove the name %s", name) : 0;
}

bool image_name_forget_lost(struct keeper *k, const char *name)
{
    char note[IMAGE_NAME + 32];
    struct err e;

    snprintf(note, sizeof(note), "template-name-%.60s", name);
    if (k->images->nlost == 0 || image_check_name(name, &e) < 0 ||
        faccessat(k->damaged_fd, note, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (image_name_unlink(k->images, name, &e) < 0)
        log_warn("%s", e.msg);
    quarantine_forget(k, note);
    k->images->nlost--;
    return true;
}

struct image_name *image_name_add(struct images *s, const char *name)
{
    struct image_name *n = calloc(1, sizeof(*n));

    if (n == NULL)
        return NULL;
    str_fmt(n->name, sizeof(n->name), "%s", name);
    list_add_tail(&s->names, &n->link);
    s->nnames++;
    return n;
}

void image_name_del(struct images *s, struct image_name *n)
{
    list_del(&n->link);
    s->nnames--;
    free(n);
}

/* ---- at start ---- */

static struct image *parse_v1(const char *p, size_t n, struct err *e)
{
    struct image_head h;
    struct image *im;
    uint64_t sum;
    size_t layers;

    if (n < sizeof(h) + sizeof(sum))
        return NULL;
    memcpy(&h, p, sizeof(h));
    memcpy(&sum, p + n - sizeof(sum), sizeof(sum));
    layers = h.nlayers * sizeof(struct image_layer);
    if (h.magic != V1_MAGIC || h.version != 1 || h.nlayers == 0 || h.nlayers > IMAGE_LAYERS_MAX ||
        h.settings_len > IMAGE_SETTINGS_MAX ||
        n != sizeof(h) + layers + h.settings_len + sizeof(sum) ||
        sum != file_sum(p, n - sizeof(sum)))
        return NULL;
    im = image_new(h.nlayers, p + sizeof(h) + layers, h.settings_len, e);
    if (im == NULL)
        return NULL;
    memcpy(im->layers, p + sizeof(h), layers);
    im->bytes = h.bytes;
    im->files = h.files;
    im->created_ms = h.created_ms;
    snprintf(im->format, sizeof(im->format), "%.15s", h.format);
    return im;
}

static struct image *image_of(const struct version_file *f, struct err *e)
{
    struct image *im;
    uint32_t at = 0;

    if (f->layers.count == 0 || f->layers.count % 3 != 0 || f->layers.count / 3 > IMAGE_LAYERS_MAX)
        return NULL;
    im = image_new(f->layers.count / 3, f->settings.p, f->settings.len, e);
    for (unsigned i = 0; im != NULL && i < im->nlayers; i++) {
        struct image_layer *l = &im->layers[i];
        uint64_t index = IMAGE_LAYERS_MAX;

        str_fmt(l->chain, sizeof(l->chain), "%.*s", IMAGE_CHAIN, wire_strv_next(&f->layers, &at));
        str_fmt(l->store, sizeof(l->store), "%.31s", wire_strv_next(&f->layers, &at));
        str_u64(wire_strv_next(&f->layers, &at), IMAGE_LAYERS_MAX, &index);
        l->index = (uint32_t)index;
    }
    if (im == NULL)
        return NULL;
    im->bytes = f->bytes;
    im->files = f->files;
    im->created_ms = f->created_ms;
    str_fmt(im->format, sizeof(im->format), "%s", f->format);
    return im;
}

/* As file_get_twins() wants it. */
static int take_version(void *arg, const char *p, size_t n, struct err *e)
{
    struct image **ret = arg;
    struct version_file f;
    enum sealed how = sealed_get(&kind, p, n, &f);

    if (how == SEALED_NEWER)
        return err_set(e, ERR_UNSUPPORTED,
                       "a template was written by a newer release of Cove; start that release");
    *ret = how == SEALED_WHOLE ? image_of(&f, e) : parse_v1(p, n, e);
    for (unsigned i = 0; *ret != NULL && i < (*ret)->nlayers; i++) {
        const struct image_layer *l = &(*ret)->layers[i];

        if (memchr(l->store, '\0', sizeof(l->store)) == NULL || !image_is_version(l->store) ||
            memchr(l->chain, '\0', sizeof(l->chain)) == NULL || l->index >= IMAGE_LAYERS_MAX) {
            image_free(*ret);
            *ret = NULL;
        }
    }
    return *ret != NULL;
}

static int load_version(struct keeper *k, const char *name, struct err *e)
{
    static char text[RECORD_MAX];
    struct image *im = NULL;
    char note[64];
    int r = image_is_version(name) ? file_get_twins(k->images->versions_fd, name, text,
                                                    sizeof(text), take_version, &im, e)
                                   : 0;

    if (r < 0)
        return err_wrap(e, "version %s", name);
    if (im == NULL && !image_is_version(name)) {
        log_warn("DIR/images/versions/%s is not a template version; ignored", name);
        return 0;
    }
    if (im == NULL) {
        im = image_new(0, NULL, 0, e);
        if (im == NULL)
            return -1;
        im->damaged = true;
        str_fmt(note, sizeof(note), "template-%s", name);
        quarantine_note(k, note, "both copies of this version of a template are damaged");
    }
    str_fmt(im->id, sizeof(im->id), "%s", name);
    list_add_tail(&k->images->versions, &im->link);
    return 0;
}

struct meaning {
    struct keeper *k;
    struct image *image;
};

/* A damaged id may look like another one: only an existing version counts. */
static int take_name(void *arg, const char *p, size_t n, struct err *e)
{
    struct meaning *m = arg;
    char id[ID_LEN + 1] = "";

    (void)e;
    if (n == ID_LEN)
        memcpy(id, p, ID_LEN);
    m->image = image_find(m->k, id);
    return m->image != NULL;
}

static int load_name(struct keeper *k, const char *name, struct err *e)
{
    struct meaning m = {.k = k};
    char text[ID_LEN + 2], note[IMAGE_NAME + 32];
    struct image_name *new;

    if (image_check_name(name, e) < 0) {
        log_warn("DIR/images/names/%s is not a template name; ignored", name);
        return 0;
    }
    if (file_get_twins(k->images->names_fd, name, text, sizeof(text), take_name, &m, e) < 0)
        return -1;
    if (m.image == NULL) {
        k->images->nlost++;
        snprintf(note, sizeof(note), "template-name-%.60s", name);
        quarantine_note(k, note, "the version of a template that this name means is not there");
        return 0;
    }
    new = image_name_add(k->images, name);
    if (new == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    new->image = m.image;
    return 0;
}

static int each_file(struct keeper *k, int dir,
                     int (*each)(struct keeper *k, const char *name, struct err *e), struct err *e)
{
    DIR *d = dir_list(dir);
    int r = 0;

    if (d == NULL)
        return err_sys(e, "read DIR/images");
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;) {
        const char *name = file_twin_name(dir, de->d_name);

        if (name != NULL)
            r = each(k, name, e);
    }
    closedir(d);
    return r;
}

int image_store_load(struct keeper *k, struct err *e)
{
    struct images *s = k->images;
    autofd int dir = dir_open(k->dir_fd, "images", 0700, e);

    s->names_fd = dir < 0 ? -1 : dir_open(dir, "names", 0700, e);
    s->versions_fd = s->names_fd < 0 ? -1 : dir_open(dir, "versions", 0700, e);
    if (s->versions_fd < 0)
        return -1;
    return each_file(k, s->versions_fd, load_version, e) < 0 ||
                   each_file(k, s->names_fd, load_name, e) < 0
               ? -1
               : 0;
}

/* ---- stores ---- */

void image_store_name(const char *id, char *out, size_t room)
{
    str_fmt(out, room, STORE_PREFIX "%s", id);
}

void image_layer_path(const struct image_layer *l, char *out, size_t room)
{
    str_fmt(out, room, STORE_PREFIX "%s/root/" IMAGE_LAYERS "/%u", l->store, l->index);
}

/* A big tree takes long: removed in a grandchild, as template.c does. The next sweep finishes what
 * it leaves. */
static void remove_layer(int layers, const char *name)
{
    pid_t pid = fork();
    int budget = INT32_MAX;

    if (pid == 0) {
        if (fork() == 0 && dup2(layers, 3) == 3) {
            syscall(SYS_close_range, 4u, ~0u, 0u); /* not the lock, not the port */
            disk_empty(3, name, &budget);
            unlinkat(3, name, AT_REMOVEDIR);
        }
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static void sweep_layers(struct keeper *k, const char *store, const char *id,
                         bool (*needed)(struct keeper *k, const char *store, uint32_t index))
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char path[96];
    uint64_t index;
    DIR *d;
    int fd;

    snprintf(path, sizeof(path), "%.64s/root/" IMAGE_LAYERS, store);
    fd = (int)syscall(SYS_openat2, k->disk.fd, path, &how, sizeof(how));
    d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (str_u64(de->d_name, IMAGE_LAYERS_MAX, &index) == 0 && !needed(k, id, (uint32_t)index))
            remove_layer(fd, de->d_name);
    if (d != NULL)
        closedir(d);
}

void image_store_sweep(struct keeper *k,
                       bool (*needed)(struct keeper *k, const char *store, uint32_t index))
{
    DIR *d = dir_list(k->disk.fd);

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        const char *id = de->d_name + strlen(STORE_PREFIX);

        if (strncmp(de->d_name, STORE_PREFIX, strlen(STORE_PREFIX)) != 0)
            continue;
        if (needed(k, id, IMAGE_ANY_LAYER))
            sweep_layers(k, de->d_name, id, needed);
        else
            disk_remove(k, de->d_name);
    }
    if (d != NULL)
        closedir(d);
}
