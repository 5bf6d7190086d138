/* base.c - see base.h. */
#include "helper/archive/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/tree/path.h"
#include "wire/archive.h"

#define READ_STEP (1u << 20)

struct known {
    struct layer_file is;
    const char *path; /* points into the text; is.len bytes, no NUL */
    bool there;       /* the other root has it, and of the same type */
};

struct base {
    char *text;
    size_t len, room;
    struct known *list;
    uint32_t *slots; /* place in the list plus 1; 0: free */
    size_t n, nslots;
};

static uint64_t hash_of(const char *path, size_t len)
{
    uint64_t h = 14695981039346656037ull;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)path[i]) * 1099511628211ull;
    return h ^ (h >> 29);
}

/* The slot of that path, or the free one where it belongs. */
static uint32_t *slot_of(struct base *b, const char *path, size_t len)
{
    size_t i = hash_of(path, len) & (b->nslots - 1);

    while (b->slots[i] != 0) {
        const struct known *k = &b->list[b->slots[i] - 1];

        if (k->is.len == len && memcmp(k->path, path, len) == 0)
            break;
        i = (i + 1) & (b->nslots - 1);
    }
    return &b->slots[i];
}

static int read_text(struct base *b, int fd, struct err *e)
{
    ssize_t n = 1;

    while (n > 0) {
        if (b->room - b->len < READ_STEP) {
            size_t room = b->room * 2 + READ_STEP;
            char *more = room > 2 * (size_t)ARCHIVE_LIST_MAX ? NULL : realloc(b->text, room);

            if (more == NULL)
                return err_set(e, ERR_TOO_LARGE, "the template has too many files to compare with");
            b->text = more;
            b->room = room;
        }
        n = read(fd, b->text + b->len, READ_STEP);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            return err_sys(e, "read the list of the template");
        else
            b->len += (size_t)n;
    }
    return 0;
}

/* The next entry at *at; false at the end or if the rest is none. */
static bool next_known(const struct base *b, size_t *at, struct known *ret)
{
    if (b->len - *at < sizeof(ret->is))
        return false;
    memcpy(&ret->is, b->text + *at, sizeof(ret->is));
    *at += sizeof(ret->is);
    if (ret->is.len >= PATH_ROOM || b->len - *at < ret->is.len)
        return false;
    ret->path = b->text + *at;
    ret->there = false;
    *at += ret->is.len;
    return true;
}

static int make_index(struct base *b, struct err *e)
{
    struct known k;
    size_t at = 0;

    while (next_known(b, &at, &k))
        b->n++;
    if (at != b->len || b->n == 0)
        return err_set(e, ERR_INTERNAL, "the list of the template is incomplete");
    for (b->nslots = 1024; b->nslots < 2 * b->n; b->nslots *= 2)
        continue;
    b->list = calloc(b->n, sizeof(*b->list));
    b->slots = calloc(b->nslots, sizeof(*b->slots));
    if (b->list == NULL || b->slots == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    at = 0;
    for (size_t i = 0; i < b->n; i++) {
        next_known(b, &at, &b->list[i]);
        *slot_of(b, b->list[i].path, b->list[i].is.len) = (uint32_t)i + 1;
    }
    return 0;
}

struct base *base_read(int fd, struct err *e)
{
    struct base *b = calloc(1, sizeof(*b));

    if (b == NULL)
        err_set(e, ERR_INTERNAL, "out of memory");
    else if (read_text(b, fd, e) == 0 && make_index(b, e) == 0)
        return b;
    base_free(b);
    return NULL;
}

void base_free(struct base *b)
{
    if (b == NULL)
        return;
    free(b->text);
    free(b->list);
    free(b->slots);
    free(b);
}

void base_digest(const struct base *b, char out[SHA256_HEX])
{
    struct layer_digest d;
    char path[PATH_ROOM];

    layer_digest_begin(&d);
    for (size_t i = 0; i < b->n; i++) {
        memcpy(path, b->list[i].path, b->list[i].is.len);
        path[b->list[i].is.len] = '\0';
        layer_digest_add(&d, &b->list[i].is, path);
    }
    sha256_hex(&d.hash, out);
}

bool base_has(struct base *b, const struct layer_entry *en)
{
    uint32_t slot = *slot_of(b, en->path, en->is.len);
    struct known *k = slot == 0 ? NULL : &b->list[slot - 1];

    if (k == NULL)
        return false;
    k->there = (k->is.mode & S_IFMT) == (en->is.mode & S_IFMT);
    return memcmp(&k->is, &en->is, sizeof(k->is)) == 0;
}

static bool is_below(const struct known *k, const struct known *dir)
{
    return dir != NULL && k->is.len > dir->is.len && k->path[dir->is.len] == '/' &&
           memcmp(k->path, dir->path, dir->is.len) == 0;
}

/* A directory is listed right before its content. */
int base_gone(struct base *b, struct buf *to, uint64_t *ret_n, struct err *e)
{
    const struct known *last = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct known *k = &b->list[i];

        if (k->there || is_below(k, last))
            continue;
        last = k;
        buf_add(to, k->path, k->is.len);
        buf_addc(to, '\0');
        ++*ret_n;
    }
    return to->failed ? err_set(e, ERR_TOO_LARGE, "too many files of the template were removed")
                      : 0;
}
