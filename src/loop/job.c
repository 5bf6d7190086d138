/* job.c - see job.h. */
#include "loop/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/own.h"

#define JOB_FREE_LEAST (2u << 20) /* bytes; smaller blocks are freed at once */
#define JOB_END_S 1               /* seconds that loop_free() waits for a thread that hangs */

/* clang-format off */
static const struct {
    unsigned threads, share; /* at most: in all, and of one share */
    size_t stack;
} lanes[JOB_LANE_COUNT] = {
    [JOB_WORK]    = {JOB_THREADS_MAX, JOB_SHARE_MAX,         128u << 10},
    [JOB_CLOSE]   = {JOB_CLOSERS_MAX, JOB_CLOSERS_SHARE_MAX, 128u << 10},
    [JOB_STORE]   = {JOB_STORES_MAX,  JOB_STORES_SHARE_MAX,  512u << 10}, /* a TLS library needs more */
    [JOB_DISK]    = {JOB_DISKS_MAX,   JOB_DISKS_MAX,         1u << 20},
    [JOB_FLUSH]   = {1,               1,                     128u << 10},
    [JOB_RESERVE] = {1,               1,                     1u << 20},
};
/* clang-format on */

/* A thread that hangs when the loop ends keeps the pool alive; the process ends then anyway. */
struct lane {
    struct pool *pool;
    enum job_lane which;
    pthread_cond_t wake;
    struct list queue;
    pthread_t threads[JOB_THREADS_MAX];
    uint32_t shares[JOB_THREADS_MAX]; /* of what runs; the first nrunning */
    unsigned nthreads, nrunning, idle, queued;
};

struct pool {
    struct loop_guest guest; /* first */
    struct loop *loop;
    pthread_mutex_t lock;
    struct lane lanes[JOB_LANE_COUNT];
    struct list ended;
    unsigned given;      /* jobs that are not `done`; the loop's */
    pthread_cond_t over; /* a job has run; job_settle() */
    bool stop;
    int event_fd;
    struct loop_io io;
};

static void end(struct pool *p, struct job *w)
{
    w->over = true;
    pthread_cond_broadcast(&p->over);
    if (list_empty(&p->ended) && eventfd_write(p->event_fd, 1) < 0)
        log_error("eventfd: %s", strerror(errno));
    list_add_tail(&p->ended, &w->link);
}

static bool has_share(const struct lane *a, uint32_t share)
{
    unsigned n = 0;

    for (unsigned i = 0; share != 0 && i < a->nrunning; i++)
        n += a->shares[i] == share;
    return n < lanes[a->which].share;
}

/* The first whose share is not used up. */
static struct job *next_job(struct lane *a)
{
    struct job *w;

    LIST_EACH (&a->queue, w, struct job, link)
        if (has_share(a, w->share))
            return w;
    return NULL;
}

static void stop_running(struct lane *a, uint32_t share)
{
    for (unsigned i = 0; i < a->nrunning; i++)
        if (a->shares[i] == share) {
            a->shares[i] = a->shares[--a->nrunning];
            return;
        }
}

/* What waits for a share is taken by the thread whose job gives it back: it looks next. */
static void *thread_main(void *arg)
{
    struct lane *a = arg;
    struct pool *p = a->pool;
    struct job *w;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        uint32_t share;

        w = next_job(a);
        if (w == NULL) {
            a->idle++;
            pthread_cond_wait(&a->wake, &p->lock);
            a->idle--;
            continue;
        }
        list_del(&w->link);
        a->queued--;
        w->queued = false;
        a->shares[a->nrunning++] = share = w->share;
        pthread_mutex_unlock(&p->lock);
        w->run(w);
        pthread_mutex_lock(&p->lock);
        stop_running(a, share);
        end(p, w);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals go to the loop. A SIGPIPE caused by this thread stays pending in it. */
static bool add_thread(struct lane *l)
{
    pthread_attr_t a;
    sigset_t all, old;
    int r;

    if (l->nthreads >= lanes[l->which].threads)
        return false;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, lanes[l->which].stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&l->threads[l->nthreads], &a, thread_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&a);
    l->nthreads += r == 0;
    return r == 0;
}

static void on_event(struct loop_io *io, uint32_t events)
{
    struct pool *p = CONTAINER_OF(io, struct pool, io);
    struct list ended;
    struct job *w;
    eventfd_t n;

    (void)events;
    list_init(&ended);
    pthread_mutex_lock(&p->lock);
    if (eventfd_read(p->event_fd, &n) < 0 && errno != EAGAIN)
        log_error("eventfd: %s", strerror(errno));
    while ((w = LIST_FIRST(&p->ended, struct job, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(&ended, &w->link);
    }
    pthread_mutex_unlock(&p->lock);
    while ((w = LIST_FIRST(&ended, struct job, link)) != NULL) {
        list_del(&w->link);
        p->given--;
        w->busy = false;
        w->done(w);
    }
}

struct closing {
    struct job job;
    int fd;
};

static void close_run(struct job *w)
{
    own_close(&CONTAINER_OF(w, struct closing, job)->fd);
}

static void close_done(struct job *w)
{
    free(CONTAINER_OF(w, struct closing, job));
}

/* Nothing else can free this any more. */
static void drop_all(struct list *l)
{
    struct job *w;

    LIST_EACH (l, w, struct job, link)
        if (w->drop != NULL)
            w->drop(w);
}

static void pool_free(struct loop_guest *g)
{
    struct pool *p = CONTAINER_OF(g, struct pool, guest);
    struct timespec until;
    bool hangs = false;

    pthread_mutex_lock(&p->lock);
    p->stop = true;
    for (int i = 0; i < JOB_LANE_COUNT; i++)
        pthread_cond_broadcast(&p->lanes[i].wake);
    pthread_mutex_unlock(&p->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOB_END_S;
    for (int i = 0; i < JOB_LANE_COUNT; i++)
        for (unsigned t = 0; t < p->lanes[i].nthreads; t++)
            hangs |= pthread_timedjoin_np(p->lanes[i].threads[t], NULL, &until) != 0;
    loop_io_stop(p->loop, &p->io);
    if (hangs)
        return;
    for (int i = 0; i < JOB_LANE_COUNT; i++)
        drop_all(&p->lanes[i].queue);
    drop_all(&p->ended);
    drop_fd(&p->event_fd);
    free(p);
}

static struct pool *pool_of(struct loop *l)
{
    struct loop_guest **slot = loop_guest(l);
    struct pool *p =
        *slot == NULL ? calloc(1, sizeof(*p)) : CONTAINER_OF(*slot, struct pool, guest);
    struct err e;

    if (p == NULL || *slot != NULL)
        return p;
    *p = (struct pool){.guest.free = pool_free,
                       .loop = l,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .over = PTHREAD_COND_INITIALIZER,
                       .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    for (int i = 0; i < JOB_LANE_COUNT; i++) {
        p->lanes[i] =
            (struct lane){.pool = p, .which = (enum job_lane)i, .wake = PTHREAD_COND_INITIALIZER};
        list_init(&p->lanes[i].queue);
    }
    list_init(&p->ended);
    if (p->event_fd < 0 || loop_io_start(l, &p->io, p->event_fd, EPOLLIN, on_event, &e) < 0) {
        drop_fd(&p->event_fd);
        free(p);
        return NULL;
    }
    *slot = &p->guest;
    return p;
}

void job_start(struct loop *l, struct job *w, void (*run)(struct job *w),
               void (*done)(struct job *w))
{
    struct pool *p = pool_of(l);
    struct lane *a = p == NULL ? NULL : &p->lanes[w->lane];

    if (p == NULL)
        abort(); /* no eventfd: this process cannot work; the next front adopts everything */
    w->run = run;
    w->done = done;
    w->busy = true;
    w->over = false;
    p->given++;
    pthread_mutex_lock(&p->lock);
    if (a->queued < a->idle || add_thread(a) || a->nthreads > 0) {
        list_add_tail(&a->queue, &w->link);
        w->queued = true;
        a->queued++;
        pthread_cond_signal(&a->wake);
    } else {
        run(w);
        end(p, w);
    }
    pthread_mutex_unlock(&p->lock);
}

int job_open(struct loop *l, enum job_lane lane, struct err *e)
{
    struct pool *p = pool_of(l);
    struct lane *a = p == NULL ? NULL : &p->lanes[lane];

    if (p == NULL)
        return err_set(e, ERR_INTERNAL, "start threads: no memory, or no eventfd");
    pthread_mutex_lock(&p->lock);
    while (add_thread(a))
        continue;
    pthread_mutex_unlock(&p->lock);
    if (a->nthreads < lanes[lane].threads)
        return err_set(e, ERR_UNAVAILABLE, "start %u threads: the system allows only %u",
                       lanes[lane].threads, a->nthreads);
    return 0;
}

bool job_is_busy(struct loop *l)
{
    const struct loop_guest *g = *loop_guest(l);

    return g != NULL && CONTAINER_OF(g, const struct pool, guest)->given > 0;
}

bool job_is_awaited(struct loop *l)
{
    struct pool *p = pool_of(l);
    const struct lane *a = &p->lanes[JOB_WORK];
    bool awaited;

    pthread_mutex_lock(&p->lock);
    awaited = (a->queued > a->idle && a->nthreads == JOB_THREADS_MAX) ||
              (a->queued > 0 && !has_share(a, LIST_FIRST(&a->queue, struct job, link)->share));
    pthread_mutex_unlock(&p->lock);
    return awaited;
}

bool job_cancel(struct loop *l, struct job *w)
{
    struct pool *p = pool_of(l);
    bool queued;

    if (p == NULL || !w->busy)
        return false;
    pthread_mutex_lock(&p->lock);
    queued = w->queued;
    if (queued) {
        list_del(&w->link);
        p->lanes[w->lane].queued--;
        w->queued = w->busy = false;
        p->given--;
    }
    pthread_mutex_unlock(&p->lock);
    return queued;
}

void job_settle(struct loop *l, struct job *w)
{
    while (!job_settle_within(l, w, 3600))
        continue;
}

bool job_settle_within(struct loop *l, struct job *w, unsigned seconds)
{
    struct pool *p = pool_of(l);
    struct timespec until;
    bool over;

    if (p == NULL || !w->busy || job_cancel(l, w))
        return true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&p->lock);
    while (!w->over && pthread_cond_timedwait(&p->over, &p->lock, &until) == 0)
        continue;
    over = w->over;
    if (over) {
        list_del(&w->link);
        w->busy = false;
        p->given--;
    }
    pthread_mutex_unlock(&p->lock);
    return over;
}

struct freeing {
    struct job job;
    void *mem;
};

static void free_run(struct job *w)
{
    free(take_ptr(&CONTAINER_OF(w, struct freeing, job)->mem));
}

static void free_done(struct job *w)
{
    struct freeing *f = CONTAINER_OF(w, struct freeing, job);

    free(f->mem);
    free(f);
}

void job_free(struct loop *l, void *mem, size_t size, uint32_t share)
{
    struct freeing *f = size < JOB_FREE_LEAST ? NULL : calloc(1, sizeof(*f));

    if (f == NULL) {
        free(mem);
        return;
    }
    f->mem = mem;
    f->job.drop = free_done;
    f->job.share = share;
    job_start(l, &f->job, free_run, free_done);
}

void job_free_buf(struct loop *l, struct buf *b, uint32_t share)
{
    job_free(l, take_ptr(&b->mem), b->cap, share);
    buf_free(b);
}

void job_close(struct loop *l, int fd, uint32_t share)
{
    struct closing *c;

    if (fd < 0)
        return;
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort(); /* as above */
    c->fd = fd;
    c->job.drop = close_done;
    c->job.lane = JOB_CLOSE;
    c->job.share = share;
    job_start(l, &c->job, close_run, close_done);
}

/* FNV-1a. Two keys with one number have one share: unlikely, and then slower. */
uint32_t job_share(const char *key)
{
    uint32_t h = 2166136261u;

    if (key == NULL)
        return 0;
    for (; *key != '\0'; key++)
        h = (h ^ (unsigned char)*key) * 16777619u;
    return h != 0 ? h : 1;
}
