/* flush.c - makes rows durable before a client is answered, without blocking the loop.
 *
 * Rows are committed without a flush (store.h), and the keeper writes the record of a new sandbox
 * without a flush. One flush runs at a time, in a thread of its own (a job could wait for jobs that
 * hang) and at the same time in the keeper, for all callers whose row was committed before it
 * began; later callers get the next flush. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/log.h"
#include "base/own.h"
#include "front/engine/internal.h"

#define FLUSH_STACK (128u << 10)
#define FLUSH_END_S 1 /* a disk that does not answer holds up our end for no longer */

struct flusher {
    struct engine *g;
    struct list waiting; /* for a flush that has not begun */
    struct list covered; /* by the one that runs */
    int parts;           /* of it that are not done: the thread, the keeper */
    bool failed;
    struct err e;
    struct loop_later later;
    struct loop_io io;
    pthread_t thread;
    int go_fd, told_fd;
    _Atomic bool stop;
    struct { /* the thread's between `go` and `told` */
        bool failed;
        struct err e;
    } its;
};

static void begin(struct loop_later *l);

static void *thread_main(void *arg)
{
    struct flusher *f = arg;
    eventfd_t n;

    while (eventfd_read(f->go_fd, &n) == 0 && !f->stop) {
        f->its.failed = store_flush(f->g->o.store, &f->its.e) < 0;
        if (eventfd_write(f->told_fd, 1) < 0)
            break;
    }
    return NULL;
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

static void on_told(struct loop_io *io, uint32_t events)
{
    struct flusher *f = CONTAINER_OF(io, struct flusher, io);
    eventfd_t n;

    (void)events;
    if (eventfd_read(f->told_fd, &n) == 0)
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
    struct err e;

    if (f->parts > 0)
        return; /* the end of that one comes back here */
    move_all(&f->waiting, &f->covered);
    f->failed = false;
    f->parts = wants_records(f) ? 2 : 1;
    if (f->parts == 2)
        keeper_ask(f->g->keeper, KEEPER_FLUSH, &ask, &asker, f);
    if (eventfd_write(f->go_fd, 1) < 0) {
        err_sys(&e, "ask for a flush");
        part_done(f, &e);
    }
}

void flush_then(struct flusher *f, struct flush *w, flush_cb *cb)
{
    w->cb = cb;
    list_add_tail(&f->waiting, &w->link);
    loop_defer(f->g->loop, &f->later, begin);
}

/* ---- birth and death ---- */

static int start_thread(struct flusher *f, struct err *e)
{
    pthread_attr_t a;
    sigset_t all, old;

    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, FLUSH_STACK);
    sigfillset(&all); /* signals are the loop's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    errno = pthread_create(&f->thread, &a, thread_main, f);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&a);
    return errno != 0 ? err_sys(e, "a thread for flushes") : 0;
}

static void release(struct flusher *f)
{
    drop_fd(&f->go_fd);
    drop_fd(&f->told_fd);
    free(f);
}

int flusher_new(struct engine *g, struct flusher **ret, struct err *e)
{
    struct flusher *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_set(e, ERR_INTERNAL, "a thread for flushes: out of memory");
    f->g = g;
    list_init(&f->waiting);
    list_init(&f->covered);
    f->go_fd = eventfd(0, EFD_CLOEXEC);
    f->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->go_fd < 0 || f->told_fd < 0) {
        err_sys(e, "a thread for flushes");
        release(f);
        return -1;
    }
    if (loop_io_start(g->loop, &f->io, f->told_fd, EPOLLIN, on_told, e) < 0 ||
        start_thread(f, e) < 0) {
        loop_io_stop(g->loop, &f->io);
        release(f);
        return -1;
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
    struct timespec until;

    if (f == NULL)
        return;
    forget(&f->waiting);
    forget(&f->covered);
    loop_undefer(&f->later);
    loop_io_stop(f->g->loop, &f->io);
    f->stop = true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FLUSH_END_S;
    if (eventfd_write(f->go_fd, 1) < 0 || pthread_timedjoin_np(f->thread, NULL, &until) != 0)
        log_warn("the disk does not answer"); /* the thread is in a flush, and keeps `f` */
    else
        release(f);
}
