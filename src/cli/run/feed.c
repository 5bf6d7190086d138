/* feed.c - see feed.h. */
#include "cli/run/feed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client/path.h"
#include "cli/run/remote.h"
#include "mem/mem.h"

struct feed {
    atomic_int users; /* the caller and the thread; the last one frees */
    struct server s;
    char path[PATH_TEXT_MAX], path_last[PATH_TEXT_MAX];
    int failed_fd;
    struct err failure; /* written before failed_fd is raised, read after */
    char chunk[FEED_CHUNK];
};

static int post(const struct feed *f, size_t n, bool last, struct err *e)
{
    struct call c = {
        .method = "POST", .path = last ? f->path_last : f->path, .body = f->chunk, .len = n};
    autoreply struct reply *r = NULL;
    json_t *answer = NULL;

    if (reply_open(&f->s, &c, &r, e) < 0 || reply_json(r, &answer, e) < 0)
        return -1;
    json_decref(answer);
    return 0;
}

/* Bytes that were refused (the queue is full, the daemon is away) are sent again. Bytes that
 * may have arrived are not; only the end of stdin may be sent twice. */
static int deliver(const struct feed *f, size_t n, bool last, struct err *e)
{
    uint64_t since = clock_mono_ms();
    unsigned delay = 2;

    while (post(f, n, last, e) < 0) {
        struct timespec pause = {.tv_nsec = (long)delay * 1000000};
        bool full = e->kind == ERR_LIMIT;

        if (n > 0 && client_is_broken(e))
            return err_wrap(e, "a part of stdin may be lost");
        if (!full && e->kind != ERR_UNAVAILABLE && e->kind != ERR_UNRESPONSIVE)
            return -1;
        if (!full && clock_mono_ms() - since > REMOTE_RETRY_MS)
            return -1;
        nanosleep(&pause, NULL);
        delay = delay < 100 ? delay * 2 : 100;
    }
    return 0;
}

ssize_t feed_read(char *to, size_t room, struct err *e)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t n;

    while ((n = read(STDIN_FILENO, to, room)) < 0 && (errno == EINTR || errno == EAGAIN))
        poll(&p, 1, -1);
    if (n < 0 && errno == EBADF)
        return 0;
    return n < 0 ? err_sys(e, "stdin") : n;
}

/* Until stdin ends, or the process does not read it any more. */
static int feed_all(struct feed *f, struct err *e)
{
    ssize_t n;

    do {
        n = feed_read(f->chunk, sizeof(f->chunk), e);
        if (n < 0)
            return -1;
        if (deliver(f, (size_t)n, n == 0, e) < 0)
            return -1;
    } while (n > 0);
    return 0;
}

static void *feeding(void *arg)
{
    struct feed *f = arg;
    struct err e = {0};
    uint64_t one = 1;

    /* A process that has ended or closed its stdin is like a closed pipe: no failure, the
     * exit status of the command counts. */
    if (feed_all(f, &e) < 0 && e.kind != ERR_GONE && e.kind != ERR_NOT_FOUND &&
        e.kind != ERR_CONFLICT) {
        f->failure = e;
        if (write(f->failed_fd, &one, sizeof(one)) < 0)
            abort(); /* cannot happen: the counter of our eventfd is 0 */
    }
    feed_free(f);
    return NULL;
}

void feed_free(struct feed *f)
{
    if (f == NULL || atomic_fetch_sub(&f->users, 1) > 1)
        return;
    close(f->failed_fd);
    free(f);
}

int feed_start(const struct server *s, const char *sandbox, const char *process, struct feed **ret,
               struct err *e)
{
    struct feed *f = mem_zeroed(1, sizeof(*f));
    pthread_t thread;
    int r;

    atomic_init(&f->users, 2);
    f->s = *s;
    path_process(f->path, sandbox, process, "stdin");
    path_process(f->path_last, sandbox, process, "stdin?close=1");
    f->failed_fd = eventfd(0, EFD_CLOEXEC);
    if (f->failed_fd < 0) {
        free(f);
        return err_sys(e, "eventfd");
    }
    r = pthread_create(&thread, NULL, feeding, f);
    if (r != 0) {
        close(f->failed_fd);
        free(f);
        errno = r;
        return err_sys(e, "pthread_create");
    }
    pthread_detach(thread);
    *ret = f;
    return 0;
}

int feed_fd(const struct feed *f)
{
    return f->failed_fd;
}

const struct err *feed_failure(const struct feed *f)
{
    return &f->failure;
}
