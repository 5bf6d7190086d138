/* flush.c - makes rows durable before a client is answered, without blocking the loop.
 *
 * Rows are committed without a flush (store.h), and the keeper writes the record of a new sandbox
 * without a flush. One flush runs at a time, in a thread (loop/job.h) and at the same time in the
 * keeper, for all callers whose row was committed before it began; later callers get the next
 * flush. */
#include <stdlib.h>

#include "base/log.h"
#include "front/engine/internal.h"
#include "loop/job.h"
#include "mem/mem.h"

#define FLUSH_END_S 1 /* a disk that does not answer holds up our end for no longer */

struct flusher {
    struct engine *g;
    struct list waiting; /* for a flush that has not begun */
    struct list covered; /* by the one that runs */
    int parts;           /* of it that are not done: the thread, the keeper */
    bool failed;
    struct err e;
    struct loop_later later;
    struct job job;
    struct { /* the thread's while `job` is busy */
        bool failed;
        struct err e;
    } its;
};

static void begin(struct loop_later *l);

static void flush_run(struct job *w)
{
    struct flusher *f = CONTAINER_OF(w, struct flusher, job);

    f->its.failed = store_flush(f->g->o.store, &f->its.e) < 0;
}

/* ---- on the loop ---- */

static void move_all(struct list *from, struct list *to)
{
    struct flush *w;

    while ((w = LIST_FIRST(from, struct flush, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(to, &w->link);
    }
}

static void part_done(struct flusher *f, const struct err *e)
{
    struct list covered;
    struct flush *w;

    if (e != NULL) {
        log_error("%s", e->msg);
        f->failed = true;
        f->e = *e;
    }
    if (--f->parts > 0)
        return;
    list_init(&covered);
    move_all(&f->covered, &covered);
    if (!list_empty(&f->waiting))
        loop_defer(f->g->loop, &f->later, begin);
    while ((w = LIST_FIRST(&covered, struct flush, link)) != NULL) {
        list_del(&w->link);
        w->cb(w, f->failed ? &f->e : NULL);
    }
}

static void flush_done(struct job *w)
{
    struct flusher *f = CONTAINER_OF(w, struct flusher, job);

    part_done(f, f->its.failed ? &f->its.e : NULL);
}

static void on_records(void *arg, const void *msg, const struct err *e)
{
    (void)msg;
    part_done(arg, e);
}

static bool wants_records(const struct flusher *f)
{
    struct flush *w;

    LIST_EACH (&f->covered, w, struct flush, link)
        if (w->records)
            return true;
    return false;
}

/* After all events of this turn: what they commit is flushed at once. */
static void begin(struct loop_later *l)
{
    static const struct keeper_asker asker = {.last = on_records};
    struct flusher *f = CONTAINER_OF(l, struct flusher, later);
    struct keeper_flush ask = {0};

    if (f->parts > 0)
        return; /* the end of that one comes back here */
    move_all(&f->waiting, &f->covered);
    f->failed = false;
    f->parts = wants_records(f) ? 2 : 1;
    if (f->parts == 2)
        keeper_ask(f->g->keeper, KEEPER_FLUSH, &ask, &asker, f);
    job_start(f->g->loop, &f->job, flush_run, flush_done);
}

void flush_then(struct flusher *f, struct flush *w, flush_cb *cb)
{
    w->cb = cb;
    list_add_tail(&f->waiting, &w->link);
    loop_defer(f->g->loop, &f->later, begin);
}

/* ---- birth and death ---- */

static void release(struct job *w)
{
    free(CONTAINER_OF(w, struct flusher, job));
}

int flusher_new(struct engine *g, struct flusher **ret, struct err *e)
{
    struct flusher *f = mem_zeroed(1, sizeof(*f));

    f->g = g;
    f->job.lane = JOB_FLUSH;
    f->job.drop = release;
    list_init(&f->waiting);
    list_init(&f->covered);
    if (job_open(g->loop, JOB_FLUSH, e) < 0) {
        free(f);
        return err_wrap(e, "flushes");
    }
    *ret = f;
    return 0;
}

static void forget(struct list *l)
{
    struct flush *w;

    while ((w = LIST_FIRST(l, struct flush, link)) != NULL) {
        list_del(&w->link);
        if (w->drop != NULL)
            w->drop(w);
    }
}

void flusher_free(struct flusher *f)
{
    if (f == NULL)
        return;
    forget(&f->waiting);
    forget(&f->covered);
    loop_undefer(&f->later);
    if (job_settle_within(f->g->loop, &f->job, FLUSH_END_S))
        free(f);
    else
        log_warn("the disk does not answer"); /* the thread is in a flush, and keeps `f` */
}
