/* changes.c - see changes.h. */
#include "helper/watch/changes.h"

#include <stdlib.h>
#include <string.h>

struct held {
    struct list link;
    struct map_node node; /* in `last`, if `mapped` */
    bool mapped;
    enum change what;
    bool dir;
    bool half;  /* first half of a move, waits for `cookie` */
    bool shown; /* false: not reported */
    uint32_t cookie;
    uint64_t at_ms;
    uint64_t gone; /* changes.gone when no directory above was removed since */
    char *from;    /* of a move; points into text, or NULL */
    char text[];
};

static const char *const words[CHANGE_COUNT] = {
    [CHANGE_CREATE] = "create", [CHANGE_MODIFY] = "modify", [CHANGE_DELETE] = "delete",
    [CHANGE_ATTRIB] = "attrib", [CHANGE_MOVE] = "move",
};

void changes_init(struct changes *c, FILE *to, unsigned window_ms)
{
    *c = (struct changes){.to = to, .window_ms = window_ms};
    list_init(&c->held);
    map_init(&c->last);
}

static void unmap(struct changes *c, struct held *h)
{
    if (h->mapped)
        map_del(&c->last, &h->node);
    h->mapped = false;
}

static void drop(struct changes *c, struct held *h)
{
    unmap(c, h);
    list_del(&h->link);
    c->n--;
    free(h);
}

static void put_path(FILE *to, const char *path)
{
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++) {
        if (*p > ' ' && *p < 0x7f && *p != '%')
            putc(*p, to);
        else
            fprintf(to, "%%%02X", *p);
    }
}

static void say(struct changes *c, struct held *h)
{
    if (h->shown) {
        fprintf(c->to, "%s %c ", words[h->what], h->dir ? 'd' : 'f');
        put_path(c->to, h->text);
        if (h->from != NULL) {
            putc(' ', c->to);
            put_path(c->to, h->from);
        }
        putc('\n', c->to);
    }
    drop(c, h);
}

/* No second half came: it was moved out of the tree. */
static void half_is_over(struct changes *c, struct held *h)
{
    h->half = false;
    h->what = CHANGE_DELETE;
    c->left(c->arg, h->text, h->dir);
}

static struct held *hold(struct changes *c, enum change what, bool dir, const char *path,
                         const char *from, uint64_t now)
{
    size_t n = strlen(path) + 1, m = from != NULL ? strlen(from) + 1 : 0;
    struct held *h = calloc(1, sizeof(*h) + n + m);
    struct map_node *before;

    if (h == NULL)
        abort(); /* the front reports that the watch ended */
    c->gone += dir && (what == CHANGE_DELETE || what == CHANGE_MOVE);
    *h = (struct held){.what = what, .dir = dir, .shown = true, .at_ms = now, .gone = c->gone};
    memcpy(h->text, path, n);
    if (from != NULL)
        h->from = memcpy(h->text + n, from, m);
    list_add_tail(&c->held, &h->link);
    c->n++;
    before = map_get(&c->last, path);
    if (before != NULL)
        unmap(c, CONTAINER_OF(before, struct held, node));
    h->mapped = map_put(&c->last, &h->node, h->text) == 0;
    return h;
}

static bool is_above(const char *dir, const char *path)
{
    size_t n = strlen(dir);

    return strncmp(dir, path, n) == 0 && path[n] == '/';
}

/* Whether the path of `b` is still the same file: no directory above it went away since. */
static bool is_same(struct changes *c, struct held *b)
{
    for (struct list *l = b->link.next; b->gone != c->gone && l != &c->held; l = l->next) {
        const struct held *h = CONTAINER_OF(l, struct held, link);

        if (h->dir && (h->what == CHANGE_DELETE || h->what == CHANGE_MOVE) &&
            (is_above(h->text, b->text) || (h->from != NULL && is_above(h->from, b->text))))
            return false;
    }
    b->gone = c->gone;
    return true;
}

bool changes_add(struct changes *c, enum change what, bool dir, const char *path, uint64_t now)
{
    struct map_node *before = map_get(&c->last, path);
    struct held *b = before == NULL ? NULL : CONTAINER_OF(before, struct held, node);

    if (b != NULL && b->what == what && b->dir == dir && !b->half && is_same(c, b))
        return false;
    hold(c, what, dir, path, NULL, now);
    return true;
}

void changes_from(struct changes *c, uint32_t cookie, bool dir, bool shown, const char *path,
                  uint64_t now)
{
    struct held *h = hold(c, CHANGE_DELETE, dir, path, NULL, now);

    h->half = true;
    h->shown = shown;
    h->cookie = cookie;
}

static struct held *half_of(struct changes *c, uint32_t cookie)
{
    struct held *h;

    LIST_EACH (&c->held, h, struct held, link)
        if (h->half && h->cookie == cookie)
            return h;
    return NULL;
}

bool changes_to(struct changes *c, uint32_t cookie, bool dir, bool shown, bool out,
                const char *path, uint64_t now)
{
    struct held *h = half_of(c, cookie);

    if (h == NULL)
        return false;
    if (out)
        c->left(c->arg, h->text, dir);
    if (shown && h->shown) {
        hold(c, CHANGE_MOVE, dir, path, h->text, now);
        drop(c, h);
        return true;
    }
    if (shown)
        changes_add(c, CHANGE_CREATE, dir, path, now);
    h->half = false;
    return true;
}

void changes_part(struct changes *c, uint32_t cookie)
{
    struct held *h = half_of(c, cookie);

    if (h != NULL)
        h->half = false;
}

void changes_flush(struct changes *c)
{
    struct held *h;

    LIST_EACH (&c->held, h, struct held, link) {
        if (h->half)
            half_is_over(c, h);
        say(c, h);
    }
}

void changes_lost(struct changes *c, const char *why)
{
    fprintf(c->to, "overflow %s\n", why);
}

int changes_tell(struct changes *c, uint64_t now)
{
    struct held *h;
    int wait = -1;

    LIST_EACH (&c->held, h, struct held, link) {
        unsigned room = h->half ? CHANGES_MOVE_MS : c->window_ms;
        uint64_t age = now - h->at_ms;

        if (age < room && c->n <= CHANGES_MAX) {
            wait = (int)(room - age);
            break;
        }
        if (h->half)
            half_is_over(c, h);
        say(c, h);
    }
    fflush(c->to);
    return wait;
}
