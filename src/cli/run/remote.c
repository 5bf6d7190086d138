/* remote.c - see remote.h. */
#include "cli/run/remote.h"

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
#include "cli/client/oom.h"
#include "cli/client/path.h"
#include "cli/client/sse.h"
#include "cli/cmd.h"
#include "cli/run/event.h"
#include "cli/run/feed.h"
#include "json/read.h"

#define STATUS_SIGNAL 128
#define EVENT_STREAM "text/event-stream"
#define RETRY_FIRST_MS 20
#define ID_SIZE 13 /* of a command: twelve letters, and a NUL */

struct remote {
    const struct server *s;
    const char *sandbox, *process;
    const char *session;       /* of a command of a session; else NULL */
    char cursor[SSE_NAME_MAX]; /* of the next byte to print; "": the first that is kept */
    bool follow;
    bool ours; /* we started it: it gets our signals, and is killed if our output is closed */
    unsigned signals_sent;
    struct buf piece;  /* of output, decoded */
    struct feed *feed; /* sends our stdin; or NULL */
    bool stdin_lost;   /* a part of stdin may be lost: the command was killed */
    uint64_t heard_ms; /* when the server last sent something */
    bool over;         /* the command ended, or its output is closed */
    int status;
};

static int signal_fd = -1;

int remote_catch_signals(struct err *e)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    sigset_t set;

    /* A signal that nohup, or a shell that starts us in the background, made ignored: the
     * signalfd would report it once it is blocked. */
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (sigaction(ours[i], NULL, &now) < 0 || now.sa_handler != SIG_IGN)
            sigaddset(&set, ours[i]);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, "sigprocmask");
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    client_leave_when(signal_fd);
    return signal_fd < 0 ? err_sys(e, "signalfd") : 0;
}

/* The next signal that came, or 0. */
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

/* POST to the process; commands of a session only have `interrupt`. A process that has just
 * ended is no error. Takes `body`. False: the server did not answer. */
static bool tell(const struct remote *r, const char *what, json_t *body)
{
    autojson json_t *owned = body;
    char path[PATH_TEXT_MAX];
    struct err e = {0};

    if (r->session != NULL)
        path_session(path, r->sandbox, r->session, "interrupt");
    else
        path_process(path, r->sandbox, r->process, what);
    if (client_call(r->s, "POST", path, r->session != NULL ? NULL : owned, NULL, &e) < 0 &&
        e.kind != ERR_GONE && e.kind != ERR_NOT_FOUND && e.kind != ERR_CONFLICT)
        cmd_complain(NULL, "%s %s: %s", what, r->process, e.msg);
    return !client_is_left(&e);
}

static bool kill_remote(const struct remote *r)
{
    return tell(r, "kill", json_pack("{s:i}", "grace_ms", 0));
}

/* The first signal is passed on, and the command may handle it; the second kills the command.
 * If the server does not answer, the second one ends this program too. */
static int pass_signals(struct remote *r, struct err *e)
{
    int signo;

    while ((signo = next_signal()) != 0) {
        if (r->signals_sent++ == 0)
            tell(r, "signal", json_pack("{s:i, s:b}", "signal", signo, "tree", 1));
        else if (!kill_remote(r))
            return err_set(
                e, ERR_UNAVAILABLE,
                "interrupted, and the server does not answer; command %s may still run in "
                "sandbox %s",
                r->process, r->sandbox);
    }
    return 0;
}

/* Writes everything, and reacts to Ctrl-C while the reader of our output is slow. stdout may
 * be shared with other processes, so it is not made non-blocking: poll() guarantees room for
 * PIPE_BUF bytes, and no more is written at once. */
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

/* Our output was closed: the command is killed, like the left side of a pipe. */
static int on_output(struct remote *r, int fd, const char *data, size_t len, struct err *e)
{
    buf_clear(&r->piece);
    if (event_bytes(data, len, &r->piece, e) < 0)
        return -1;
    if (write_out(r, fd, buf_data(&r->piece), r->piece.len, e) == 0)
        return 0;
    if (r->ours)
        kill_remote(r);
    if (e->sys != EPIPE)
        return -1;
    r->over = true;
    r->status = STATUS_SIGNAL + SIGPIPE;
    return 0;
}

/* Events without output; types that we do not know (`started`, later ones) are skipped. */
static int on_other(struct remote *r, const char *event, const char *data, size_t len,
                    struct err *e)
{
    autojson json_t *j = json_loadb(data, len, JSON_ALLOW_NUL, NULL);
    json_t *error = json_object_get(j, "error"), *code = json_object_get(j, "exit_code");
    char room[OOM_TEXT_MAX];
    const char *text;

    if (j == NULL)
        return err_set(e, ERR_INTERNAL, "the server sent an event '%s' that is not JSON", event);
    if (strcmp(event, "exit") == 0) {
        /* the code is already 124 after a timeout, and 128 + N after signal N */
        r->over = true;
        r->status = (int)json_integer_value(code != NULL ? code : json_object_get(j, "code"));
        text = oom_text(j, r->sandbox, room);
        if (text != NULL)
            cmd_complain(NULL, "%s", text);
    } else if (strcmp(event, "end") == 0) {
        r->over = true;
    } else if (strcmp(event, "truncated") == 0) {
        cmd_complain(NULL, "a part of the output is missing: it was printed faster than it was "
                           "read here");
    } else if (strcmp(event, "error") == 0) {
        return client_refused(error, e);
    }
    return 0;
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
        ret = on_other(r, s->event, data, len, e);
    if (ret == 0 && s->id[0] != '\0')
        snprintf(r->cursor, sizeof(r->cursor), "%s", s->id);
    return ret;
}

/* Waits until the stream is readable; meanwhile handles signals and a failure of the feed. */
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
            err_set(e, ERR_UNAVAILABLE, "the server sent nothing for %d s",
                    CLIENT_SILENCE_MS / 1000);
            e->sys = ECONNRESET;
            return -1;
        }
        if (n > 0 && fds[1].revents != 0 && pass_signals(r, e) < 0)
            return -1;
        if (n > 0 && fds[2].revents != 0) {
            *e = *feed_failure(r->feed);
            e->sys = 0; /* otherwise client_is_broken() would be true for this stream */
            r->stdin_lost = true;
            kill_remote(r);
            return -1;
        }
    } while (n < 0 || fds[0].revents == 0);
    return 0;
}

/* Reads one stream until it or the command ends. */
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
        else { /* a daemon that shuts down ends its streams early */
            err_set(e, ERR_UNAVAILABLE, "the server closed the stream before the command ended");
            e->sys = ECONNRESET;
            ret = -1;
        }
    }
    sse_free(&s);
    return ret;
}

/* Opens a stream of the output from our cursor on, and reads it. */
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
        return err_set(e, ERR_INTERNAL, "the server answered the request for a stream with JSON");
    }
    return consume(r, reply, e);
}

static bool may_pass(const struct err *e)
{
    return e->kind == ERR_UNAVAILABLE || e->kind == ERR_UNRESPONSIVE;
}

/* Waits before the next attempt. -1: the server was away too long, or a signal came. */
static int wait_for_server(const struct remote *r, int *delay_ms, struct err *e)
{
    struct pollfd p = {.fd = r->ours ? signal_fd : -1, .events = POLLIN};
    const char *why = clock_mono_ms() - r->heard_ms > REMOTE_RETRY_MS ? "gave up"
                      : poll(&p, 1, *delay_ms) > 0                    ? "interrupted"
                                                                      : NULL;

    *delay_ms = *delay_ms < 500 ? *delay_ms * 2 : 1000;
    if (why == NULL)
        return 0;
    e->sys = 0; /* not client_is_broken(): do not retry */
    return err_wrap(e, "%s; command %s may still run in sandbox %s", why, r->process, r->sandbox);
}

/* Reconnects until the command is over or the server is away too long. */
static int follow(struct remote *r, struct err *e)
{
    int delay_ms = RETRY_FIRST_MS;
    uint64_t heard_ms = r->heard_ms;

    while (!r->over && attach(r, e) < 0) {
        if (r->stdin_lost || !may_pass(e))
            return -1;
        if (r->heard_ms != heard_ms) /* the server was back for a while */
            delay_ms = RETRY_FIRST_MS;
        heard_ms = r->heard_ms;
        if (wait_for_server(r, &delay_ms, e) < 0)
            return -1;
    }
    return 0;
}

/* Sends the request once. *ret stays NULL if the answer is no stream; `again` means that an
 * earlier request may have started the command, and then a conflict is no error. */
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

/* If the connection breaks before the answer, the command may or may not have been started.
 * A second request with the same id finds out, and cannot start it twice. */
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

/* The call that starts a command owns its output: while this connection is open the command
 * waits for us to read, so no output is lost. */
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

static void add_id(char id[ID_SIZE], json_t *request)
{
    id_random(id, ID_SIZE - 1);
    json_object_set_new(request, "id", json_string(id));
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

    add_id(process, request);
    if ((start(&r, request, e) < 0 && !client_is_broken(e)) || follow(&r, e) < 0)
        r.status = -1;
    feed_free(r.feed);
    buf_free(&r.piece);
    return r.status;
}

int remote_run(const struct server *s, const char *sandbox, json_t *request, bool interactive,
               struct err *e)
{
    json_object_set_new(request, "stdin", json_boolean(interactive || !isatty(STDIN_FILENO)));
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

    add_id(id, request);
    if (reply_ask(s, &c, &reply, e) < 0)
        return -1;
    fds[0].fd = reply_fd(reply);
    while (poll(fds, 2, -1) < 0 || fds[0].revents == 0)
        if (pass_signals(&r, e) < 0)
            return -1;
    if (reply_head(reply, e) == 0 && reply_json(reply, ret, e) == 0)
        return 0;
    return client_is_broken(e) ? err_wrap(e, "command %s may still run in sandbox %s", id, sandbox)
                               : -1;
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
