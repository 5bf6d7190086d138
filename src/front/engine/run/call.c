/* call.c - calls of process.h and terminal.h with one answer or a list. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/command.h"
#include "front/engine/internal.h"
#include "front/engine/process.h"
#include "front/engine/run/from_init.h"
#include "front/engine/terminal.h"
#include "mem/mem.h"

/* clang-format off */
static const struct talk_kind kind_start     = {INIT_START,     {{INIT_STARTED, TALK_LAST}}, .starts = true};
static const struct talk_kind kind_list      = {INIT_LIST,      {{INIT_PROC, TALK_MORE}, {INIT_END, TALK_LAST}}};
static const struct talk_kind kind_get       = {INIT_GET,       {{INIT_PROC, TALK_LAST}}};
static const struct talk_kind kind_stdin     = {INIT_STDIN,     {{INIT_OK, TALK_LAST}}};
static const struct talk_kind kind_signal    = {INIT_SIGNAL,    {{INIT_OK, TALK_LAST}}};
static const struct talk_kind kind_kill      = {INIT_KILL,      {{INIT_EXIT, TALK_LAST}}};
static const struct talk_kind kind_resize    = {INIT_RESIZE,    {{INIT_OK, TALK_LAST}}};
static const struct talk_kind kind_wait      = {INIT_WAIT,      {{INIT_EXIT, TALK_LAST}}, .lasts = true};
static const struct talk_kind kind_wait_port = {INIT_WAIT_PORT, {{INIT_OK, TALK_LAST}}, .lasts = true};
static const struct talk_kind kind_wait_log  = {INIT_WAIT_LOG,  {{INIT_OK, TALK_LAST}}, .lasts = true};
/* clang-format on */

#define CALL_LIST_MAX 65536u /* processes in one list; more is nonsense */

static void tell(const struct process_call *c, const union talk_msg *m)
{
    if (c->started != NULL) {
        struct process_started v = process_started_from(&m->init_started);
        c->started(c->arg, &v, NULL);
    } else if (c->proc != NULL) {
        struct process_info v = process_info_from(&m->init_proc);
        c->proc(c->arg, &v, NULL);
    } else if (c->session != NULL) {
        struct session_info v = session_info_from(&m->init_session);
        c->session(c->arg, &v, NULL);
    } else if (c->exited != NULL) {
        struct process_exit v = process_exit_from(&m->init_exit);
        c->exited(c->arg, &v, NULL);
    } else if (c->value != NULL) {
        c->value(c->arg, m->init_ok.value, NULL);
    } else {
        c->done(c->arg, NULL);
    }
}

static int on_msg(struct talk *t, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct process_call *c = CONTAINER_OF(t, struct process_call, talk);

    if (type != INIT_END && (c->each != NULL || c->each_session != NULL)) {
        if (++c->told > CALL_LIST_MAX)
            return err_set(e, ERR_INVALID, "a list without end");
        if (type == INIT_PROC) {
            struct process_info v = process_info_from(&m->init_proc);
            c->each(c->arg, &v);
        } else if (type == INIT_SESSION) {
            struct session_info v = session_info_from(&m->init_session);
            c->each_session(c->arg, &v);
        }
        return 0;
    }
    tell(c, m);
    free(c);
    return 0;
}

static void on_fail(struct talk *t, const struct err *e)
{
    struct process_call *c = CONTAINER_OF(t, struct process_call, talk);

    if (c->started != NULL)
        c->started(c->arg, NULL, e);
    else if (c->proc != NULL)
        c->proc(c->arg, NULL, e);
    else if (c->session != NULL)
        c->session(c->arg, NULL, e);
    else if (c->exited != NULL)
        c->exited(c->arg, NULL, e);
    else if (c->value != NULL)
        c->value(c->arg, 0, e);
    else
        c->done(c->arg, e);
    free(c);
}

static const struct talk_ops talk_ops = {.on_msg = on_msg, .on_fail = on_fail};

struct process_call *process_call_new(struct engine *g, const struct process_call *as)
{
    struct process_call *c = mem_zeroed(1, sizeof(*c));

    *c = *as;
    c->g = g;
    return c;
}

void process_call_fail(struct process_call *c, const struct err *e)
{
    talk_begin_failed(&c->talk, c->g->hub, &talk_ops, e);
}

void process_call_begin(struct process_call *c, struct box *b, const struct talk_kind *kind,
                        const void *msg, uint64_t deadline_ms)
{
    talk_begin(&c->talk, &b->peer, kind, msg, deadline_ms, &talk_ops);
}

struct process_call *process_ask(const struct process_call *as, struct ref ref, const char *id,
                                 const struct talk_kind *kind, const void *msg,
                                 uint64_t deadline_ms)
{
    struct process_call *c = process_call_new(ref.engine, as);
    struct err e;
    struct box *b = box_alive(ref, &e);

    if (b != NULL && id != NULL && !command_is_named(id) && !(as->own && command_id_is_own(id))) {
        err_set(&e, ERR_NOT_FOUND, "no %s %.64s", as->noun != NULL ? as->noun : "process", id);
        b = NULL;
    }
    if (b == NULL)
        process_call_fail(c, &e);
    else
        process_call_begin(c, b, kind, msg, deadline_ms);
    return c;
}

/* Deadline of an answer that may take `ms` by itself; 0: none. */
static uint64_t deadline(uint64_t ms)
{
    return ms == 0 || ms > UINT64_MAX / 2000000u ? 0 : ms + PROCESS_DEADLINE_MS;
}

void process_start(struct ref ref, const struct process_opts *o, process_started_cb *cb, void *arg)
{
    struct process_call *c =
        process_call_new(ref.engine, &(struct process_call){.started = cb, .arg = arg});
    struct command cmd = {0};
    struct err e;
    struct box *b = box_running(ref, &e);

    if (b == NULL || command_build(&cmd, &b->pub, o, &e) < 0) {
        process_call_fail(c, &e);
    } else {
        if (o->term == NULL)
            cmd.start.ring = (uint32_t)ref.engine->o.config->output;
        ref.engine->stats.processes++;
        talk_begin(&c->talk, &b->peer, &kind_start, &cmd.start, PROCESS_DEADLINE_MS, &talk_ops);
    }
    command_free(&cmd);
}

void process_list(struct ref ref, void (*each)(void *arg, const struct process_info *p),
                  engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .each = each, .arg = arg};
    struct init_list m = {0};

    process_ask(&as, ref, NULL, &kind_list, &m, PROCESS_DEADLINE_MS);
}

void process_list_own(struct ref ref, void (*each)(void *arg, const struct process_info *p),
                      engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .each = each, .arg = arg};
    struct init_list m = {.own = 1};

    process_ask(&as, ref, NULL, &kind_list, &m, PROCESS_DEADLINE_MS);
}

void process_get(struct ref ref, const char *id, process_proc_cb *cb, void *arg)
{
    struct process_call as = {.proc = cb, .arg = arg};
    struct init_get m = {.id = id};

    process_ask(&as, ref, id, &kind_get, &m, PROCESS_DEADLINE_MS);
}

void process_stdin(struct ref ref, const char *id, const void *p, size_t n, bool last,
                   engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .arg = arg};
    struct init_stdin m = {.id = id, .data = {p, (uint32_t)n}, .close = last};
    struct err e;

    if (n > INIT_CHUNK_MAX) {
        err_set(&e, ERR_TOO_LARGE, "stdin: more than %u bytes in one call", INIT_CHUNK_MAX);
        talk_begin_failed(&process_call_new(ref.engine, &as)->talk, ref.engine->hub, &talk_ops, &e);
        return;
    }
    process_ask(&as, ref, id, &kind_stdin, &m, PROCESS_DEADLINE_MS);
}

void process_signal(struct ref ref, const char *id, int signo, bool tree, engine_done_cb *cb,
                    void *arg)
{
    struct process_call as = {.done = cb, .arg = arg};
    struct init_signal m = {
        .id = id, .signal = (uint32_t)signo, .to = tree ? INIT_TO_TREE : INIT_TO_ROOT};

    process_ask(&as, ref, id, &kind_signal, &m, PROCESS_DEADLINE_MS);
}

struct process_call *process_kill(struct ref ref, const char *id, uint64_t grace_ms,
                                  process_exit_cb *cb, void *arg)
{
    struct process_call as = {.exited = cb, .arg = arg};
    struct init_kill m = {.id = id, .grace_ms = grace_ms};

    return process_ask(&as, ref, id, &kind_kill, &m, grace_ms + PROCESS_DEADLINE_MS);
}

struct process_call *process_kill_own(struct ref ref, const char *id, process_exit_cb *cb,
                                      void *arg)
{
    struct process_call as = {.exited = cb, .own = true, .arg = arg};
    struct init_kill m = {.id = id};

    return process_ask(&as, ref, id, &kind_kill, &m, PROCESS_DEADLINE_MS);
}

struct process_call *process_wait(struct ref ref, const char *id, uint64_t timeout_ms,
                                  process_exit_cb *cb, void *arg)
{
    struct process_call as = {.exited = cb, .arg = arg};
    struct init_wait m = {.id = id, .timeout_ms = timeout_ms};

    return process_ask(&as, ref, id, &kind_wait, &m, deadline(timeout_ms));
}

struct process_call *process_wait_port(struct ref ref, const char *id, unsigned port,
                                       const struct process_http *http, uint64_t timeout_ms,
                                       process_value_cb *cb, void *arg)
{
    struct process_call as = {.value = cb, .arg = arg};
    struct init_wait_port m = {.id = id, .port = port, .timeout_ms = timeout_ms};
    const char *about = id == NULL || *id == '\0' ? NULL : id;

    if (http != NULL) {
        m.path = http->path;
        m.status_min = http->status_min;
        m.status_max = http->status_max;
    }
    return process_ask(&as, ref, about, &kind_wait_port, &m, deadline(timeout_ms));
}

struct process_call *process_wait_log(struct ref ref, const char *id, const void *text, size_t len,
                                      uint64_t since, unsigned streams, uint64_t timeout_ms,
                                      process_value_cb *cb, void *arg)
{
    struct process_call as = {.value = cb, .arg = arg};
    struct init_wait_log m = {.id = id,
                              .text = {text, (uint32_t)len},
                              .since = since,
                              .streams = streams,
                              .timeout_ms = timeout_ms};

    return process_ask(&as, ref, id, &kind_wait_log, &m, deadline(timeout_ms));
}

void terminal_resize(struct ref ref, const char *id, unsigned cols, unsigned rows,
                     engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .arg = arg};
    struct init_resize m = {.id = id, .cols = cols, .rows = rows};

    process_ask(&as, ref, id, &kind_resize, &m, PROCESS_DEADLINE_MS);
}

void terminal_signal(struct ref ref, const char *id, int signo, engine_done_cb *cb, void *arg)
{
    struct process_call as = {.done = cb, .arg = arg};
    struct init_signal m = {.id = id, .signal = (uint32_t)signo, .to = INIT_TO_FOREGROUND};

    process_ask(&as, ref, id, &kind_signal, &m, PROCESS_DEADLINE_MS);
}

struct process_call *terminal_delete(struct ref ref, const char *id, uint64_t grace_ms,
                                     process_exit_cb *cb, void *arg)
{
    struct process_call as = {.exited = cb, .arg = arg};
    struct init_kill m = {.id = id, .grace_ms = grace_ms, .flags = INIT_KILL_FORGET};

    return process_ask(&as, ref, id, &kind_kill, &m, grace_ms + PROCESS_DEADLINE_MS);
}

void process_cancel(struct process_call *c)
{
    if (c == NULL)
        return;
    talk_end(&c->talk);
    free(c);
}
