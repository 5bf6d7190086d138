/* file.c - an answer whose body is a part of a file.
 *
 * A thread sends it from the page cache to the socket with sendfile(2) and waits for
 * pages that are not in the cache. The thread has its own fd of the socket, so the
 * connection may end at any time: then the socket is shut down, and closed when the
 * thread is done with it. If the file became shorter the connection is cut, since the
 * length was promised. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/sendfile.h>

#include "base/own.h"
#include "http/conn.h"
#include "loop/job.h"
#include "mem/mem.h"

#define FILE_PIECE (1u << 20) /* one system call */
#define FILE_TURN (16u << 20) /* then the thread serves other jobs */

/* The thread waits so long for a fast reader, which has room again before the loop would
 * notice; for a slow one the loop waits. */
#define FILE_PATIENCE_MS 2

enum file_end { FILE_MORE, FILE_BLOCKED, FILE_WHOLE, FILE_CUT };

struct http_file {
    struct job job;
    struct loop *loop;
    struct http_conn *conn; /* NULL: it is gone */
    int fd, sock;
    off_t at;
    uint64_t left;
    enum file_end end; /* how the last turn of the thread ended */
};

/* Whether the socket has room again soon. Else errno is EAGAIN. */
static bool has_room_soon(const struct http_file *f)
{
    struct pollfd p = {.fd = f->sock, .events = POLLOUT};
    bool room = !job_is_awaited(f->loop) && poll(&p, 1, FILE_PATIENCE_MS) > 0 &&
                (p.revents & (POLLERR | POLLHUP)) == 0;

    errno = EAGAIN;
    return room;
}

static void send_run(struct job *j)
{
    struct http_file *f = CONTAINER_OF(j, struct http_file, job);
    uint64_t sent = 0;

    f->end = FILE_MORE;
    while (f->left > 0 && (sent < FILE_TURN || !job_is_awaited(f->loop))) {
        size_t want = f->left < FILE_PIECE ? (size_t)f->left : FILE_PIECE;
        ssize_t n = sendfile(f->sock, f->fd, &f->at, want);

        if (n < 0 && (errno == EINTR || (errno == EAGAIN && has_room_soon(f))))
            continue;
        if (n <= 0) {
            f->end = n < 0 && errno == EAGAIN ? FILE_BLOCKED : FILE_CUT;
            return;
        }
        f->left -= (uint64_t)n;
        sent += (uint64_t)n;
    }
    if (f->left == 0)
        f->end = FILE_WHOLE;
}

static void close_run(struct job *j)
{
    struct http_file *f = CONTAINER_OF(j, struct http_file, job);

    drop_fd(&f->fd);
    drop_fd(&f->sock);
}

static void close_done(struct job *j)
{
    free(CONTAINER_OF(j, struct http_file, job));
}

static void file_end(struct http_file *f)
{
    if (f->conn != NULL)
        f->conn->file = NULL;
    f->job.drop = close_done;
    f->job.lane = JOB_CLOSE;
    job_start(f->loop, &f->job, close_run, close_done);
}

void http_file_drop(struct http_conn *c)
{
    struct http_file *f = c->file;

    if (f == NULL)
        return;
    shutdown(f->sock, SHUT_RDWR); /* the thread sees it at once */
    f->conn = NULL;
    c->file = NULL;
    f->job.drop = close_done;
    if (!f->job.busy || job_cancel(f->loop, &f->job))
        file_end(f);
}

static void send_done(struct job *j)
{
    struct http_file *f = CONTAINER_OF(j, struct http_file, job);
    struct http_conn *c = f->conn;

    if (c == NULL || c->broken) {
        file_end(f);
    } else if (f->end == FILE_WHOLE) {
        file_end(f);
        http_reply_sent(&c->req);
    } else if (f->end == FILE_CUT) {
        http_conn_break(c);
    } else {
        c->blocked = f->end == FILE_BLOCKED;
        if (c->blocked)
            http_conn_deadline(c, &c->send_due_ns, HTTP_SEND_MS);
        http_conn_kick(c);
    }
}

void http_file_step(struct http_conn *c)
{
    struct http_file *f = c->file;

    if (f == NULL || f->job.busy || c->blocked || c->broken || c->out.len > 0)
        return;
    c->send_due_ns = 0; /* now the disk may be slow, not the peer */
    job_start(f->loop, &f->job, send_run, send_done);
}

void http_reply_file(struct http_req *r, int status, const char *type, int fd, uint64_t at,
                     uint64_t length, uint32_t share)
{
    struct http_conn *c = http_conn_of(r);
    int sock;

    http_reply_begin_length(r, status, type, length);
    r->active = false; /* the handler has answered */
    if (c->broken || r->reply != REPLY_LENGTH || length == 0) {
        job_close(http_loop(r), fd, share);
        http_reply_sent(r);
        return;
    }
    sock = fcntl(http_fd(r), F_DUPFD_CLOEXEC, 3);
    if (sock < 0) {
        job_close(http_loop(r), fd, share);
        http_conn_break(c);
        return;
    }
    c->file = mem_zeroed(1, sizeof(*c->file));
    *c->file = (struct http_file){.job.share = share,
                                  .loop = http_loop(r),
                                  .conn = c,
                                  .fd = fd,
                                  .sock = sock,
                                  .at = (off_t)at,
                                  .left = length};
    r->reply = REPLY_FILE;
}
