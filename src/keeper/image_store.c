/* image_store.c - see image_store.h.
 *
 * A version's file is a head, its layers, its settings and a sum over all of it,
 * as this machine has them in memory: it never leaves the machine. */
#include "keeper/image_store.h"

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
#include "keeper/disk_ways.h"
#include "keeper/file.h"

#define FILE_MAGIC 0x636f7669u
#define FILE_VERSION 1u
#define STORE_PREFIX ".image-"

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
    struct image_head h = {.magic = FILE_MAGIC,
                           .version = FILE_VERSION,
                           .nlayers = im->nlayers,
                           .settings_len = im->settings_len,
                           .bytes = im->bytes,
                           .files = im->files,
                           .created_ms = im->created_ms};
    autobuf struct buf out = BUF_INIT(1u << 20);
    uint64_t sum;

    memcpy(h.format, im->format, sizeof(h.format));
    buf_add(&out, &h, sizeof(h));
    buf_add(&out, im->layers, im->nlayers * sizeof(*im->layers));
    buf_add(&out, im->settings, im->settings_len);
    sum = file_sum(buf_data(&out), out.len);
    if (out.failed || buf_add(&out, &sum, sizeof(sum)) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return file_put(s->versions_fd, im->id, buf_data(&out), out.len, e);
}

void image_unlink(struct images *s, const struct image *im)
{
    if (unlinkat(s->versions_fd, im->id, 0) < 0 && errno != ENOENT)
        log_warn("remove version %s: %s", im->id, strerror(errno));
}

int image_name_save(struct images *s, const char *name, const char *id, struct err *e)
{
    return file_put(s->names_fd, name, id, strlen(id), e);
}

int image_name_unlink(struct images *s, const char *name, struct err *e)
{
    if (unlinkat(s->names_fd, name, 0) < 0 || fsync(s->names_fd) < 0)
        return err_sys(e, "remove the name %s", name);
    return 0;
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

static bool layers_valid(const struct image *im)
{
    for (unsigned i = 0; i < im->nlayers; i++) {
        const struct image_layer *l = &im->layers[i];

        if (memchr(l->store, '\0', sizeof(l->store)) == NULL || !image_is_version(l->store) ||
            memchr(l->chain, '\0', sizeof(l->chain)) == NULL || l->index >= IMAGE_LAYERS_MAX)
            return false;
    }
    return true;
}

static struct image *parse(const char *p, size_t n, struct err *e)
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
    if (h.magic != FILE_MAGIC || h.version != FILE_VERSION || h.nlayers == 0 ||
        h.nlayers > IMAGE_LAYERS_MAX || h.settings_len > IMAGE_SETTINGS_MAX ||
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
    if (layers_valid(im))
        return im;
    image_free(im);
    return NULL;
}

static int load_version(struct keeper *k, const char *name, struct err *e)
{
    static char text[64u << 10];
    ssize_t n = file_get(k->images->versions_fd, name, text, sizeof(text), e);
    struct image *im = n < 0 || !image_is_version(name) ? NULL : parse(text, (size_t)n, e);

    if (n < 0)
        return -1;
    if (im == NULL) {
        log_warn("version %s of a template is damaged: passed over", name);
        return 0;
    }
    str_fmt(im->id, sizeof(im->id), "%s", name);
    list_add_tail(&k->images->versions, &im->link);
    return 0;
}

static int load_name(struct keeper *k, const char *name, struct err *e)
{
    char id[32] = "";
    ssize_t n = file_get(k->images->names_fd, name, id, sizeof(id) - 1, e);
    struct image *im = n == (ssize_t)ID_LEN ? image_find(k, id) : NULL;
    struct image_name *new;

    if (n < 0)
        return -1;
    if (im == NULL || image_check_name(name, e) < 0) {
        log_warn("template %s means nothing: passed over", name);
        return 0;
    }
    new = image_name_add(k->images, name);
    if (new == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    new->image = im;
    return 0;
}

static int each_file(struct keeper *k, int dir,
                     int (*each)(struct keeper *k, const char *name, struct err *e), struct err *e)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (d == NULL)
        return err_sys(e, "read the templates");
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.')
            r = each(k, de->d_name, e);
    closedir(d);
    return r;
}

static int open_dir(int at, const char *name, struct err *e)
{
    int fd;

    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open %s", name) : fd;
}

int image_store_load(struct keeper *k, struct err *e)
{
    struct images *s = k->images;
    autofd int dir = open_dir(k->dir_fd, "images", e);

    s->names_fd = dir < 0 ? -1 : open_dir(dir, "names", e);
    s->versions_fd = s->names_fd < 0 ? -1 : open_dir(dir, "versions", e);
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

/* A big tree takes its time: in a child of nobody, as template.c does it. What
 * it does not finish the next sweep does. */
static void remove_layer(int layers, const char *name)
{
    pid_t pid = fork();
    int budget = INT32_MAX;

    if (pid == 0) {
        if (fork() == 0) {
            disk_empty(layers, name, &budget);
            unlinkat(layers, name, AT_REMOVEDIR);
        }
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static int open_layers(struct keeper *k, const char *store)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char path[96];

    snprintf(path, sizeof(path), "%.64s/root/" IMAGE_LAYERS, store);
    return (int)syscall(SYS_openat2, k->disk.fd, path, &how, sizeof(how));
}

static void sweep_layers(struct keeper *k, const char *store, const char *id,
                         bool (*needed)(struct keeper *k, const char *store, uint32_t index))
{
    int fd = open_layers(k, store);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    uint64_t index;

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (str_u64(de->d_name, IMAGE_LAYERS_MAX, &index) == 0 && !needed(k, id, (uint32_t)index))
            remove_layer(fd, de->d_name);
    if (d != NULL)
        closedir(d);
}

void image_store_sweep(struct keeper *k,
                       bool (*needed)(struct keeper *k, const char *store, uint32_t index))
{
    int copy = openat(k->disk.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

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
