/* name.c - sandboxes by a name within their key. The Cloudflare plane creates one when its name is
 * first used; other clients choose a name, or give the beginning of an id.
 *
 * A name belongs to a key, is stored in the sandbox's row and means at most one sandbox. Callers
 * that arrive while it is being created wait, in order; so one sandbox is created for any number of
 * callers. The name is free as soon as the deletion of its sandbox begins. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

struct name {
    struct map_node node;
    struct engine *g;
    struct box *box;
    struct list making;  /* in the engine's list, until the callers are answered... */
    struct list waiters; /* ...which these are */
    engine_prepare *prepare;
    char id[KEEPER_ID_MAX + 1]; /* of the new one that is being prepared */
    char text[];                /* KEY/NAME; no key has a slash in it */
};

#define TEXT_MAX (ENGINE_KEY_MAX + 1 + ENGINE_NAME_MAX)

static bool name_is_valid(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= ENGINE_NAME_MAX;
}

static struct name *find(struct engine *g, const char *key, const char *name)
{
    char text[TEXT_MAX + 1];
    struct map_node *n;

    if (!name_is_valid(name) || strlen(key) > ENGINE_KEY_MAX)
        return NULL;
    stpcpy(stpcpy(stpcpy(text, key), "/"), name);
    n = map_get(&g->names, text);
    return n == NULL ? NULL : CONTAINER_OF(n, struct name, node);
}

static struct name *name_new(struct engine *g, const char *key, const char *name)
{
    struct name *n = mem_zeroed(1, sizeof(*n) + strlen(key) + 1 + strlen(name) + 1);

    n->g = g;
    list_init(&n->making);
    list_init(&n->waiters);
    stpcpy(stpcpy(stpcpy(n->text, key), "/"), name);
    mem_put(&g->names, &n->node, n->text);
    return n;
}

static void name_free(struct name *n)
{
    list_del(&n->making);
    map_del(&n->g->names, &n->node);
    free(n);
}

/* ---- whose it is ---- */

void name_attach(struct box *b)
{
    struct name *n;

    if (*b->pub.name == '\0')
        return;
    n = find(b->g, b->pub.key, b->pub.name);
    if (n != NULL && n->box != NULL) {
        log_error("sandboxes %s and %s have one name; the second has none now", n->box->pub.id,
                  b->pub.id);
        return;
    }
    if (n == NULL)
        n = name_new(b->g, b->pub.key, b->pub.name);
    n->box = b;
    b->named = n;
}

/* on_prepared() handles one that ends before its waiters were answered. */
void name_detach(struct box *b)
{
    struct name *n = take_ptr(&b->named);

    if (n != NULL && list_empty(&n->making))
        name_free(n);
    else if (n != NULL)
        n->box = NULL;
}

void names_free(struct engine *g)
{
    struct name *n;

    while ((n = LIST_FIRST(&g->making, struct name, making)) != NULL) {
        engine_drop_waiters(&n->waiters);
        name_free(n);
    }
    map_free(&g->names);
}

/* ---- names that clients choose ---- */

/* Characters that need no quoting in a shell, a URL and SANDBOX:PATH. */
static bool is_choosable(const char *name)
{
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(name);

    return n > 0 && n <= ENGINE_CHOSEN_MAX && strspn(name, rest) == n &&
           strchr("-_.", name[0]) == NULL;
}

int name_check(struct engine *g, const char *key, const char *name, const struct box *b,
               struct err *e)
{
    struct name *n = find(g, key, name);

    if (!is_choosable(name))
        return err_set(
            e, ERR_INVALID,
            "name: '%.64s' is not 1 to %u letters, digits, '-', '_' and '.', the first a "
            "letter or a digit",
            name, ENGINE_CHOSEN_MAX);
    if (n == NULL || (b != NULL && n == b->named))
        return 0;
    if (n->box == NULL)
        return err_set(e, ERR_CONFLICT, "name: '%s' belongs to a sandbox that is being created",
                       name);
    return err_set(e, ERR_CONFLICT, "name: '%s' belongs to sandbox %s already", name,
                   n->box->pub.id);
}

void engine_create_named(struct engine *g, const struct create_opts *o, engine_sandbox_cb *cb,
                         void *arg)
{
    struct err e;

    if (name_check(g, o->key, o->name, NULL, &e) < 0)
        waiter_answer(waiter_new(g, NULL, cb, arg), "", &e);
    else
        engine_named(g, o->name, o, cb, arg);
}

/* ---- what planes ask ---- */

/* Waiters are answered before the name is visible to others. */
static bool is_made(const struct name *n)
{
    return n->box != NULL && list_empty(&n->making);
}

const struct sandbox *engine_by_name(struct engine *g, const char *key, const char *name)
{
    struct name *n = find(g, key, name);

    return n == NULL || !is_made(n) ? NULL : &n->box->pub;
}

static int fail_ambiguous(struct ref ref, struct err *e)
{
    autobuf struct buf ids = BUF_INIT(ENGINE_CANDIDATES_MAX * (ENGINE_ID_MAX + 16) + 64);
    struct engine *g = ref.engine;
    size_t n = strlen(ref.id), found = 0;

    for (size_t i = 0; i < g->norder; i++) {
        const char *id = g->order[i]->pub.id;

        if (strncmp(id, ref.id, n) != 0 || box_of(ref_with(ref, id)) == NULL)
            continue;
        if (found++ < ENGINE_CANDIDATES_MAX)
            buf_addf(&ids, "%s%s", found > 1 ? ", " : "", id);
    }
    if (found > ENGINE_CANDIDATES_MAX)
        buf_addf(&ids, " and %zu more", found - ENGINE_CANDIDATES_MAX);
    return err_set(e, ERR_CONFLICT, "'%.32s' is the beginning of several ids: %s", ref.id,
                   buf_cstr(&ids));
}

int engine_resolve(struct ref ref, const struct sandbox **ret, struct err *e)
{
    struct engine *g = ref.engine;
    struct box *b = box_find(g, ref.id), *only = NULL;
    size_t n = strlen(ref.id);

    /* also one that is being deleted: a second delete of it waits for the first */
    if (b != NULL && strcmp(b->pub.key, ref.key) == 0) {
        *ret = &b->pub;
        return 0;
    }
    *ret = engine_by_name(g, ref.key, ref.id);
    if (*ret != NULL || n == 0 || n >= ENGINE_ID_MAX)
        return 0;
    for (size_t i = 0; i < g->norder; i++) {
        if (strncmp(g->order[i]->pub.id, ref.id, n) != 0)
            continue;
        b = box_of(ref_with(ref, g->order[i]->pub.id));
        if (b != NULL && only != NULL)
            return fail_ambiguous(ref, e);
        only = b != NULL ? b : only;
    }
    *ret = only != NULL ? &only->pub : NULL;
    return 0;
}

/* Deletes take their turn: callers before them get the sandbox, callers after them must try
 * again. */
static void tell(struct engine *g, struct waiter *w, const char *id, const struct err *e)
{
    struct life_news news = {.waiter = w};
    struct box *b = e == NULL ? box_find(g, id) : NULL;

    list_del(&w->link);
    if (w->done != NULL && b != NULL)
        life_event(b, LIFE_DELETE, &news);
    else if (w->got != NULL && b != NULL && b->named == NULL)
        waiter_fail(w, ERR_GONE, "sandbox %s was deleted", id);
    else
        waiter_answer(w, id, w->done != NULL ? NULL : e);
}

static void on_prepared(void *arg, const struct err *e)
{
    struct name *n = arg;
    struct engine *g = n->g;
    char id[KEEPER_ID_MAX + 1];
    struct list waiters;
    struct waiter *w;

    strcpy(id, n->id);
    list_init(&waiters);
    while ((w = LIST_FIRST(&n->waiters, struct waiter, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(&waiters, &w->link);
    }
    list_del(&n->making);
    if (n->box == NULL)
        name_free(n);
    while ((w = LIST_FIRST(&waiters, struct waiter, link)) != NULL)
        tell(g, w, id, e);
}

static void on_made(void *arg, const struct sandbox *s, const struct err *e)
{
    struct name *n = arg;

    if (s != NULL)
        strcpy(n->id, s->id);
    if (s != NULL && n->prepare != NULL)
        n->prepare(n->g, s, on_prepared, n);
    else
        on_prepared(n, e);
}

void engine_named(struct engine *g, const char *name, const struct create_opts *o,
                  engine_sandbox_cb *cb, void *arg)
{
    struct waiter *w = waiter_new(g, NULL, cb, arg);
    struct create_opts named = *o;
    struct name *n = find(g, o->key, name);

    if (n != NULL && is_made(n)) {
        waiter_answer(w, n->box->pub.id, NULL);
        return;
    }
    if (n != NULL) {
        list_add_tail(&n->waiters, &w->link);
        return;
    }
    if (!name_is_valid(name)) {
        waiter_fail(w, ERR_INVALID, "name: expected 1 to %u bytes", ENGINE_NAME_MAX);
        return;
    }
    n = name_new(g, o->key, name);
    list_add_tail(&g->making, &n->making);
    list_add_tail(&n->waiters, &w->link);
    named.name = name;
    n->prepare = o->prepare;
    engine_create(g, &named, on_made, n);
}

void engine_delete_named(struct engine *g, const char *key, const char *name, engine_done_cb *cb,
                         void *arg)
{
    struct waiter *w = waiter_new(g, cb, NULL, arg);
    struct name *n = find(g, key, name);

    if (n == NULL)
        waiter_answer(w, "", NULL);
    else if (!is_made(n))
        list_add_tail(&n->waiters, &w->link);
    else
        tell(g, w, n->box->pub.id, NULL);
}
