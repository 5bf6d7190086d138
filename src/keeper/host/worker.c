/* worker.c - see worker.h. */
#include "keeper/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "keeper/host.h"

struct queue {
    struct work *first, **last;
};

enum { LANE_LONG, LANE_SHORT, LANE_RESERVE, LANES };

/* File-scope: one per process, and the threads outlive every other structure. */
static struct {
    pthread_mutex_t lock;
    struct lane {
        pthread_cond_t wake;
        struct queue todo;
        int threads;
    } lanes[LANES];
    struct queue finished;
    size_t given; /* whose `done` has not been called */
    struct loop_io io;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .lanes = {{PTHREAD_COND_INITIALIZER, {NULL, &w.lanes[LANE_LONG].todo.first}, WORKER_THREADS},
                 {PTHREAD_COND_INITIALIZER, {NULL, &w.lanes[LANE_SHORT].todo.first}, 1},
                 {PTHREAD_COND_INITIALIZER, {NULL, &w.lanes[LANE_RESERVE].todo.first}, 1}},
       .finished = {NULL, &w.finished.first},
       .io.fd = -1};

static void push(struct queue *q, struct work *one)
{
    one->next = NULL;
    *q->last = one;
    q->last = &one->next;
}

static struct work *pop(struct queue *q)
{
    struct work *one = q->first;

    if (one == NULL)
        return NULL;
    q->first = one->next;
    if (q->first == NULL)
        q->last = &q->first;
    return one;
}

static void *worker_main(void *arg)
{
    const uint64_t one = 1;
    struct lane *lane = arg;

    pthread_mutex_lock(&w.lock);
    for (;;) {
        struct work *job = pop(&lane->todo);

        if (job == NULL) {
            pthread_cond_wait(&lane->wake, &w.lock);
            continue;
        }
        pthread_mutex_unlock(&w.lock);
        job->run(job);
        pthread_mutex_lock(&w.lock);
        push(&w.finished, job);
        if (write(w.io.fd, &one, sizeof(one)) < 0)
            continue; /* the counter is at its maximum: the loop is awake anyway */
    }
    return NULL;
}

static void finish(struct loop_io *io, uint32_t events)
{
    struct work *job;
    uint64_t n;

    (void)events;
    if (read(io->fd, &n, sizeof(n)) < 0)
        return;
    for (;;) {
        pthread_mutex_lock(&w.lock);
        job = pop(&w.finished);
        w.given -= job != NULL;
        pthread_mutex_unlock(&w.lock);
        if (job == NULL)
            return;
        job->done(job);
    }
}

int worker_open(struct keeper *k, struct err *e)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), r = 0;
    sigset_t all, old;

    if (fd < 0)
        return err_sys(e, "create an eventfd");
    if (loop_io_start(k->loop, &w.io, fd, EPOLLIN, finish, e) < 0)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < w.lanes[l].threads && r == 0; i++) {
            pthread_t t;

            r = pthread_create(&t, NULL, worker_main, &w.lanes[l]);
            if (r == 0)
                pthread_detach(t);
        }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r == 0 ? 0 : err_set(e, ERR_INTERNAL, "start a worker: %s", strerror(r));
}

static void give(struct lane *lane, struct work *job)
{
    pthread_mutex_lock(&w.lock);
    push(&lane->todo, job);
    w.given++;
    pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&w.lock);
}

void worker_give(struct work *job)
{
    give(&w.lanes[LANE_LONG], job);
}

void worker_give_short(struct work *job)
{
    give(&w.lanes[LANE_SHORT], job);
}

void worker_give_reserve(struct work *job)
{
    give(&w.lanes[LANE_RESERVE], job);
}

bool worker_is_busy(void)
{
    bool busy;

    pthread_mutex_lock(&w.lock);
    busy = w.given > 0;
    pthread_mutex_unlock(&w.lock);
    return busy;
}
