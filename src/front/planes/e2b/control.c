/* control.c - E2B's other calls about processes: which run, and what to do to them. */
#include <signal.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/terminal.h"
#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/internal.h"
#include "front/planes/e2b/process.h"
#include "front/planes/e2b/proto.h"
#include "json/write.h"

#define LIST_BYTES_MAX (16u << 20)
#define INPUT_AGAIN_MS 10 /* when a process has not read what it was sent before */

static void reply_empty(struct call *c)
{
    autobuf struct buf body = BUF_INIT(8);

    buf_adds(&body, "{}");
    call_reply(c, 200, "application/json", &body);
}

/* ---- List ---- */

struct listing {
    struct call *c;
    struct buf body;
    struct json_w w;
};

static void listing_drop(void *state)
{
    buf_free(&((struct listing *)state)->body);
}

/* An id that init chose is not a tag of the client. */
static bool is_tag(const char *id)
{
    return !((id[0] == 'p' || id[0] == 't') && strspn(id + 1, "0123456789") == strlen(id + 1));
}

static void add_process(void *arg, const struct process_info *p)
{
    struct listing *l = arg;
    size_t at = 0;
    const char *word;

    if (p->state != PROCESS_RUNNING)
        return;
    jw_open(&l->w);
    jw_key(&l->w, "config");
    word = engine_word_next(&p->argv, &at);
    jw_open(&l->w);
    jw_kstr(&l->w, "cmd", word != NULL ? word : "");
    jw_key(&l->w, "args");
    jw_open_list(&l->w);
    while ((word = engine_word_next(&p->argv, &at)) != NULL)
        jw_str(&l->w, word);
    jw_close_list(&l->w);
    jw_kstr(&l->w, "cwd", p->cwd);
    jw_close(&l->w);
    jw_ku64(&l->w, "pid", p->pid);
    if (is_tag(p->id))
        jw_kstr(&l->w, "tag", p->id);
    jw_close(&l->w);
}

static void listed(void *arg, const struct err *e)
{
    struct listing *l = arg;

    if (!call_told(l->c))
        return;
    if (e != NULL) {
        call_fail(l->c, e);
        return;
    }
    jw_close_list(&l->w);
    jw_close(&l->w);
    call_reply(l->c, 200, "application/json", &l->body);
}

static void list(struct call *c, const void *in)
{
    struct listing *l = call_state(c, sizeof(*l), listing_drop);

    (void)in;
    l->c = c;
    buf_init(&l->body, LIST_BYTES_MAX);
    jw_init(&l->w, &l->body);
    jw_open(&l->w);
    jw_key(&l->w, "processes");
    jw_open_list(&l->w);
    call_expect(c, &call_pending, NULL);
    process_list(c->ref, add_process, listed, l);
}

/* ---- SendInput, CloseStdin ---- */

struct about {
    struct call *c;
    struct selector who;
    int signo;
    struct buf bytes; /* of stdin, not yet sent */
    size_t sending;
    struct loop_timer again;
};

static void about_drop(void *state)
{
    struct about *a = state;

    loop_timer_stop(a->c->loop, &a->again);
    buf_free(&a->bytes);
}

/* NULL: the call is answered. */
static struct about *about(struct call *c, json_t *process)
{
    struct about *a = call_state(c, sizeof(*a), about_drop);
    struct err e;

    a->c = c;
    buf_init(&a->bytes, CONNECT_MESSAGE_MAX);
    if (selector_read(process, &a->who, &e) == 0)
        return a;
    call_fail(c, &e);
    return NULL;
}

struct input_in {
    json_t *process, *input;
};
static const struct json_field input_fields[] = {
    {"process", JSON_FIELD_ANY, offsetof(struct input_in, process), 0, 0, true, ""},
    {"input", JSON_FIELD_ANY, offsetof(struct input_in, input), 0, 0, true, ""},
};
static const struct surface_input input_input = {SURFACE_INPUT(input_fields, struct input_in),
                                                 .body_max = CONNECT_MESSAGE_MAX};

static void send_next(struct about *a);

static void on_again(struct loop_timer *t)
{
    struct about *a = CONTAINER_OF(t, struct about, again);

    if (a->c->r != NULL)
        send_next(a);
}

/* A process that does not read yet is waited for, as long as the client waits. */
static void sent(void *arg, const struct err *e)
{
    struct about *a = arg;
    struct err closed;

    if (!call_told(a->c))
        return;
    if (e == NULL) {
        buf_consume(&a->bytes, a->sending);
        if (a->bytes.len > 0)
            send_next(a);
        else
            reply_empty(a->c);
    } else if (e->kind == ERR_LIMIT) {
        loop_timer_set(a->c->loop, &a->again, INPUT_AGAIN_MS, on_again);
    } else if (e->kind == ERR_GONE) {
        err_set(&closed, ERR_PRECONDITION, "stdin of process with %s is not open", a->who.text);
        call_fail(a->c, &closed);
    } else {
        selector_fail(a->c, &a->who, e);
    }
}

static void send_next(struct about *a)
{
    struct call *c = a->c;

    a->sending = a->bytes.len < PROCESS_CHUNK_MAX ? a->bytes.len : PROCESS_CHUNK_MAX;
    call_expect(c, &call_pending, NULL);
    process_stdin(c->ref, a->who.id, buf_data(&a->bytes), a->sending, false, sent, a);
}

static void input(struct call *c, const void *in)
{
    const struct input_in *i = in;
    struct about *a = about(c, i->process);
    json_t *bytes = json_object_get(i->input, "stdin");
    struct err e;

    if (a == NULL)
        return;
    if (bytes == NULL)
        bytes = json_object_get(i->input, "pty");
    if (bytes == NULL)
        err_set(&e, ERR_INVALID, "input: expected stdin or pty");
    if (bytes == NULL || proto_bytes(bytes, &a->bytes, &e) < 0)
        call_fail(c, &e);
    else
        send_next(a);
}

struct process_in {
    json_t *process;
};
static const struct json_field process_fields[] = {
    {"process", JSON_FIELD_ANY, offsetof(struct process_in, process), 0, 0, true, ""},
};
static const struct surface_input process_input = {
    SURFACE_INPUT(process_fields, struct process_in)};

/* Closed already is closed. */
static void closed(void *arg, const struct err *e)
{
    struct about *a = arg;

    if (!call_told(a->c))
        return;
    if (e == NULL || e->kind == ERR_GONE)
        reply_empty(a->c);
    else
        selector_fail(a->c, &a->who, e);
}

static void close_stdin(struct call *c, const void *in)
{
    struct about *a = about(c, ((const struct process_in *)in)->process);

    if (a == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    process_stdin(c->ref, a->who.id, "", 0, true, closed, a);
}

/* ---- SendSignal ---- */

struct signal_in {
    json_t *process, *signal;
};
static const struct json_field signal_fields[] = {
    {"process", JSON_FIELD_ANY, offsetof(struct signal_in, process), 0, 0, true, ""},
    {"signal", JSON_FIELD_ANY, offsetof(struct signal_in, signal), 0, 0, true, ""},
};
static const struct surface_input signal_input = {SURFACE_INPUT(signal_fields, struct signal_in)};

static void done(struct about *a, const struct err *e)
{
    if (!call_told(a->c))
        return;
    if (e == NULL)
        reply_empty(a->c);
    else if (e->kind == ERR_GONE)
        selector_absent(a->c, &a->who);
    else
        selector_fail(a->c, &a->who, e);
}

static void signalled(void *arg, const struct err *e)
{
    done(arg, e);
}

static void killed(void *arg, const struct process_exit *m, const struct err *e)
{
    (void)m;
    done(arg, e);
}

/* To all descendants. KILL is answered when all are dead. */
static void signal_it(void *arg, const struct process_info *p, const struct err *e)
{
    struct about *a = arg;
    struct call *c = a->c;

    if (!call_told(c))
        return;
    if (p == NULL) {
        selector_fail(c, &a->who, e);
    } else if (p->state != PROCESS_RUNNING) {
        selector_absent(c, &a->who);
    } else if (a->signo == SIGKILL) {
        call_expect(c, &call_wait, process_kill(c->ref, p->id, 0, killed, a));
    } else {
        call_expect(c, &call_pending, NULL);
        process_signal(c->ref, p->id, a->signo, true, signalled, a);
    }
}

static void send_signal(struct call *c, const void *in)
{
    static const struct proto_enum signals[] = {{"SIGNAL_SIGTERM", SIGTERM},
                                                {"SIGNAL_SIGKILL", SIGKILL}};
    const struct signal_in *i = in;
    struct about *a = about(c, i->process);
    struct err e;

    if (a == NULL)
        return;
    if (proto_enum("signal", i->signal, signals, ARRAY_LEN(signals), &a->signo, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    process_get(c->ref, a->who.id, signal_it, a);
}

/* ---- Update ---- */

struct update_in {
    json_t *process, *pty;
};
static const struct json_field update_fields[] = {
    {"process", JSON_FIELD_ANY, offsetof(struct update_in, process), 0, 0, true, ""},
    {"pty", JSON_FIELD_ANY, offsetof(struct update_in, pty), 0, 0, false, ""},
};
static const struct surface_input update_input = {SURFACE_INPUT(update_fields, struct update_in)};

static void update(struct call *c, const void *in)
{
    const struct update_in *u = in;
    struct about *a = about(c, u->process);
    unsigned cols, rows;
    struct err e;

    if (a == NULL)
        return;
    if (u->pty == NULL) {
        reply_empty(c);
    } else if (pty_size(u->pty, &cols, &rows, &e) < 0) {
        call_fail(c, &e);
    } else {
        call_expect(c, &call_pending, NULL);
        terminal_resize(c->ref, a->who.id, cols, rows, signalled, a);
    }
}

/* clang-format off */
#define RPC(name) {"POST", "/process.Process/" name}
const struct surface_row e2b_control[] = {
    {RPC("List"), SCOPE_READ, list, "list", "Which commands run.", .body = &(const struct surface_input){.size = 1}, .status = 200},
    {RPC("SendInput"), SCOPE_RUN, input, "sendInput", "Bytes for stdin or a PTY.", .body = &input_input, .status = 200},
    {RPC("CloseStdin"), SCOPE_RUN, close_stdin, "closeStdin", "The end of stdin.", .body = &process_input, .status = 200},
    {RPC("SendSignal"), SCOPE_RUN, send_signal, "sendSignal", "TERM or KILL.", .body = &signal_input, .status = 200},
    {RPC("Update"), SCOPE_RUN, update, "update", "Another size of a PTY.", .body = &update_input, .status = 200},
    {.op = NULL},
};
/* clang-format on */
