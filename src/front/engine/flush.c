/* flush.c - the disk has it before a client hears of it, and the loop does not wait.
 *
 * Rows are committed lightly (store.h), and of a new sandbox the keeper has written a
 * record without flushing it. One flush at a time runs, in a thread that does nothing else
 * (a job could wait behind jobs that hang), for everybody whose row was there when it
 * began; whoever comes meanwhile is in the next one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "front/engine/inside.h"

#define FLUSH_STACK (128u << 10)
#define FLUSH_END_S 1 /* a disk that does not answer holds up our end for no longer */

struct flusher {
    struct loop *loop;
    struct store *store;
    int records_fd;
    struct list waiting; /* for a flush that has not begun */
    struct list covered; /* by the one that runs */
    struct loop_later later;
    struct loop_io io;
    pthread_t thread;
    int go_fd, told_fd;
    bool busy;
    _Atomic bool stop;
    /* the thread's while busy: */
    bool records; /* what one of the covered wants */
    bool failed;
    struct err e;
};

static void begin(struct loop_later *l);

/* ---- in the thread ---- */

/* Both files are on their way to the disk before one of them is waited for. */
static int flush(struct flusher *f)
{
    if (f->records)
        sync_file_range(f->records_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (store_flush(f->store, &f->e) < 0)
        return -1;
    return f->records && fdatasync(f->records_fd) < 0 ? err_sys(&f->e, "records: flush") : 0;
}

static void *thread_main(void *arg)
{
    struct flusher *f = arg;
    eventfd_t n;

    while (eventfd_read(f->go_fd, &n) == 0 && !f->stop) {
        f->failed = flush(f) < 0;
        if (eventfd_write(f->told_fd, 1) < 0)
            break;
    }
    return NULL;
}

/* ---- on the loop ---- */

static void answer(struct flusher *f)
{
    struct list covered;
    struct flush *w;

    list_init(&covered);
    while ((w = LIST_FIRST(&f->covered, struct flush, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(&covered, &w->link);
    }
    f->busy = false;
    if (!list_empty(&f->waiting))
        loop_defer(f->loop, &f->later, begin);
    if (f->failed)
        log_error("%s", f->e.msg);
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
        answer(f);
}

/* After all events of this turn: what they commit is flushed at once. */
static void begin(struct loop_later *l)
{
    struct flusher *f = CONTAINER_OF(l, struct flusher, later);
    struct flush *w;

    if (f->busy)
        return; /* the end of that one comes back here */
    f->busy = true;
    f->records = false;
    while ((w = LIST_FIRST(&f->waiting, struct flush, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(&f->covered, &w->link);
        f->records |= w->records && f->records_fd >= 0;
    }
    if (eventfd_write(f->go_fd, 1) < 0) {
        f->failed = err_sys(&f->e, "ask for a flush") < 0;
        answer(f);
    }
}

void flush_then(struct flusher *f, struct flush *w, flush_cb *cb)
{
    w->cb = cb;
    list_add_tail(&f->waiting, &w->link);
    loop_defer(f->loop, &f->later, begin);
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
    loop_undefer(&f->later);
    loop_io_stop(f->loop, &f->io);
    drop_fd(&f->go_fd);
    drop_fd(&f->told_fd);
    free(f);
}

int flusher_new(const struct engine *g, struct flusher **ret, struct err *e)
{
    struct flusher *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_set(e, ERR_INTERNAL, "a thread for flushes: out of memory");
    f->loop = g->loop;
    f->store = g->o.store;
    f->records_fd = g->o.records_fd;
    list_init(&f->waiting);
    list_init(&f->covered);
    f->go_fd = eventfd(0, EFD_CLOEXEC);
    f->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->go_fd < 0 || f->told_fd < 0) {
        err_sys(e, "a thread for flushes");
        release(f);
        return -1;
    }
    if (loop_io_start(f->loop, &f->io, f->told_fd, EPOLLIN, on_told, e) < 0 ||
        start_thread(f, e) < 0) {
        release(f);
        return -1;
    }
    *ret = f;
    return 0;
}

static void drop_all(struct list *l)
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
    drop_all(&f->waiting);
    drop_all(&f->covered);
    f->stop = true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FLUSH_END_S;
    if (eventfd_write(f->go_fd, 1) < 0 || pthread_timedjoin_np(f->thread, NULL, &until) != 0)
        log_warn("the disk does not answer"); /* and what that thread uses stays */
    else
        release(f);
}
