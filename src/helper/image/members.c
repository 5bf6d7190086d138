/* members.c - see members.h. */
#include "helper/image/members.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/archive/tar.h"
#include "helper/call/call.h"
#include "helper/image/manifest.h"
#include "helper/image/spool.h"
#include "helper/tree/tree.h"

struct member {
    char name[MEMBERS_NAME_MAX];
    char link[MEMBERS_NAME_MAX]; /* its target, or "": docker stores equal layers once */
};

int members_detect(struct source *from, enum outer *ret, struct err *e)
{
    struct archive_entry *en;
    struct tar *t = calloc(1, sizeof(*t));
    bool docker = false, index = false, layout = false;
    char path[PATH_ROOM];
    int r = t == NULL ? err_set(e, ERR_INTERNAL, "out of memory") : tar_open(t, from, e);

    if (r < 0) {
        free(t);
        return -1;
    }
    while ((r = tar_next(t, &en, e)) > 0) {
        r = path_clean(archive_entry_pathname(en), "the name", path, e);
        if (r < 0)
            break;
        docker = docker || strcmp(path, "manifest.json") == 0;
        index = index || strcmp(path, "index.json") == 0;
        layout = layout || strcmp(path, "oci-layout") == 0;
    }
    tar_close(t);
    free(t);
    *ret = index && layout ? OUTER_OCI : docker ? OUTER_DOCKER : OUTER_ROOTFS;
    return r;
}

/* The target of a link as a name of the archive: "a/b" with target "../c/d" is "c/d". */
static int resolve(const char *path, const char *target, char out[MEMBERS_NAME_MAX], struct err *e)
{
    char joined[PATH_ROOM], clean[PATH_ROOM];
    size_t dir = (size_t)(path_name(path) - path);

    while (strncmp(target, "../", 3) == 0 && dir > 0) {
        target += 3;
        for (dir--; dir > 0 && path[dir - 1] != '/'; dir--)
            continue;
    }
    if (strlen(target) + dir >= MEMBERS_NAME_MAX)
        return err_set(e, ERR_INVALID, "'%.200s': the target of the link is too long", path);
    str_fmt(joined, sizeof(joined), "%.*s%s", (int)dir, path, target);
    if (path_clean(joined, "a link", clean, e) < 0)
        return -1;
    str_fmt(out, MEMBERS_NAME_MAX, "%s", clean);
    return 0;
}

static int add(struct members *m, struct tar *t, struct archive_entry *en, struct err *e)
{
    char path[PATH_ROOM], file[16];
    struct member *new = &m->list[m->n];
    autofd int fd = -1;
    const void *p;
    int64_t off;
    size_t n;
    int r;

    if (path_clean(archive_entry_pathname(en), "the name", path, e) < 0)
        return -1;
    if (archive_entry_filetype(en) == AE_IFDIR)
        return 0;
    if (m->n == MEMBERS_MAX || strlen(path) >= MEMBERS_NAME_MAX)
        return err_set(e, ERR_TOO_LARGE,
                       "the image archive has more than %u files, or names that are too long",
                       MEMBERS_MAX);
    for (unsigned i = 0; i < m->n; i++)
        if (strcmp(m->list[i].name, path) == 0)
            return err_set(e, ERR_INVALID, "'%.200s' is twice in the image archive", path);
    str_fmt(new->name, sizeof(new->name), "%s", path);
    m->n++;
    if (archive_entry_filetype(en) == AE_IFLNK && archive_entry_symlink(en) != NULL)
        return resolve(path, archive_entry_symlink(en), new->link, e);
    if (archive_entry_hardlink(en) != NULL)
        return resolve("", archive_entry_hardlink(en), new->link, e);
    if (archive_entry_filetype(en) != AE_IFREG)
        return err_set(e, ERR_INVALID, "'%.200s' in the image archive is not a regular file", path);
    str_fmt(file, sizeof(file), "%u", m->n - 1);
    fd = openat(m->dir, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return say_sys(e, "make", file);
    while ((r = tar_data(t, &p, &n, &off, e)) > 0)
        if (spool_write(fd, p, n, (uint64_t)off, path, e) < 0)
            return -1;
    if (r == 0 && ftruncate(fd, archive_entry_size(en)) < 0)
        return say_sys(e, "write", path);
    return r;
}

int members_extract(struct members *m, int dir, struct source *from, struct err *e)
{
    struct tar *t = calloc(1, sizeof(*t));
    struct archive_entry *en;
    int r;

    *m = (struct members){.dir = dir, .list = calloc(MEMBERS_MAX, sizeof(struct member))};
    r = t == NULL || m->list == NULL ? err_set(e, ERR_INTERNAL, "out of memory")
                                     : tar_open(t, from, e);
    if (r == 0) {
        while ((r = tar_next(t, &en, e)) > 0 && (r = add(m, t, en, e)) == 0)
            continue;
        tar_close(t);
    }
    free(t);
    return r;
}

void members_free(struct members *m)
{
    free(m->list);
    m->list = NULL;
}

static int find(const struct members *m, const char *name, unsigned *ret)
{
    for (unsigned hops = 0; hops < 2; hops++)
        for (unsigned i = 0; i < m->n; i++) {
            if (strcmp(m->list[i].name, name) != 0)
                continue;
            *ret = i;
            if (m->list[i].link[0] == '\0')
                return 0;
            name = m->list[i].link;
            break;
        }
    return -1;
}

int members_open(const struct members *m, const char *name, struct err *e)
{
    char file[16], clean[PATH_ROOM];
    unsigned at;
    int fd;

    if (path_clean(name, "the manifest's name", clean, e) < 0)
        return -1;
    if (find(m, clean, &at) < 0)
        return err_set(e, ERR_INVALID, "the image refers to '%.200s', which is not in the archive",
                       clean);
    str_fmt(file, sizeof(file), "%u", at);
    fd = openat(m->dir, file, O_RDWR | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open '%.200s'", clean) : fd;
}

int members_read(const struct members *m, const char *name, const char *digest, char **ret,
                 size_t *ret_len, struct err *e)
{
    autofd int fd = members_open(m, name, e);
    autofree char *text = NULL;
    char hex[SHA256_HEX];
    struct sha256 s;
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_sys(e, "'%.200s'", name);
    if (st.st_size > (off_t)MANIFEST_MAX)
        return err_set(e, ERR_TOO_LARGE, "'%.200s' is larger than %u bytes", name, MANIFEST_MAX);
    text = malloc((size_t)st.st_size + 1);
    if (text == NULL || pread(fd, text, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
        return err_sys(e, "read '%.200s'", name);
    text[st.st_size] = '\0';
    sha256_init(&s);
    sha256_add(&s, text, (size_t)st.st_size);
    sha256_hex(&s, hex);
    if (*digest != '\0' && strcmp(hex, digest) != 0)
        return err_set(e, ERR_INVALID, "'%.200s' has digest sha256:%s, not sha256:%s", name, hex,
                       digest);
    *ret_len = (size_t)st.st_size;
    *ret = take_ptr(&text);
    return 0;
}

static int find_named(const struct members *m, const char *name, unsigned *ret)
{
    char clean[PATH_ROOM];
    struct err ignored;

    return path_clean(name, "the manifest's name", clean, &ignored) < 0 ? -1 : find(m, clean, ret);
}

bool members_same(const struct members *m, const char *a, const char *b)
{
    unsigned at, other;

    return find_named(m, a, &at) == 0 && find_named(m, b, &other) == 0 && at == other;
}

void members_remove(const struct members *m, const char *name)
{
    char file[16];
    unsigned at;

    if (find_named(m, name, &at) < 0)
        return;
    str_fmt(file, sizeof(file), "%u", at);
    unlinkat(m->dir, file, 0);
}
