/* job.c - see job.h. */
#include "loop/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/log.h"
#include "base/own.h"

#define JOB_STACK (128u << 10)
#define JOB_END_S 1 /* seconds that loop_free() waits for a thread that hangs */

/* A thread that hangs when the loop ends keeps the pool alive; the process ends then anyway. */
struct pool {
    struct loop_guest guest; /* first */
    struct loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list queue, ended;
    pthread_t threads[JOB_THREADS_MAX];
    unsigned nthreads, idle, queued;
    bool stop;
    int event_fd;
    struct loop_io io;
};

static void end(struct pool *p, struct job *w)
{
    if (list_empty(&p->ended) && eventfd_write(p->event_fd, 1) < 0)
        log_error("eventfd: %s", strerror(errno));
    list_add_tail(&p->ended, &w->link);
}

static void *thread_main(void *arg)
{
    struct pool *p = arg;
    struct job *w;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        w = LIST_FIRST(&p->queue, struct job, link);
        if (w == NULL) {
            p->idle++;
            pthread_cond_wait(&p->wake, &p->lock);
            p->idle--;
            continue;
        }
        list_del(&w->link);
        p->queued--;
        w->queued = false;
        pthread_mutex_unlock(&p->lock);
        w->run(w);
        pthread_mutex_lock(&p->lock);
        end(p, w);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals go to the loop. A SIGPIPE caused by this thread stays pending in it. */
static bool add_thread(struct pool *p)
{
    pthread_attr_t a;
    sigset_t all, old;
    int r;

    if (p->nthreads >= JOB_THREADS_MAX)
        return false;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, JOB_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&p->threads[p->nthreads], &a, thread_main, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&a);
    p->nthreads += r == 0;
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
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOB_END_S;
    for (unsigned i = 0; i < p->nthreads; i++)
        hangs |= pthread_timedjoin_np(p->threads[i], NULL, &until) != 0;
    loop_io_stop(p->loop, &p->io);
    if (hangs)
        return;
    drop_all(&p->queue);
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
                       .wake = PTHREAD_COND_INITIALIZER,
                       .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    list_init(&p->queue);
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

    if (p == NULL)
        abort(); /* no eventfd: this process cannot work; the next front adopts everything */
    w->run = run;
    w->done = done;
    w->busy = true;
    pthread_mutex_lock(&p->lock);
    if (p->queued < p->idle || add_thread(p) || p->nthreads > 0) {
        list_add_tail(&p->queue, &w->link);
        w->queued = true;
        p->queued++;
        pthread_cond_signal(&p->wake);
    } else {
        run(w);
        end(p, w);
    }
    pthread_mutex_unlock(&p->lock);
}

bool job_is_awaited(struct loop *l)
{
    struct pool *p = pool_of(l);
    bool awaited;

    pthread_mutex_lock(&p->lock);
    awaited = p->queued > p->idle && p->nthreads == JOB_THREADS_MAX;
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
        p->queued--;
        w->queued = w->busy = false;
    }
    pthread_mutex_unlock(&p->lock);
    return queued;
}

void job_close(struct loop *l, int fd)
{
    struct closing *c;

    if (fd < 0)
        return;
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort(); /* as above */
    c->fd = fd;
    c->job.drop = close_done;
    job_start(l, &c->job, close_run, close_done);
}
