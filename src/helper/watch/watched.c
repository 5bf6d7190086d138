/* watched.c - see watched.h. */
#include "helper/watch/watched.h"

#include <stdlib.h>
#include <string.h>

static struct watched **slot(struct watches *ws, int wd)
{
    return &ws->slots[(unsigned)wd % ARRAY_LEN(ws->slots)];
}

struct watched *watched_find(struct watches *ws, int wd)
{
    struct watched *w = *slot(ws, wd);

    while (w != NULL && w->wd != wd)
        w = w->next;
    return w;
}

bool watched_is_above(const struct watched *w, const struct watched *of)
{
    while (of != NULL && of != w)
        of = of->parent;
    return of == w;
}

struct watched *watched_put(struct watches *ws, int wd, struct watched *parent, const char *name)
{
    struct watched *w = watched_find(ws, wd);
    char *copy;

    if (w != NULL && (w == ws->root || watched_is_above(w, parent)))
        return w; /* moving it below itself would make a cycle */
    copy = strdup(name);
    if (w == NULL && copy != NULL && ws->n < WATCHED_MAX && (w = calloc(1, sizeof(*w))) != NULL) {
        w->wd = wd;
        w->next = *slot(ws, wd);
        *slot(ws, wd) = w;
        list_init(&w->children);
        list_init(&w->link);
        ws->n++;
    }
    if (copy == NULL || w == NULL) {
        free(copy);
        return NULL;
    }
    free(w->name);
    w->name = copy;
    w->out = false;
    w->parent = parent;
    list_del(&w->link);
    if (parent != NULL)
        list_add_tail(&parent->children, &w->link);
    else
        ws->root = w;
    return w;
}

struct watched *watched_child(const struct watched *w, const char *name, bool out)
{
    struct watched *c, *last = NULL;

    LIST_EACH (&w->children, c, struct watched, link)
        if (c->out == out && strcmp(c->name, name) == 0)
            last = c;
    return last;
}

struct watched *watched_out(struct watched *w, const char *name)
{
    struct watched *c = watched_child(w, name, false);

    if (c != NULL)
        c->out = true;
    return c;
}

static void forget(struct watches *ws, struct watched *w)
{
    struct watched **at = slot(ws, w->wd);

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    list_del(&w->link);
    ws->n--;
    if (ws->root == w)
        ws->root = NULL;
    free(w->name);
    free(w);
}

void watched_drop(struct watches *ws, struct watched *w, void (*each)(void *arg, int wd), void *arg)
{
    struct watched *top = w->parent;

    /* goes down to a leaf, removes it, and goes up again: no recursion at any depth */
    for (struct watched *at = w; at != top;) {
        struct watched *child = LIST_FIRST(&at->children, struct watched, link), *up = at->parent;

        if (child != NULL) {
            at = child;
            continue;
        }
        if (each != NULL)
            each(arg, at->wd);
        forget(ws, at);
        if (at == w)
            return;
        at = up;
    }
}

/* Dropping one also drops everything below, so each slot is searched again from its start. */
void watched_drop_unmet(struct watches *ws, void (*each)(void *arg, int wd), void *arg)
{
    for (size_t i = 0; i < ARRAY_LEN(ws->slots); i++) {
        struct watched *w = ws->slots[i];

        while (w != NULL) {
            if (w->met || w == ws->root) {
                w = w->next;
            } else {
                watched_drop(ws, w, each, arg);
                w = ws->slots[i];
            }
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(ws->slots); i++)
        for (struct watched *w = ws->slots[i]; w != NULL; w = w->next)
            w->met = false;
}

int watched_path(const struct watched *w, const char *name, char out[PATH_ROOM])
{
    size_t at = PATH_ROOM - 1, n = strlen(name);

    if (n >= PATH_ROOM)
        return -1;
    out[at] = '\0';
    at -= n;
    memcpy(out + at, name, n);
    for (; w != NULL && w->parent != NULL; w = w->parent) {
        n = strlen(w->name);
        if (at < n + 1 || w->out)
            return -1;
        if (out[at] != '\0')
            out[--at] = '/';
        at -= n;
        memcpy(out + at, w->name, n);
    }
    memmove(out, out + at, PATH_ROOM - at);
    return 0;
}
