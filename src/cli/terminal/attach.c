/* attach.c - see attach.h. */
#include "cli/terminal/attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/client/oom.h"
#include "cli/client/path.h"
#include "cli/client/ws.h"
#include "cli/terminal/screen.h"
#include "json/read.h"

#define TYPED_MAX (256u << 10) /* typed and not yet sent; at this point stdin is not read */
#define READ_MAX (64u << 10)
#define RETRY_MS 100
#define PING_MS 45000 /* silence before a ping; without an answer for half of it, reconnect */
#define STATUS_SIGNAL 128
#define PART_MS 1000 /* time to flush the last bytes when leaving */
#define CLOSE_NORMAL 1000
#define KEY_INTERRUPT '\003'
#define SIDE_MAX 1000u /* columns or rows that the server accepts */

enum end {
    END_NOT,
    END_EXIT,     /* the program ended: status */
    END_DETACHED, /* the detach keys were pressed */
    END_SIGNAL,   /* a signal came: status */
    END_FAILED,   /* e */
};

struct attach {
    const struct server *s;
    const struct attach_opts *o;
    struct keys keys;
    struct modes modes;
    struct reply *asking; /* a handshake without an answer yet, or... */
    struct ws *ws;        /* ...an open connection; if both are NULL, it was lost */
    char key[WS_KEY_SIZE];
    bool ready; /* the server has sent the first cursor */
    bool has_cursor;
    uint64_t cursor; /* of the next byte to print */
    struct buf typed;
    int signal_fd, out_fd;
    uint64_t heard_ms, lost_ms, retry_ms; /* lost_ms 0: connected */
    bool pinged;
    enum end end;
    int status;
    json_t *exit; /* the message, of END_EXIT */
    struct err e; /* END_FAILED, or why the connection was lost */
};

static void fail(struct attach *a, const struct err *e)
{
    a->end = END_FAILED;
    a->e = *e;
}

/* ---- the connection ---- */

static void hang_up(struct attach *a)
{
    ws_free(take_ptr(&a->ws));
    reply_free(take_ptr(&a->asking));
    a->ready = false;
}

static void lose(struct attach *a, const struct err *why)
{
    uint64_t now = clock_mono_ms();

    hang_up(a);
    a->e = *why;
    a->retry_ms = a->lost_ms == 0 ? now : now + RETRY_MS;
    if (a->lost_ms == 0)
        a->lost_ms = now;
    else if (now - a->lost_ms > ATTACH_RETRY_MS)
        a->end = END_FAILED;
}

/* Retries if the daemon may be restarting; any other error is final. */
static void refused(struct attach *a, const struct err *e)
{
    if (e->kind == ERR_UNAVAILABLE)
        lose(a, e);
    else
        fail(a, e);
}

static void ask(struct attach *a)
{
    char path[PATH_TEXT_MAX], query[96], since[32] = "";
    struct call c = {.method = "GET", .path = path, .ws_key = a->key};
    struct err e;

    if (a->has_cursor)
        str_fmt(since, sizeof(since), "&since=%llu", (unsigned long long)a->cursor);
    str_fmt(query, sizeof(query), "connect?readonly=%d%s", a->o->read_only, since);
    path_terminal(path, a->o->sandbox, a->o->terminal, query);
    a->heard_ms = clock_mono_ms();
    a->pinged = false;
    if (ws_make_key(a->key, &e) < 0)
        fail(a, &e);
    else if (reply_ask(a->s, &c, &a->asking, &e) < 0)
        refused(a, &e);
}

static void tell_size(struct attach *a)
{
    unsigned cols, rows;
    char text[64];

    if (!a->ready || a->o->read_only || screen_size(&cols, &rows) < 0)
        return;
    cols = cols < SIDE_MAX ? cols : SIDE_MAX;
    rows = rows < SIDE_MAX ? rows : SIDE_MAX;
    str_fmt(text, sizeof(text), "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", cols, rows);
    ws_send(a->ws, false, text, strlen(text));
}

/* ---- output of the program ---- */

static void take_signal(struct attach *a);

/* Prints. While the terminal is full we still react to signals. */
static void put(struct attach *a, const char *p, size_t n)
{
    struct pollfd fds[] = {{.fd = a->out_fd, .events = POLLOUT},
                           {.fd = a->signal_fd, .events = POLLIN}};
    struct err e;

    while (n > 0 && a->end == END_NOT) {
        ssize_t w = write(a->out_fd, p, n);

        if (w < 0 && errno == EAGAIN) {
            if (poll(fds, ARRAY_LEN(fds), -1) > 0 && fds[1].revents != 0)
                take_signal(a);
            continue;
        }
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0) {
            err_sys(&e, "write to stdout");
            fail(a, &e);
            return;
        }
        p += w;
        n -= (size_t)w;
    }
}

/* Binary messages are output, text messages are JSON. Other types than these (`resize`,
 * `error`) need no reaction: after an error the server closes, and reconnecting tells why. */
static void on_message(void *arg, bool binary, const char *p, size_t n)
{
    struct attach *a = arg;
    autojson json_t *j = NULL;
    const char *type;

    if (a->end != END_NOT)
        return;
    if (binary) {
        modes_watch(&a->modes, p, n);
        put(a, p, n);
        a->cursor += n;
        return;
    }
    j = json_loadb(p, n, 0, NULL);
    type = json_string_value(json_object_get(j, "type"));
    if (type == NULL)
        return;
    if (strcmp(type, "ready") == 0) {
        a->cursor = (uint64_t)json_integer_value(json_object_get(j, "cursor"));
        a->has_cursor = a->ready = true;
        a->lost_ms = 0;
        tell_size(a);
    } else if (strcmp(type, "truncated") == 0) {
        a->cursor = (uint64_t)json_integer_value(json_object_get(j, "to"));
    } else if (strcmp(type, "exit") == 0) {
        a->status = (int)json_integer_value(json_object_get(j, "code"));
        a->exit = json_incref(j);
        a->end = END_EXIT;
    }
}

static const struct ws_ops ws_ops = {.on_message = on_message};

static void answered(struct attach *a)
{
    struct reply *r = take_ptr(&a->asking);
    struct err e;

    if (reply_head(r, &e) < 0) {
        reply_free(r);
        refused(a, &e);
    } else if (ws_new(r, a->key, &ws_ops, a, &a->ws, &e) < 0) {
        refused(a, &e);
    }
}

static void pump(struct attach *a)
{
    struct err e;
    bool heard;
    int ret = ws_pump(a->ws, &heard);

    if (heard) {
        a->heard_ms = clock_mono_ms();
        a->pinged = false;
    }
    if (ret == 0 || a->end != END_NOT)
        return;
    err_set(&e, ERR_UNAVAILABLE, "the connection to the server was lost (WebSocket code %d)",
            ws_close_code(a->ws));
    lose(a, &e);
}

/* ---- keys and signals ---- */

static void send_typed(struct attach *a)
{
    if (!a->ready || a->typed.len == 0 || ws_queued(a->ws) > WS_QUEUE_HIGH)
        return;
    if (!a->o->read_only)
        ws_send(a->ws, true, buf_data(&a->typed), a->typed.len);
    buf_clear(&a->typed);
}

static void take_keys(struct attach *a)
{
    char keys[READ_MAX];
    ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* the window was closed */
        a->end = END_SIGNAL;
        a->status = STATUS_SIGNAL + SIGHUP;
    } else if (keys_filter(&a->keys, keys, (size_t)n, &a->typed)) {
        a->end = END_DETACHED;
    } else if (a->lost_ms != 0 && a->typed.len > 0 &&
               memchr(buf_data(&a->typed), KEY_INTERRUPT, a->typed.len) != NULL) {
        a->end = END_FAILED; /* without a connection, ctrl-c means this program */
    }
}

static void take_signal(struct attach *a)
{
    struct signalfd_siginfo info;
    struct err e;

    if (read(a->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGWINCH) {
        tell_size(a);
    } else if (info.ssi_signo == SIGTSTP) { /* from kill(1): ^Z goes to the program there */
        screen_restore();
        kill(getpid(), SIGSTOP);
        if (screen_make_raw(&e) < 0)
            fail(a, &e);
        tell_size(a);
    } else {
        a->end = END_SIGNAL;
        a->status = STATUS_SIGNAL + (int)info.ssi_signo;
    }
}

/* ---- the loop ---- */

/* How long poll() may wait until ping or reconnect is due, in ms. */
static int patience(struct attach *a)
{
    uint64_t now = clock_mono_ms(), due;

    if (a->ws == NULL && a->asking == NULL)
        due = a->retry_ms;
    else
        due = a->heard_ms + PING_MS + (a->pinged ? PING_MS / 2 : 0);
    return due > now ? (int)(due - now) : 0;
}

static void time_passed(struct attach *a)
{
    struct err e;

    if (patience(a) > 0)
        return;
    if (a->ws == NULL && a->asking == NULL) {
        ask(a);
    } else if (a->pinged || a->ws == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "the server has not answered for %d s",
                (PING_MS + PING_MS / 2) / 1000);
        lose(a, &e);
    } else {
        ws_ping(a->ws);
        a->pinged = true;
    }
}

static void turn(struct attach *a)
{
    int fd = a->ws != NULL ? ws_fd(a->ws) : a->asking != NULL ? reply_fd(a->asking) : -1;
    bool out = a->ws != NULL && ws_wants_to_write(a->ws);
    struct pollfd fds[] = {
        {.fd = a->typed.len < TYPED_MAX - READ_MAX ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = fd, .events = (short)(POLLIN | (out ? POLLOUT : 0))},
        {.fd = a->signal_fd, .events = POLLIN},
    };

    if (poll(fds, ARRAY_LEN(fds), patience(a)) < 0)
        return;
    if (fds[2].revents != 0)
        take_signal(a);
    if (fds[1].revents != 0 && a->end == END_NOT && a->asking != NULL)
        answered(a);
    /* also right after answered(): messages received with the head cause no event */
    if (fds[1].revents != 0 && a->end == END_NOT && a->ws != NULL)
        pump(a);
    if (fds[0].revents != 0 && a->end == END_NOT)
        take_keys(a);
    if (a->end == END_NOT)
        time_passed(a);
    if (a->end == END_NOT)
        send_typed(a);
}

static int catch_signals(struct attach *a, struct err *e)
{
    static const int ours[] = {SIGWINCH, SIGTSTP, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        sigaddset(&set, ours[i]);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_sys(e, "sigprocmask");
    a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return a->signal_fd < 0 ? err_sys(e, "signalfd") : 0;
}

/* After detaching: sends what was typed before the detach keys. The server answers a close
 * after it has processed all earlier messages. */
static void part(struct attach *a)
{
    uint64_t now = clock_mono_ms(), until = now + PART_MS;
    struct pollfd fd = {.fd = ws_fd(a->ws)};
    bool heard, said = false;

    send_typed(a);
    while (ws_pump(a->ws, &heard) == 0 && now < until) {
        if (!said && !ws_wants_to_write(a->ws)) { /* wslay sends a close before queued messages */
            ws_close(a->ws, CLOSE_NORMAL);
            said = true;
        }
        fd.events = (short)(POLLIN | (ws_wants_to_write(a->ws) ? POLLOUT : 0));
        poll(&fd, 1, (int)(until - now));
        now = clock_mono_ms();
    }
}

static void leave(struct attach *a)
{
    autobuf struct buf undo = BUF_INIT(1024);
    struct pollfd fd = {.fd = a->out_fd, .events = POLLOUT};
    ssize_t w = 0;

    modes_undo(&a->modes, &undo);
    /* a terminal that is not read must not keep us: give up after PART_MS */
    while (undo.len > 0 && poll(&fd, 1, PART_MS) > 0 &&
           ((w = write(a->out_fd, buf_data(&undo), undo.len)) > 0 || errno == EINTR ||
            errno == EAGAIN))
        buf_consume(&undo, w > 0 ? (size_t)w : 0);
    screen_restore();
    if (a->end == END_DETACHED && a->ready)
        part(a);
    hang_up(a);
    buf_free(&a->typed);
    own_close(&a->signal_fd);
    own_close(&a->out_fd);
}

static int finish(const struct attach *a, struct err *e)
{
    char room[OOM_TEXT_MAX];
    const char *text;

    if (a->end == END_FAILED) {
        *e = a->e;
        return err_wrap(e, "terminal %s", a->o->terminal);
    }
    if (a->end == END_DETACHED)
        fprintf(stderr, "\n[detached; `cove shell --attach %s %s` reattaches]\n", a->o->terminal,
                a->o->sandbox);
    text = oom_text(a->exit, a->o->sandbox, room);
    if (text != NULL)
        fprintf(stderr, "cove: %s\n", text);
    json_decref(a->exit);
    return a->status;
}

int attach_check(struct err *e)
{
    if (screen_is_terminal())
        return 0;
    return err_set(e, ERR_INVALID,
                   "stdin and stdout are not a terminal; `cove exec` without -t needs none");
}

int attach_run(const struct server *s, const struct attach_opts *o, struct err *e)
{
    struct attach a = {.s = s,
                       .o = o,
                       .typed = BUF_INIT(2 * TYPED_MAX),
                       .signal_fd = -1,
                       .out_fd = screen_reopen()};

    if (attach_check(e) < 0 || keys_parse(&a.keys, o->keys, e) < 0 || catch_signals(&a, e) < 0 ||
        screen_make_raw(e) < 0)
        return -1;
    client_hurry(true); /* reading an answer blocks keys and signals */
    while (a.end == END_NOT)
        turn(&a);
    client_hurry(false);
    leave(&a);
    return finish(&a, e);
}

int attach_start(const struct server *s, const char *sandbox, json_t *request, const char *keys,
                 struct err *e)
{
    autojson json_t *made = NULL;
    struct attach_opts o = {.sandbox = sandbox, .keys = keys};
    char path[PATH_TEXT_MAX];
    unsigned cols, rows;

    if (attach_check(e) < 0)
        return -1;
    if (screen_size(&cols, &rows) == 0) {
        json_object_set_new(request, "cols", json_integer(cols < SIDE_MAX ? cols : SIDE_MAX));
        json_object_set_new(request, "rows", json_integer(rows < SIDE_MAX ? rows : SIDE_MAX));
    }
    if (client_call(s, "POST", path_sandbox(path, sandbox, "terminals"), request, &made, e) < 0)
        return -1;
    o.terminal = json_string_value(json_object_get(made, "id"));
    if (o.terminal == NULL)
        return err_set(e, ERR_INTERNAL, "create a terminal: the server's answer has no id");
    return attach_run(s, &o, e);
}
