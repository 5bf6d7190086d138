/* loop.c - see loop.h. */
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"

#define LOOP_BATCH 64
#define LOOP_SIGNALS 32
#define LOOP_TELL_MS 10000 /* a log line about a long hold at most this often */

struct loop {
    int epfd, sigfd;
    bool stopped;
    uint64_t now_ns;
    struct epoll_event batch[LOOP_BATCH];
    int nbatch, at;           /* the events of this turn, and which one is being served */
    struct loop_timer **heap; /* 1-based */
    size_t ntimers, cap;
    struct list laters;
    struct loop_io sigio;
    sigset_t sigs;
    struct loop_guest *guest;
    bool measured;
    uint64_t turn_us, mark_us; /* processor time at the start of this turn, and of this callback */
    uint64_t told_ns;
    const char *doing;
    struct loop_times times;
    struct {
        void (*cb)(void *arg, int signo);
        void *arg;
    } handlers[LOOP_SIGNALS + 1];
};

int loop_new(struct loop **ret, struct err *e)
{
    struct loop *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return err_set(e, ERR_INTERNAL, "event loop: out of memory");
    l->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epfd < 0) {
        free(l);
        return err_sys(e, "epoll_create1");
    }
    l->sigfd = -1;
    sigemptyset(&l->sigs);
    list_init(&l->laters);
    l->now_ns = clock_mono_ns();
    *ret = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (l == NULL)
        return;
    if (l->guest != NULL)
        l->guest->free(l->guest);
    drop_fd(&l->sigfd);
    drop_fd(&l->epfd);
    free(l->heap);
    free(l);
}

uint64_t loop_now_ns(const struct loop *l)
{
    return l->now_ns;
}

struct loop_guest **loop_guest(struct loop *l)
{
    return &l->guest;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

/* ---- how long callbacks take ---- */

static uint64_t processor_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return clock_ns_of(&t) / 1000u;
}

void loop_measure(struct loop *l)
{
    l->measured = true;
    l->turn_us = l->mark_us = processor_us();
}

const struct loop_times *loop_times(const struct loop *l)
{
    return &l->times;
}

uint64_t loop_spent_us(const struct loop *l)
{
    return l->measured ? processor_us() - l->mark_us : 0;
}

void loop_doing(struct loop *l, const char *what)
{
    l->doing = what;
}

static void tell_long(struct loop *l, uint64_t us)
{
    if (l->told_ns != 0 && l->now_ns < l->told_ns + LOOP_TELL_MS * 1000000ull)
        return;
    l->told_ns = l->now_ns;
    log_warn("the event loop was held for %llu ms (%s): other requests waited",
             (unsigned long long)us / 1000u, l->doing != NULL ? l->doing : "no request");
}

/* A callback has returned. */
static void end_hold(struct loop *l)
{
    uint64_t now, us;

    if (!l->measured)
        return;
    now = processor_us();
    us = now - l->mark_us;
    l->mark_us = now;
    histogram_add(&l->times.holds, us);
    if (us > l->times.longest_hold_us)
        l->times.longest_hold_us = us;
    if (us > LOOP_HOLD_MS * 1000u)
        tell_long(l, us);
    l->doing = NULL;
}

int loop_io_start(struct loop *l, struct loop_io *io, int fd, uint32_t events,
                  void (*cb)(struct loop_io *io, uint32_t events), struct err *e)
{
    struct epoll_event ev = {.events = events, .data.ptr = io};

    if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
        return err_sys(e, "watch fd %d", fd);
    io->fd = fd;
    io->events = events;
    io->cb = cb;
    return 0;
}

void loop_io_set(struct loop *l, struct loop_io *io, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = io};

    if (io->fd < 0 || io->cb == NULL || io->events == events)
        return;
    io->events = events;
    /* Cannot fail for an fd that is in the set. */
    epoll_ctl(l->epfd, EPOLL_CTL_MOD, io->fd, &ev);
}

void loop_io_stop(struct loop *l, struct loop_io *io)
{
    if (io->cb == NULL || io->fd < 0)
        return;
    epoll_ctl(l->epfd, EPOLL_CTL_DEL, io->fd, NULL);
    io->fd = -1;
    io->cb = NULL;
    for (int i = l->at + 1; i < l->nbatch; i++)
        if (l->batch[i].data.ptr == io)
            l->batch[i].data.ptr = NULL;
}

static void place(struct loop *l, struct loop_timer *t, size_t slot)
{
    l->heap[slot] = t;
    t->slot = slot;
}

static void sift_up(struct loop *l, size_t i)
{
    struct loop_timer *t = l->heap[i];

    for (; i > 1 && l->heap[i / 2]->due_ns > t->due_ns; i /= 2)
        place(l, l->heap[i / 2], i);
    place(l, t, i);
}

static void sift_down(struct loop *l, size_t i)
{
    struct loop_timer *t = l->heap[i];

    for (;;) {
        size_t c = 2 * i;

        if (c > l->ntimers)
            break;
        if (c < l->ntimers && l->heap[c + 1]->due_ns < l->heap[c]->due_ns)
            c++;
        if (l->heap[c]->due_ns >= t->due_ns)
            break;
        place(l, l->heap[c], i);
        i = c;
    }
    place(l, t, i);
}

static int heap_room(struct loop *l)
{
    size_t cap = l->cap ? l->cap * 2 : 16;
    struct loop_timer **heap;

    if (l->ntimers + 1 < l->cap)
        return 0;
    heap = realloc(l->heap, cap * sizeof(struct loop_timer *));
    if (heap == NULL)
        return -1;
    l->heap = heap;
    l->cap = cap;
    return 0;
}

int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t after_ms,
                   void (*cb)(struct loop_timer *t))
{
    loop_timer_stop(l, t);
    if (heap_room(l) < 0)
        return -1;
    t->due_ns = clock_mono_ns() + after_ms * 1000000u;
    t->cb = cb;
    l->ntimers++;
    place(l, t, l->ntimers);
    sift_up(l, l->ntimers);
    return 0;
}

void loop_timer_stop(struct loop *l, struct loop_timer *t)
{
    size_t i = t->slot;
    struct loop_timer *last;

    if (i == 0)
        return;
    t->slot = 0;
    last = l->heap[l->ntimers--];
    if (last == t)
        return;
    place(l, last, i);
    sift_up(l, i);
    sift_down(l, last->slot);
}

void loop_defer(struct loop *l, struct loop_later *d, void (*cb)(struct loop_later *d))
{
    d->cb = cb;
    if (d->queued)
        return;
    d->queued = true;
    list_add_tail(&l->laters, &d->link);
}

void loop_undefer(struct loop_later *d)
{
    if (!d->queued)
        return;
    d->queued = false;
    list_del(&d->link);
}

static void signal_ready(struct loop_io *io, uint32_t events)
{
    struct loop *l = CONTAINER_OF(io, struct loop, sigio);
    struct signalfd_siginfo si;

    (void)events;
    while (l->sigfd >= 0 && read(l->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
        if (si.ssi_signo <= LOOP_SIGNALS && l->handlers[si.ssi_signo].cb != NULL)
            l->handlers[si.ssi_signo].cb(l->handlers[si.ssi_signo].arg, (int)si.ssi_signo);
}

int loop_signal(struct loop *l, int signo, void (*cb)(void *arg, int signo), void *arg,
                struct err *e)
{
    int fd;

    if (signo < 1 || signo > LOOP_SIGNALS)
        return err_set(e, ERR_INTERNAL, "signal %d is out of range", signo);
    sigaddset(&l->sigs, signo);
    if (sigprocmask(SIG_BLOCK, &l->sigs, NULL) < 0)
        return err_sys(e, "block signal %d", signo);
    fd = signalfd(l->sigfd, &l->sigs, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_sys(e, "signalfd");
    l->handlers[signo].cb = cb;
    l->handlers[signo].arg = arg;
    if (l->sigfd >= 0)
        return 0;
    l->sigfd = fd;
    return loop_io_start(l, &l->sigio, fd, EPOLLIN, signal_ready, e);
}

static int wait_ms(const struct loop *l, int timeout_ms)
{
    uint64_t now, ms;

    if (!list_empty(&l->laters))
        return 0;
    if (l->ntimers == 0)
        return timeout_ms;
    now = clock_mono_ns();
    if (l->heap[1]->due_ns <= now)
        return 0;
    ms = (l->heap[1]->due_ns - now + 999999u) / 1000000u;
    if (timeout_ms >= 0 && (uint64_t)timeout_ms < ms)
        return timeout_ms;
    return ms > 3600 * 1000 ? 3600 * 1000 : (int)ms;
}

/* Only callbacks queued before this point: one that defers itself again is called in
 * the next turn, after the sockets were served. */
static void run_laters(struct loop *l)
{
    struct list now;

    if (list_empty(&l->laters))
        return;
    now = l->laters;
    now.next->prev = now.prev->next = &now;
    list_init(&l->laters);
    while (!list_empty(&now)) {
        struct loop_later *d = CONTAINER_OF(now.next, struct loop_later, link);

        loop_undefer(d);
        d->cb(d);
        end_hold(l);
    }
}

int loop_turn(struct loop *l, int timeout_ms, struct err *e)
{
    int n = epoll_wait(l->epfd, l->batch, LOOP_BATCH, wait_ms(l, timeout_ms));

    if (n < 0 && errno != EINTR)
        return err_sys(e, "epoll_wait");
    l->now_ns = clock_mono_ns();
    l->nbatch = n < 0 ? 0 : n;
    if (l->measured)
        l->turn_us = l->mark_us = processor_us();
    for (l->at = 0; l->at < l->nbatch; l->at++) {
        struct loop_io *io = l->batch[l->at].data.ptr;

        if (io == NULL || io->cb == NULL)
            continue;
        io->cb(io, l->batch[l->at].events);
        end_hold(l);
    }
    l->nbatch = 0;
    while (l->ntimers > 0 && l->heap[1]->due_ns <= l->now_ns) {
        struct loop_timer *t = l->heap[1];

        loop_timer_stop(l, t);
        t->cb(t);
        end_hold(l);
    }
    run_laters(l);
    if (l->measured)
        histogram_add(&l->times.turns, l->mark_us - l->turn_us);
    return 0;
}

int loop_run(struct loop *l, struct err *e)
{
    l->stopped = false;
    while (!l->stopped)
        if (loop_turn(l, -1, e) < 0)
            return -1;
    return 0;
}
