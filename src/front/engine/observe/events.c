/* events.c - the latest events, and their subscribers.
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
#include "json/write.h"

#define EVENTS_BLOCK 1000u
#define EVENTS_COUNTER "events"
#define EVENTS_DATA_MAX 4096u

struct ring {
    struct engine_event kept[ENGINE_EVENTS_KEPT]; /* at seq % ENGINE_EVENTS_KEPT; one
                                                   * block of memory each, under .key */
    uint64_t first, next;                         /* seqs kept: first <= s < next */
    uint64_t reserved;                            /* seqs below this are ours */
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
    g->ring = calloc(1, sizeof(*g->ring));
    if (g->ring == NULL)
        return err_set(e, ERR_INTERNAL, "events: out of memory");
    list_init(&g->ring->watches);
    if (reserve(g, e) < 0)
        return err_wrap(e, "events");
    g->ring->first = g->ring->next;
    return 0;
}

static void drop_first(struct ring *r)
{
    struct engine_event *ev = &r->kept[r->first++ % ENGINE_EVENTS_KEPT];

    free((void *)(uintptr_t)ev->key);
    *ev = (struct engine_event){0};
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
    while (g->ring->first < g->ring->next)
        drop_first(g->ring);
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

static void tell(struct loop_later *l)
{
    struct engine_watch *w = CONTAINER_OF(l, struct engine_watch, later);
    struct ring *r = w->g->ring;

    w->inside = true;
    if (w->next < r->first) {
        w->next = r->first;
        w->each(w->arg, &(struct engine_event){.seq = r->first - 1});
    }
    while (!w->ended && w->next < r->next) {
        const struct engine_event *ev = &r->kept[w->next++ % ENGINE_EVENTS_KEPT];

        if (ev->key == NULL || strcmp(ev->key, w->key) != 0)
            continue;
        w->each(w->arg, ev);
    }
    w->inside = false;
    if (w->ended)
        watch_free(w);
}

struct engine_watch *engine_watch(struct engine *g, const char *key, uint64_t after,
                                  void (*each)(void *arg, const struct engine_event *ev), void *arg)
{
    struct engine_watch *w = calloc(1, sizeof(*w));
    struct ring *r = g->ring;

    if (w == NULL)
        return NULL;
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

static int put(struct ring *r, const struct box *b, const char *kind, uint64_t at_ms,
               const char *data)
{
    struct engine_event *ev = &r->kept[r->next % ENGINE_EVENTS_KEPT];
    char *mem = malloc(strlen(b->pub.key) + strlen(b->pub.id) + strlen(data) + 3), *at = mem;

    if (mem == NULL)
        return -1;
    if (r->next - r->first == ENGINE_EVENTS_KEPT)
        drop_first(r);
    *ev = (struct engine_event){.seq = r->next, .at_ms = at_ms, .kind = kind};
    ev->key = keep(&at, b->pub.key);
    ev->sandbox = keep(&at, b->pub.id);
    ev->data = keep(&at, data);
    r->next++;
    return 0;
}

void events_add(struct engine *g, const struct box *b, const char *kind, const char *data)
{
    events_add_at(g, b, kind, clock_real_ms(), data);
}

static void add(struct engine *g, const struct box *b, const char *kind, uint64_t at_ms,
                const char *data)
{
    struct engine_watch *w;
    struct err e;

    if (g->ring->next >= g->ring->reserved && reserve(g, &e) < 0)
        log_error("%s", e.msg); /* goes on with numbers that a restart may use again */
    if (put(g->ring, b, kind, at_ms, data) < 0)
        return;
    LIST_EACH (&g->ring->watches, w, struct engine_watch, link)
        loop_defer(g->loop, &w->later, tell);
}

void events_add_at(struct engine *g, const struct box *b, const char *kind, uint64_t at_ms,
                   const char *data)
{
    at_ms = box_time(b, at_ms);
    logbook_event(b, kind, at_ms, data);
    add(g, b, kind, at_ms, data);
}

void events_lost(struct engine *g, const struct box *b)
{
    add(g, b, NULL, clock_real_ms(), "");
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
