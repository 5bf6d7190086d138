/* events.c - the latest events of each key, and their subscribers.
 *
 * Numbers increase for the life of the state directory. They are taken from the store in blocks, so
 * an event costs no disk flush; a restart skips the rest of a block, which a client sees as a gap
 * and never as a repetition. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/internal.h"
#include "mem/mem.h"
#include "json/write.h"

#define EVENTS_BLOCK 1000u
#define EVENTS_COUNTER "events"
#define EVENTS_DATA_MAX 4096u

/* What is kept of one key's events: no key drives out those of another. */
struct shelf {
    struct map_node node;
    struct quota_user *user;
    struct engine_event
        *kept[ENGINE_EVENTS_KEPT]; /* a ring, in the order of their numbers; one block
                                                    * of memory each */
    size_t at, n;                  /* the oldest; how many */
    uint64_t lost;                 /* number of the last one that was dropped */
    char key[];
};

struct ring {
    struct map shelves;
    uint64_t first, next; /* numbers of this start: first <= n < next */
    uint64_t reserved;    /* numbers below this are ours */
    struct list watches;
};

struct engine_watch {
    struct list link;
    struct engine *g;
    char key[ENGINE_KEY_MAX + 1];
    uint64_t next;
    bool inside, ended;
    struct loop_later later;
    void (*each)(void *arg, const struct engine_event *ev);
    void *arg;
};

static int reserve(struct engine *g, struct err *e)
{
    uint64_t first;

    if (store_reserve(g->o.store, EVENTS_COUNTER, EVENTS_BLOCK, &first, e) < 0)
        return -1;
    g->ring->reserved = first + EVENTS_BLOCK;
    if (g->ring->next < first)
        g->ring->next = first;
    return 0;
}

int events_new(struct engine *g, struct err *e)
{
    g->ring = mem_zeroed(1, sizeof(*g->ring));
    list_init(&g->ring->watches);
    map_init(&g->ring->shelves);
    if (reserve(g, e) < 0)
        return err_wrap(e, "events");
    g->ring->first = g->ring->next;
    return 0;
}

static uint64_t size_of(const struct engine_event *ev)
{
    return sizeof(*ev) + strlen(ev->key) + strlen(ev->sandbox) + strlen(ev->data) + 3;
}

static struct engine_event *oldest(const struct shelf *s)
{
    return s->n > 0 ? s->kept[s->at] : NULL;
}

static void drop_oldest(struct shelf *s)
{
    struct engine_event *ev = oldest(s);

    quota_drop(s->user, &(struct quotas){{[QUOTA_events] = size_of(ev)}});
    s->lost = ev->seq;
    s->at = (s->at + 1) % ENGINE_EVENTS_KEPT;
    s->n--;
    free(ev);
}

static struct shelf *shelf_of(const struct ring *r, const char *key)
{
    struct map_node *n = map_get(&r->shelves, key);

    return n == NULL ? NULL : CONTAINER_OF(n, struct shelf, node);
}

static struct shelf *shelf_new(struct engine *g, const char *key)
{
    struct shelf *s = mem_zeroed(1, sizeof(*s) + strlen(key) + 1);

    strcpy(s->key, key);
    s->lost = g->ring->first - 1;
    s->user = quota_user(g->o.quotas, key);
    mem_put(&g->ring->shelves, &s->node, s->key);
    return s;
}

static void shelves_free(struct map *m)
{
    for (size_t i = 0; i < m->nslots; i++)
        while (m->slots[i] != NULL) {
            struct shelf *s = CONTAINER_OF(m->slots[i], struct shelf, node);

            while (s->n > 0)
                drop_oldest(s);
            map_del(m, &s->node);
            free(s);
        }
    map_free(m);
}

void events_free(struct engine *g)
{
    struct engine_watch *w;

    if (g->ring == NULL)
        return;
    LIST_EACH (&g->ring->watches, w, struct engine_watch, link) {
        loop_undefer(&w->later);
        free(w);
    }
    shelves_free(&g->ring->shelves);
    free(g->ring);
    g->ring = NULL;
}

/* ---- telling ---- */

static void watch_free(struct engine_watch *w)
{
    loop_undefer(&w->later);
    list_del(&w->link);
    free(w);
}

static const struct engine_event *nth(const struct shelf *s, size_t i)
{
    return s->kept[(s->at + i) % ENGINE_EVENTS_KEPT];
}

/* Nothing is added while a watch is told: what its callback causes comes later. */
static void tell(struct loop_later *l)
{
    struct engine_watch *w = CONTAINER_OF(l, struct engine_watch, later);
    struct ring *r = w->g->ring;
    const struct shelf *s = shelf_of(r, w->key);
    uint64_t lost;
    size_t i;

    w->inside = true;
    lost = s != NULL ? s->lost : r->first - 1;
    if (w->next <= lost) {
        w->next = lost + 1;
        w->each(w->arg, &(struct engine_event){.seq = lost});
    }
    for (i = s != NULL ? s->n : 0; i > 0 && nth(s, i - 1)->seq >= w->next; i--)
        ;
    for (; s != NULL && !w->ended && i < s->n; i++)
        w->each(w->arg, nth(s, i));
    w->next = r->next;
    w->inside = false;
    if (w->ended)
        watch_free(w);
}

struct engine_watch *engine_watch(struct engine *g, const char *key, uint64_t after,
                                  void (*each)(void *arg, const struct engine_event *ev), void *arg)
{
    struct engine_watch *w = mem_zeroed(1, sizeof(*w));
    struct ring *r = g->ring;

    *w = (struct engine_watch){.g = g, .each = each, .arg = arg};
    strncpy(w->key, key, ENGINE_KEY_MAX);
    w->next = after >= r->next ? r->next : after + 1;
    list_add_tail(&r->watches, &w->link);
    loop_defer(g->loop, &w->later, tell);
    return w;
}

void engine_unwatch(struct engine_watch *w)
{
    if (w == NULL)
        return;
    w->ended = true;
    if (!w->inside)
        watch_free(w);
}

/* ---- happening ---- */

static char *keep(char **at, const char *text)
{
    char *to = *at;

    *at = stpcpy(to, text) + 1;
    return to;
}

struct about { /* whose event it is */
    const char *key, *sandbox;
};

static void put(struct engine *g, const struct about *of, const char *kind, uint64_t at_ms,
                const char *data)
{
    struct shelf *s = shelf_of(g->ring, of->key);
    struct engine_event *ev =
        mem_zeroed(1, sizeof(*ev) + strlen(of->key) + strlen(of->sandbox) + strlen(data) + 3);
    char *at = (char *)(ev + 1);
    uint64_t most;

    if (s == NULL)
        s = shelf_new(g, of->key);
    *ev = (struct engine_event){.seq = g->ring->next++, .at_ms = at_ms, .kind = kind};
    ev->key = keep(&at, of->key);
    ev->sandbox = keep(&at, of->sandbox);
    ev->data = keep(&at, data);
    most = s->user != NULL ? s->user->most.of[QUOTA_events] : 0;
    quota_add(s->user, &(struct quotas){{[QUOTA_events] = size_of(ev)}});
    while (s->n == ENGINE_EVENTS_KEPT ||
           (s->n > 0 && most != 0 && s->user->used.of[QUOTA_events] > most))
        drop_oldest(s);
    s->kept[(s->at + s->n++) % ENGINE_EVENTS_KEPT] = ev;
}

void events_add(struct engine *g, const struct box *b, const char *kind, const char *data)
{
    events_add_at(g, b, kind, clock_real_ms(), data);
}

static void add(struct engine *g, const struct about *of, const char *kind, uint64_t at_ms,
                const char *data)
{
    struct engine_watch *w;
    struct err e;

    if (g->ring->next >= g->ring->reserved && reserve(g, &e) < 0)
        log_error("%s", e.msg); /* goes on with numbers that a restart may use again */
    put(g, of, kind, at_ms, data);
    LIST_EACH (&g->ring->watches, w, struct engine_watch, link)
        loop_defer(g->loop, &w->later, tell);
}

void events_add_at(struct engine *g, const struct box *b, const char *kind, uint64_t at_ms,
                   const char *data)
{
    at_ms = box_time(b, at_ms);
    logbook_event(b, kind, at_ms, data);
    add(g, &(struct about){b->pub.key, b->pub.id}, kind, at_ms, data);
}

void events_lost(struct engine *g, const struct box *b)
{
    add(g, &(struct about){b->pub.key, b->pub.id}, NULL, clock_real_ms(), "");
}

void events_say(struct engine *g, const struct box *b, const char *kind, const char *name,
                const char *value)
{
    autobuf struct buf data = BUF_INIT(EVENTS_DATA_MAX);
    struct json_w w;

    jw_init(&w, &data);
    jw_open(&w);
    jw_kstr(&w, name, value);
    jw_close(&w);
    events_add(g, b, kind, data.failed ? "{}" : buf_cstr(&data));
}

void engine_say(struct engine *g, const char *key, const char *sandbox, const char *kind,
                const char *data)
{
    add(g, &(struct about){key, sandbox}, kind, clock_real_ms(), data);
}

void engine_audit(struct ref ref, const char *by, const char *call)
{
    autobuf struct buf data = BUF_INIT(EVENTS_DATA_MAX);
    const struct box *b = box_of(ref);
    struct json_w w;

    jw_init(&w, &data);
    jw_open(&w);
    jw_kstr(&w, "by", by);
    jw_kstr(&w, "call", call);
    jw_close(&w);
    if (b != NULL && !data.failed)
        events_add(ref.engine, b, "sandbox.admin", buf_cstr(&data));
}
