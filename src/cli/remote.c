/* remote.c - see remote.h. */
#include "cli/remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/event.h"
#include "cli/feed.h"
#include "cli/path.h"
#include "cli/sse.h"

#define STATUS_SIGNAL 128
#define EVENT_STREAM "text/event-stream"
#define RETRY_FIRST_MS 20
#define ID_SIZE 13 /* of a command: twelve letters, and a NUL */

struct remote {
    const struct server *s;
    const char *sandbox, *process;
    const char *session;       /* NULL, or that it is a command of */
    char cursor[SSE_NAME_MAX]; /* of the next byte wanted; "": from the first kept */
    bool follow;
    bool ours; /* we started it: signals go to it, and it ends when nobody reads it */
    unsigned signals_sent;
    struct buf piece;  /* of output, decoded */
    struct feed *feed; /* NULL: nothing to feed */
    bool stdin_lost;   /* a part of it, and with it the command */
    uint64_t heard_ms; /* when the server last said something */
    bool over;         /* nothing more will come */
    int status;
};

static int signal_fd = -1;

/* nohup, or a shell that starts something in the background. Blocked it would be told to
 * us all the same. */
static bool is_ignored(int signo)
{
    struct sigaction now;

    return sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

int remote_catch_signals(struct err *e)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!is_ignored(ours[i]))
            sigaddset(&set, ours[i]);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, "sigprocmask");
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    client_leave_when(signal_fd);
    return signal_fd < 0 ? err_sys(e, "signalfd") : 0;
}

/* The next signal somebody sent us, or 0. */
static int next_signal(void)
{
    struct signalfd_siginfo info;

    if (signal_fd < 0 || read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    client_hurry(true);
    return (int)info.ssi_signo;
}

bool remote_is_interrupted(void)
{
    return next_signal() != 0;
}

/* A command of a session has no signals: both mean that it is to stop. */
static const char *path_of(const struct remote *r, char out[PATH_TEXT_MAX], const char *what)
{
    return r->session != NULL ? path_session(out, r->sandbox, r->session, "interrupt")
                              : path_process(out, r->sandbox, r->process, what);
}

/* Best effort: a process that has just ended needs no signal any more. False: nobody
 * answered. */
static bool tell(const struct remote *r, const char *what, json_t *body)
{
    char path[PATH_TEXT_MAX];
    struct err e = {0};

    if (client_call(r->s, "POST", path_of(r, path, what), r->session != NULL ? NULL : body, NULL,
                    &e) < 0 &&
        e.kind != ERR_GONE && e.kind != ERR_NOT_FOUND && e.kind != ERR_CONFLICT)
        cmd_complain(NULL, "%s: %s", what, e.msg);
    json_decref(body);
    return !client_is_left(&e);
}

static bool kill_remote(const struct remote *r)
{
    return tell(r, "kill", json_pack("{s:i}", "grace_ms", 0));
}

/* The first is passed on and may be handled there; the second is meant, and ends us too
 * when there is nobody to pass it on. */
static int pass_signals(struct remote *r, struct err *e)
{
    int signo;

    while ((signo = next_signal()) != 0) {
        if (r->signals_sent++ == 0)
            tell(r, "signal", json_pack("{s:i, s:b}", "signal", signo, "tree", 1));
        else if (!kill_remote(r))
            return err_set(e, ERR_UNAVAILABLE, "interrupted; %s may still run in %s", r->process,
                           r->sandbox);
    }
    return 0;
}

/* Writes it all, and still hears Ctrl-C while the reader of our output sleeps.
 * Our stdout may be shared with others, so it is not made non-blocking: poll()
 * promises room for PIPE_BUF bytes, and no more is written at once. */
static int write_out(struct remote *r, int fd, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        struct pollfd fds[] = {{.fd = fd, .events = POLLOUT},
                               {.fd = r->ours ? signal_fd : -1, .events = POLLIN}};
        ssize_t w;

        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return err_sys(e, "poll");
        if (fds[1].revents != 0 && pass_signals(r, e) < 0)
            return -1;
        if (fds[0].revents == 0)
            continue;
        w = write(fd, p, n < 4096 ? n : 4096);
        if (w < 0 && errno != EINTR && errno != EAGAIN)
            return err_sys(e, "write to std%s", fd == STDOUT_FILENO ? "out" : "err");
        if (w > 0) {
            p += w;
            n -= (size_t)w;
        }
    }
    return 0;
}

/* Nobody wants the output any more: it ends, like the left side of a pipe. */
static int output_refused(struct remote *r, struct err *e)
{
    if (r->ours)
        kill_remote(r);
    if (e->sys != EPIPE)
        return -1;
    r->over = true;
    r->status = STATUS_SIGNAL + SIGPIPE;
    return 0;
}

static int on_output(struct remote *r, int fd, const char *data, size_t len, struct err *e)
{
    buf_clear(&r->piece);
    if (event_bytes(data, len, &r->piece, e) < 0)
        return -1;
    return write_out(r, fd, buf_data(&r->piece), r->piece.len, e) < 0 ? output_refused(r, e) : 0;
}

/* The code is 124 after a timeout and 128 and more after a signal already. */
static int on_exit_event(struct remote *r, json_t *j)
{
    json_t *code = json_object_get(j, "exit_code");

    r->over = true;
    r->status = (int)json_integer_value(code != NULL ? code : json_object_get(j, "code"));
    return 0;
}

static int on_json(struct remote *r, const char *event, json_t *j, struct err *e)
{
    json_t *error = json_object_get(j, "error");

    if (strcmp(event, "exit") == 0)
        return on_exit_event(r, j);
    if (strcmp(event, "end") == 0)
        r->over = true;
    if (strcmp(event, "truncated") == 0)
        fprintf(stderr, "cove: output was printed faster than it was read; a part is missing\n");
    if (strcmp(event, "error") == 0)
        return err_set(e, err_from_code(json_string_value(json_object_get(error, "code"))), "%s",
                       json_string_value(json_object_get(error, "message"))
                           ?: "the server gives no reason");
    return 0; /* started, and what later servers may add */
}

static int on_other(struct remote *r, const struct sse *s, const char *data, size_t len,
                    struct err *e)
{
    json_t *j = json_loadb(data, len, JSON_ALLOW_NUL, NULL);
    int ret;

    if (j == NULL)
        return err_set(e, ERR_INTERNAL, "an event '%s' that is not JSON", s->event);
    ret = on_json(r, s->event, j, e);
    json_decref(j);
    return ret;
}

static int on_event(void *arg, const struct sse *s, const char *data, size_t len, struct err *e)
{
    struct remote *r = arg;
    int ret;

    if (strcmp(s->event, "stdout") == 0)
        ret = on_output(r, STDOUT_FILENO, data, len, e);
    else if (strcmp(s->event, "stderr") == 0)
        ret = on_output(r, STDERR_FILENO, data, len, e);
    else
        ret = on_other(r, s, data, len, e);
    if (ret == 0 && s->id[0] != '\0')
        snprintf(r->cursor, sizeof(r->cursor), "%s", s->id);
    return ret;
}

/* Sleeps until the stream has something; signals and feeding are served meanwhile. */
static int wait_for_more(struct remote *r, const struct reply *reply, struct err *e)
{
    struct pollfd fds[] = {{.fd = reply_fd(reply), .events = POLLIN},
                           {.fd = r->ours ? signal_fd : -1, .events = POLLIN},
                           {.fd = r->feed != NULL ? feed_fd(r->feed) : -1, .events = POLLIN}};
    int n;

    do {
        n = poll(fds, 3, CLIENT_SILENCE_MS);
        if (n < 0 && errno != EINTR)
            return err_sys(e, "poll");
        if (n == 0) {
            err_set(e, ERR_UNAVAILABLE, "the server has fallen silent");
            e->sys = ECONNRESET;
            return -1;
        }
        if (n > 0 && fds[1].revents != 0 && pass_signals(r, e) < 0)
            return -1;
        if (n > 0 && fds[2].revents != 0) {
            *e = *feed_failure(r->feed);
            e->sys = 0; /* not to be mistaken for a break of this stream */
            r->stdin_lost = true;
            kill_remote(r);
            return -1;
        }
    } while (n < 0 || fds[0].revents == 0);
    return 0;
}

/* Reads one stream to its end, or until the command's. */
static int consume(struct remote *r, struct reply *reply, struct err *e)
{
    struct sse s;
    int ret = 0;

    sse_init(&s);
    while (ret == 0 && !r->over) {
        const char *p = NULL;
        size_t n = 0;
        enum reply_event ev = reply_read(reply, &p, &n, e);

        r->heard_ms = clock_mono_ms();
        if (ev == REPLY_DATA)
            ret = sse_feed(&s, p, n, on_event, r, e);
        else if (ev == REPLY_MORE)
            ret = wait_for_more(r, reply, e);
        else if (ev == REPLY_BROKEN)
            ret = -1;
        else { /* a daemon that drains ends its streams early */
            err_set(e, ERR_UNAVAILABLE, "the server ended the stream");
            e->sys = ECONNRESET;
            ret = -1;
        }
    }
    sse_free(&s);
    return ret;
}

/* Looks at the log from our cursor on. */
static int attach(struct remote *r, struct err *e)
{
    char rest[512], path[PATH_TEXT_MAX], target[PATH_TEXT_MAX];
    struct call c = {.method = "GET", .accept = EVENT_STREAM};
    autoreply struct reply *reply = NULL;
    json_t *unwanted = NULL;

    str_fmt(rest, sizeof(rest), "%s%s%s?%s", r->session != NULL ? "commands/" : "",
            r->session != NULL ? r->process : "", r->session != NULL ? "/output" : "logs",
            r->follow ? "follow=1" : "");
    if (r->session != NULL)
        path_session(path, r->sandbox, r->session, rest);
    else
        path_process(path, r->sandbox, r->process, rest);
    c.path = path_query(target, path, "since", r->cursor[0] != '\0' ? r->cursor : "0");
    if (reply_open(r->s, &c, &reply, e) < 0)
        return -1;
    if (!reply_is_sse(reply)) {
        if (reply_json(reply, &unwanted, e) < 0)
            return -1;
        json_decref(unwanted);
        return err_set(e, ERR_INTERNAL, "the server does not stream logs");
    }
    return consume(r, reply, e);
}

static bool may_pass(const struct err *e)
{
    return e->kind == ERR_UNAVAILABLE || e->kind == ERR_UNRESPONSIVE;
}

/* After a failure that may pass: a while, then 0; -1 when it was too long or somebody
 * interrupts. */
static int wait_for_server(const struct remote *r, int *delay_ms, struct err *e)
{
    struct pollfd p = {.fd = r->ours ? signal_fd : -1, .events = POLLIN};
    const char *why = clock_mono_ms() - r->heard_ms > REMOTE_RETRY_MS ? "gave up"
                      : poll(&p, 1, *delay_ms) > 0                    ? "interrupted"
                                                                      : NULL;

    *delay_ms = *delay_ms < 500 ? *delay_ms * 2 : 1000;
    if (why == NULL)
        return 0;
    e->sys = 0; /* it is not to be tried again */
    return err_wrap(e, "%s; %s may still run in %s", why, r->process, r->sandbox);
}

/* After a break: attach until the command is over or the server stays away. */
static int follow(struct remote *r, struct err *e)
{
    int delay_ms = RETRY_FIRST_MS;
    uint64_t heard_ms = r->heard_ms;

    while (!r->over && attach(r, e) < 0) {
        if (r->stdin_lost || !may_pass(e))
            return -1;
        if (r->heard_ms != heard_ms) /* it was back for a while */
            delay_ms = RETRY_FIRST_MS;
        heard_ms = r->heard_ms;
        if (wait_for_server(r, &delay_ms, e) < 0)
            return -1;
    }
    return 0;
}

/* Asks once. *ret stays NULL when there is no stream: the server may know the command from
 * the time before. */
static int ask(const struct remote *r, const struct call *c, bool again, struct reply **ret,
               struct err *e)
{
    autoreply struct reply *reply = NULL;
    json_t *started = NULL;

    if (reply_open(r->s, c, &reply, e) < 0)
        return -1;
    if (reply_is_sse(reply)) {
        *ret = take_ptr(&reply);
        return 0;
    }
    if (reply_json(reply, &started, e) < 0)
        return again && e->kind == ERR_CONFLICT ? 0 : -1;
    json_decref(started);
    return 0;
}

/* When the connection breaks before the answer nobody knows whether it was started; asking
 * again with the same id finds out, and cannot start it twice. */
static int ask_until_known(const struct remote *r, const struct call *c, struct reply **ret,
                           struct err *e)
{
    int delay_ms = RETRY_FIRST_MS;
    bool again = false;

    while (ask(r, c, again, ret, e) < 0) {
        again = again ? may_pass(e) : client_is_broken(e);
        if (!again || wait_for_server(r, &delay_ms, e) < 0)
            return -1;
    }
    return 0;
}

/* The call that starts a command owns its output: as long as this connection
 * stands the command waits for us and there is no gap. */
static int start(struct remote *r, json_t *request, struct err *e)
{
    char path[PATH_TEXT_MAX];
    struct call c = {.method = "POST",
                     .path = r->session != NULL ? path_session(path, r->sandbox, r->session, "exec")
                                                : path_sandbox(path, r->sandbox, "processes"),
                     .json = request,
                     .accept = EVENT_STREAM};
    autoreply struct reply *reply = NULL;

    if (ask_until_known(r, &c, &reply, e) < 0)
        return -1;
    if (r->session == NULL && json_is_true(json_object_get(request, "stdin")) &&
        feed_start(r->s, r->sandbox, r->process, &r->feed, e) < 0)
        return -1;
    return reply != NULL ? consume(r, reply, e) : 0;
}

static int name_it(char id[ID_SIZE], json_t *request, struct err *e)
{
    id_random(id, ID_SIZE - 1);
    if (json_object_set_new(request, "id", json_string(id)) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return 0;
}

static int run(const struct server *s, const char *sandbox, const char *session, json_t *request,
               struct err *e)
{
    char process[ID_SIZE];
    struct remote r = {.s = s,
                       .sandbox = sandbox,
                       .process = process,
                       .session = session,
                       .follow = true,
                       .ours = true,
                       .piece = BUF_INIT(SSE_EVENT_MAX),
                       .heard_ms = clock_mono_ms()};

    if (name_it(process, request, e) < 0)
        return -1;
    if ((start(&r, request, e) < 0 && !client_is_broken(e)) || follow(&r, e) < 0)
        r.status = -1;
    feed_free(r.feed);
    buf_free(&r.piece);
    return r.status;
}

int remote_run(const struct server *s, const char *sandbox, json_t *request, struct err *e)
{
    if (json_object_set_new(request, "stdin", json_boolean(!isatty(STDIN_FILENO))) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return run(s, sandbox, NULL, request, e);
}

int remote_exec(const struct server *s, const char *sandbox, const char *session, json_t *request,
                struct err *e)
{
    return run(s, sandbox, session, request, e);
}

int remote_result(const struct server *s, const char *sandbox, const char *session, json_t *request,
                  json_t **ret, struct err *e)
{
    char id[ID_SIZE], path[PATH_TEXT_MAX];
    struct remote r = {.s = s, .sandbox = sandbox, .session = session, .process = id};
    struct call c = {
        .method = "POST", .path = path_session(path, sandbox, session, "exec"), .json = request};
    autoreply struct reply *reply = NULL;
    struct pollfd fds[] = {{.events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};

    if (name_it(id, request, e) < 0 || reply_ask(s, &c, &reply, e) < 0)
        return -1;
    fds[0].fd = reply_fd(reply);
    while (poll(fds, 2, -1) < 0 || fds[0].revents == 0)
        if (pass_signals(&r, e) < 0)
            return -1;
    if (reply_head(reply, e) == 0 && reply_json(reply, ret, e) == 0)
        return 0;
    return client_is_broken(e) ? err_wrap(e, "%s may still run in %s", id, sandbox) : -1;
}

int remote_logs(const struct server *s, const struct remote_look *look, struct err *e)
{
    struct remote r = {.s = s,
                       .sandbox = look->sandbox,
                       .process = look->process,
                       .follow = look->follow,
                       .piece = BUF_INIT(SSE_EVENT_MAX),
                       .heard_ms = clock_mono_ms()};
    int ret;

    if (look->since != NULL)
        snprintf(r.cursor, sizeof(r.cursor), "%s", look->since);
    ret = attach(&r, e);
    if (ret == 0 || (look->follow && client_is_broken(e)))
        ret = r.over ? 0 : follow(&r, e);
    buf_free(&r.piece);
    return ret;
}
