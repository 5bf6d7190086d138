/* closer.c - see closer.h. */
#include "keeper/closer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "keeper/compat.h"

#define CLOSER_QUEUE 4096u   /* with more, the caller closes */
#define CLOSER_PILE 64       /* the kernel walks the pile for each mount put on it */
#define CLOSER_GATHER_MS 100 /* to collect a batch: its first sync does the work of all */

struct closing {
    int fd;
    atomic_int *done;
};

/* File-scope: one per process, and the thread outlives every other structure. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    struct closing queue[CLOSER_QUEUE];
    size_t n;
    bool running, busy;
    atomic_bool closing;
} c = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .wake = PTHREAD_COND_INITIALIZER,
       .idle = PTHREAD_COND_INITIALIZER};

static void close_one(const struct closing *j)
{
    own_close(&j->fd);
    if (j->done != NULL)
        atomic_store(j->done, 1);
}

/* Detached mounts without `done` are mounted on top of each other and closed with the lowest:
 * closing each alone would wait for an RCU grace period of its own. (Before Linux 6.15 nothing can
 * be mounted on a detached mount, and each is closed alone.) */
static void close_batch(const struct closing *batch, size_t n)
{
    int pile = -1, height = 0;

    for (size_t i = 0; i < n; i++) {
        bool on_it = batch[i].done == NULL && pile >= 0 &&
                     sys_move_mount(batch[i].fd, "", pile, "",
                                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;

        if (batch[i].done == NULL && pile < 0) {
            pile = batch[i].fd;
            continue;
        }
        close_one(&batch[i]);
        if (on_it && ++height == CLOSER_PILE) {
            drop_fd(&pile);
            height = 0;
        }
    }
    drop_fd(&pile);
}

static void *closer_main(void *arg)
{
    static struct closing batch[CLOSER_QUEUE];

    (void)arg;
    pthread_mutex_lock(&c.lock);
    for (;;) {
        size_t n;

        while (c.n == 0) {
            c.busy = false;
            pthread_cond_broadcast(&c.idle);
            pthread_cond_wait(&c.wake, &c.lock);
        }
        c.busy = true;
        pthread_mutex_unlock(&c.lock);
        poll(NULL, 0, CLOSER_GATHER_MS);
        pthread_mutex_lock(&c.lock);
        n = c.n;
        memcpy(batch, c.queue, n * sizeof(batch[0]));
        c.n = 0;
        pthread_mutex_unlock(&c.lock);
        atomic_store(&c.closing, true);
        close_batch(batch, n);
        atomic_store(&c.closing, false);
        pthread_mutex_lock(&c.lock);
    }
    return NULL;
}

int closer_open(struct keeper *k, struct err *e)
{
    sigset_t all, old;
    pthread_t t;
    int r;

    (void)k;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    r = pthread_create(&t, NULL, closer_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0)
        return err_set(e, ERR_INTERNAL, "start the closer: %s", strerror(r));
    pthread_detach(t);
    c.running = true;
    return 0;
}

bool closer_is_closing(void)
{
    return atomic_load(&c.closing);
}

void closer_close(int fd, atomic_int *done)
{
    struct closing j = {fd, done};
    bool queued;

    pthread_mutex_lock(&c.lock);
    queued = c.running && fd >= 0 && c.n < CLOSER_QUEUE;
    if (queued) {
        c.queue[c.n++] = j;
        pthread_cond_signal(&c.wake);
    }
    pthread_mutex_unlock(&c.lock);
    if (!queued)
        close_one(&j);
}

void closer_wait(void)
{
    pthread_mutex_lock(&c.lock);
    while (c.running && (c.n > 0 || c.busy))
        pthread_cond_wait(&c.idle, &c.lock);
    pthread_mutex_unlock(&c.lock);
}
