/* image.c - see image.h: the templates in memory, and the requests about them. */
#include "keeper/image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/images/image_store.h"
#include "keeper/life.h"
#include "keeper/quarantine.h"
#include "keeper/snapshot.h"

bool image_is_version(const char *version)
{
    return strlen(version) == ID_LEN && id_is_valid(version, ID_LEN);
}

static struct image_name *name_find(struct keeper *k, const char *name)
{
    struct image_name *n;

    LIST_EACH (&k->images->names, n, struct image_name, link)
        if (strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

struct image *image_find(struct keeper *k, const char *id)
{
    struct image *im;

    LIST_EACH (&k->images->versions, im, struct image, link)
        if (strcmp(im->id, id) == 0)
            return im;
    return NULL;
}

const char *image_current(struct keeper *k, const char *name)
{
    struct image_name *n = name_find(k, name);

    return n == NULL ? NULL : n->image->id;
}

struct wire_bytes image_settings(struct keeper *k, const char *version)
{
    struct image *im = image_find(k, snapshot_bottom(k, version));

    return im == NULL ? (struct wire_bytes){"", 0}
                      : (struct wire_bytes){im->settings, im->settings_len};
}

/* ---- layers ---- */

/* A process in the import made this tree: no link in it is followed. */
static int layer_open(struct keeper *k, const struct image_layer *l, struct err *e)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char path[96];
    int fd;

    image_layer_path(l, path, sizeof(path));
    fd = (int)syscall(SYS_openat2, k->disk.fd, path, &how, sizeof(how));
    return fd < 0 ? err_sys(e, "open layer %s", path) : fd;
}

int image_layers(struct keeper *k, const char *version, int fds[IMAGE_LAYERS_MAX], struct err *e)
{
    struct image *im = image_find(k, version);
    unsigned n = 0;

    if (im == NULL)
        return err_set(e, ERR_INTERNAL, "template version %s does not exist", version);
    if (im->damaged)
        return err_set(e, ERR_CONFLICT,
                       "template version %s is damaged; restore DIR/images/versions/%s from a "
                       "backup, or add the template again for new sandboxes",
                       version, version);
    while (n < im->nlayers) {
        fds[n] = layer_open(k, &im->layers[im->nlayers - 1 - n], e);
        if (fds[n] < 0) {
            while (n > 0)
                drop_fd(&fds[--n]);
            return -1;
        }
        n++;
    }
    return (int)n;
}

/* The same chain of layers, from any import. */
static const struct image_layer *layer_find(struct keeper *k, const char *chain)
{
    struct image *im;

    LIST_EACH (&k->images->versions, im, struct image, link)
        for (unsigned i = 0; i < im->nlayers; i++)
            if (strcmp(im->layers[i].chain, chain) == 0)
                return &im->layers[i];
    return NULL;
}

/* ---- adding ---- */

static bool is_chain(const char *s)
{
    return strlen(s) == IMAGE_CHAIN && strspn(s, "0123456789abcdef") == IMAGE_CHAIN;
}

/* The helper says what a layer is called, and an archive may have taken the helper over. Templates,
 * which the operator adds, share layers by that name. Any client can import a snapshot: it has
 * layers of its own, which no chain id refers to. */
static int take_layers(struct keeper *k, struct image *im, const struct keeper_commit *m,
                       struct err *e)
{
    bool shared = m->name[0] != '\0';
    const char *chain;
    uint32_t at = 0;

    for (unsigned i = 0; (chain = wire_strv_next(&m->layers, &at)) != NULL; i++) {
        const struct image_layer *known = shared && is_chain(chain) ? layer_find(k, chain) : NULL;
        struct image_layer *l = &im->layers[i];

        if (!is_chain(chain))
            return err_set(e, ERR_INVALID, "commit a template: layer %u has no chain id", i);
        if (known != NULL) {
            *l = *known;
            continue;
        }
        str_fmt(l->chain, sizeof(l->chain), "%s", shared ? chain : "");
        str_fmt(l->store, sizeof(l->store), "%s", im->id);
        l->index = i;
    }
    return 0;
}

static struct image *image_make(struct keeper *k, const char *id, const struct keeper_commit *m,
                                struct err *e)
{
    struct image *im;

    if (m->layers.count == 0 || m->layers.count > IMAGE_LAYERS_MAX) {
        err_set(e, ERR_INVALID, "commit a template: it must have 1 to %u layers", IMAGE_LAYERS_MAX);
        return NULL;
    }
    im = image_new(m->layers.count, m->settings.p, m->settings.len, e);
    if (im == NULL)
        return NULL;
    str_fmt(im->id, sizeof(im->id), "%s", id);
    snprintf(im->format, sizeof(im->format), "%.15s", m->format);
    im->bytes = m->bytes;
    im->files = m->files;
    im->created_ms = clock_real_ms();
    if (take_layers(k, im, m, e) == 0)
        return im;
    image_free(im);
    return NULL;
}

/* Changes the disk first, then the table in memory. */
static int set_name(struct keeper *k, const char *name, struct image *im, struct err *e)
{
    struct image_name *n = name_find(k, name);

    if (n == NULL && k->images->nnames >= IMAGE_TEMPLATES_MAX)
        return err_set(e, ERR_LIMIT, "there are %u templates, the maximum; delete one",
                       IMAGE_TEMPLATES_MAX);
    if (n == NULL)
        image_name_forget_lost(k, name);
    if (n == NULL)
        n = image_name_add(k->images, name);
    if (n == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (image_name_save(k->images, name, im->id, e) < 0) {
        if (n->image == NULL)
            image_name_del(k->images, n);
        return -1;
    }
    n->image = im;
    return 0;
}

int image_commit(struct keeper *k, const char *id, const struct keeper_commit *m, struct err *e)
{
    bool named = m->name[0] != '\0';
    struct image *im = named && image_check_name(m->name, e) < 0 ? NULL : image_make(k, id, m, e);
    char store[64];
    int r;

    if (im == NULL)
        return -1;
    image_store_name(id, store, sizeof(store));
    r = renameat(k->disk.fd, id, k->disk.fd, store) < 0 || fsync(k->disk.fd) < 0
            ? err_sys(e, "keep the disk of an import")
            : 0;
    for (unsigned i = 0; r == 0 && i < im->nlayers; i++) { /* all exist before a file names them */
        autofd int fd = layer_open(k, &im->layers[i], e);

        r = fd < 0 ? -1 : 0;
    }
    if (r == 0 && (r = image_save(k->images, im, e)) == 0) {
        list_add_tail(&k->images->versions, &im->link);
        r = named ? set_name(k, m->name, im, e) : snapshot_adopt(k, id, m->bytes, e);
        if (r == 0)
            log_info("%s %s is now version %s, %u layers", named ? "template" : "snapshot",
                     named ? m->name : id, id, im->nlayers);
    } else {
        image_free(im);
    }
    image_sweep(k); /* layers that existed, the old version of the name, or all of it */
    return r;
}

/* ---- names ---- */

int image_alias(struct keeper *k, const char *name, const char *alias, struct err *e)
{
    struct image_name *n = name_find(k, name), *other = name_find(k, alias);

    if (image_check_name(alias, e) < 0)
        return -1;
    if (strcmp(name, "base") == 0)
        return err_set(e, ERR_UNSUPPORTED, "template 'base' cannot have an alias");
    if (n == NULL)
        return err_set(e, ERR_NOT_FOUND, "no template '%s'", name);
    if (other != NULL && other->image != n->image)
        return err_set(e, ERR_CONFLICT,
                       "alias '%s' is the name of another template; delete that first", alias);
    return other != NULL ? 0 : set_name(k, alias, n->image, e);
}

static unsigned names_of(struct keeper *k, const struct image *im)
{
    struct image_name *n;
    unsigned count = 0;

    LIST_EACH (&k->images->names, n, struct image_name, link)
        count += n->image == im;
    return count;
}

/* Sandboxes and snapshots that use it. */
static unsigned users_of(struct keeper *k, const char *version, bool all)
{
    return sandbox_users(k, version, all) + snapshot_users(k, version);
}

int image_remove(struct keeper *k, const char *name, struct err *e)
{
    struct image_name *n = name_find(k, name);
    unsigned users;

    if (strcmp(name, "base") == 0)
        return err_set(e, ERR_CONFLICT, "template 'base' cannot be deleted");
    if (n == NULL && image_name_forget_lost(k, name)) {
        image_sweep(k);
        return 0;
    }
    if (n == NULL)
        return err_set(e, ERR_NOT_FOUND, "no template '%s'", name);
    users = users_of(k, n->image->id, false);
    if (users > 0 && names_of(k, n->image) == 1)
        return err_set(e, ERR_CONFLICT, "template '%s' is in use by %u sandbox%s or snapshot%s",
                       name, users, users == 1 ? "" : "es", users == 1 ? "" : "s");
    if (image_name_unlink(k->images, name, e) < 0)
        return -1;
    image_name_del(k->images, n);
    image_sweep(k);
    return 0;
}

size_t image_list(struct keeper *k,
                  void (*each)(struct keeper *k, uint32_t seq, const struct keeper_template *m),
                  uint32_t seq)
{
    struct image_name *n;

    LIST_EACH (&k->images->names, n, struct image_name, link) {
        const struct image *im = n->image;
        struct keeper_template m = {.name = n->name,
                                    .state = im->damaged ? "damaged" : "ready",
                                    .bytes = im->bytes,
                                    .files = im->files,
                                    .created_ms = im->created_ms,
                                    .id = im->id,
                                    .format = im->format,
                                    .layers = im->nlayers,
                                    .settings = {im->settings, im->settings_len}};

        each(k, seq, &m);
    }
    return k->images->nnames;
}

/* ---- removing ---- */

static bool is_used(struct keeper *k, const char *store, uint32_t index)
{
    struct image *im;

    if (users_of(k, store, true) > 0)
        return true; /* also if the file of that version is lost */
    LIST_EACH (&k->images->versions, im, struct image, link) {
        if (im->damaged)
            return true; /* it may have this layer */
        for (unsigned i = 0; i < im->nlayers; i++)
            if (strcmp(im->layers[i].store, store) == 0 &&
                (index == IMAGE_ANY_LAYER || im->layers[i].index == index))
                return true;
    }
    return false;
}

void image_sweep(struct keeper *k)
{
    struct image *im;
    char note[64];

    if (k->images == NULL || k->images->nlost > 0)
        return;
    LIST_EACH (&k->images->versions, im, struct image, link) {
        if (names_of(k, im) > 0 || users_of(k, im->id, true) > 0)
            continue;
        log_info("removing template version %s", im->id);
        if (im->damaged) {
            str_fmt(note, sizeof(note), "template-%s", im->id);
            quarantine_forget(k, note);
        }
        image_unlink(k->images, im);
        list_del(&im->link);
        image_free(im);
    }
    image_store_sweep(k, is_used);
}

void image_released(struct keeper *k, const char *version)
{
    struct image *im = image_find(k, version);
    bool any =
        version[0] == '\0'; /* of a damaged sandbox nothing told which: it may have used any */

    if (any || snapshot_is_version(version))
        snapshot_released(k, version);
    if (any || (im != NULL && names_of(k, im) == 0))
        image_sweep(k);
}

int image_open(struct keeper *k, struct err *e)
{
    k->images = calloc(1, sizeof(*k->images));
    if (k->images == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    list_init(&k->images->names);
    list_init(&k->images->versions);
    return image_store_load(k, e);
}
