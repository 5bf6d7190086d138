/* call.c - what a session is told to do, one call after the other, see session.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/session/script.h"
#include "init/session/session.h"

#define CODE_TIMED_OUT 124
#define CODE_INTERRUPTED 130
#define ORDER_ROOM 4096u /* of words of ours around a request */
#define SHOWN_TEXT 4095u /* of a text, in its record */

/* ---- making one ---- */

int call_check_room(const struct session *s, struct err *e)
{
    if (s->state == SESSION_ENDED || s->state == SESSION_DELETED)
        return err_set(e, ERR_GONE, "session %s has ended: %s", s->record.id, s->why);
    if (s->nqueue >= SESSION_QUEUE_MAX)
        return err_set(e, ERR_LIMIT,
                       "%u commands wait in session %s, which is the limit; try again later",
                       s->nqueue, s->record.id);
    return 0;
}

static int hold(struct proc *p, int i)
{
    struct err e;

    return session_dir_hold(&p->call->session->dir, i, &e);
}

static struct call *call_new(struct session *s, enum call_kind kind)
{
    struct call *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->session = s;
    c->kind = kind;
    buf_init(&c->bytes, 8 * (size_t)INIT_SCRIPT_MAX);
    buf_init(&c->order, 2 * (size_t)INIT_ARGS_MAX + ORDER_ROOM + INIT_PATH_MAX);
    list_init(&c->link);
    list_init(&c->askers);
    return c;
}

void call_free(struct call *c)
{
    struct session *s = c->session;
    struct err e;

    s->all->texts -= c->counted;
    if (c->input != 0)
        session_dir_drop_input(&s->dir, c->input);
    err_set(&e, ERR_GONE, "session %s has ended: %s", s->record.id, s->why);
    session_refuse(&c->askers, &e);
    if (c->proc != NULL)
        c->proc->call = NULL;
    list_del(&c->link);
    buf_free(&c->bytes);
    buf_free(&c->order);
    free(c);
}

/* Its bytes are complete. */
static int enqueue(struct call *c, const struct init_start *record, const char *name, struct err *e)
{
    struct session *s = c->session;
    struct sessions *ss = s->all;

    c->counted = c->bytes.cap;
    ss->texts += c->counted;
    if (c->bytes.failed)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (ss->texts > SESSION_TEXTS_MAX)
        return err_set(e, ERR_LIMIT,
                       "the commands that wait in this sandbox's sessions have %zu bytes; the "
                       "limit is %u",
                       ss->texts, SESSION_TEXTS_MAX);
    if (proc_add(ss->procs, record, name, &s->shelf, &c->proc, e) < 0)
        return -1;
    c->proc->call = c;
    c->proc->session = s->serial;
    c->proc->queued = true;
    c->proc->late = session_timed_out;
    c->proc->hold = hold;
    list_add_tail(&s->queue, &c->link);
    s->nqueue++;
    return 0;
}

static int choose_name(struct session *s, const char *wish, char out[INIT_REF_MAX + 1],
                       struct err *e)
{
    struct procs *ps = s->all->procs;

    if (wish[0] != '\0' && !proc_id_is_valid(wish))
        return err_set(e, ERR_INVALID, "command '%s': " PROC_ID_RULE, wish);
    if (wish[0] != '\0') {
        str_fmt(out, INIT_REF_MAX + 1, "%s/%s", s->record.id, wish);
        if (map_get(&ps->by_id, out) != NULL)
            return err_set(e, ERR_CONFLICT, "command %s of session %s: the id is already in use",
                           wish, s->record.id);
        return 0;
    }
    do
        str_fmt(out, INIT_REF_MAX + 1, "%s/c%llu", s->record.id,
                (unsigned long long)++s->ncommands);
    while (map_get(&ps->by_id, out) != NULL);
    return 0;
}

static int check_env(const struct wire_strv *env, struct err *e)
{
    uint32_t at = 0;
    const char *v;

    while ((v = wire_strv_next(env, &at)) != NULL)
        if (!script_is_variable(v))
            return err_set(e, ERR_INVALID,
                           "env: '%.40s' is not NAME=value with a name that bash takes", v);
    return 0;
}

/* The bytes that are sent for it. */
static void put_call(struct call *c, const char *cwd, const struct wire_strv *env,
                     const struct wire_bytes *text)
{
    bool goes_on = (c->session->record.flags & INIT_SESSION_RESTART) != 0;
    struct shell_call head = {.text = text->len + 1};
    size_t at;

    head.flags = (goes_on ? SHELL_SURVIVES_EXIT : 0) | (c->kind == CALL_DUMP ? SHELL_DUMP : 0);

    session_dir_input_name(c->input, head.input);
    buf_add(&c->bytes, &head, sizeof(head));
    if (cwd[0] != '\0')
        buf_add(&c->bytes, cwd, strlen(cwd) + 1);
    head.cwd = (uint32_t)(c->bytes.len - sizeof(head));
    at = c->bytes.len;
    script_env(&c->bytes, env);
    head.env = (uint32_t)(c->bytes.len - at);
    buf_add(&c->bytes, text->p, text->len);
    buf_addc(&c->bytes, '\0');
    if (!c->bytes.failed)
        memcpy(buf_data(&c->bytes), &head, sizeof(head));
}

int call_add_command(struct session *s, const struct init_session_exec *m,
                     const struct wire_bytes *text, uint64_t input, struct call **ret,
                     struct err *e)
{
    char name[INIT_REF_MAX + 1], shown[SHOWN_TEXT + 1];
    uint32_t len = text->len < SHOWN_TEXT ? text->len : SHOWN_TEXT;
    struct init_start record = {.cwd = m->cwd,
                                .user = s->record.user,
                                .argv = {shown, len + 1, 1},
                                .flags = m->flags & INIT_START_LOG,
                                .timeout_ms = m->timeout_ms,
                                .ring = s->ring};
    struct call *c;

    if (check_env(&m->env, e) < 0 || choose_name(s, m->id, name, e) < 0)
        return -1;
    if (memchr(text->p, '\0', text->len) != NULL)
        return err_set(e, ERR_INVALID, "command: it contains a NUL byte, which bash cannot read");
    c = call_new(s, CALL_COMMAND);
    if (c == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    memcpy(shown, text->p, len);
    shown[len] = '\0';
    c->input = input;
    put_call(c, m->cwd, &m->env, text);
    c->timeout_ms = m->timeout_ms != 0 ? m->timeout_ms : s->record.timeout_ms;
    if (enqueue(c, &record, name, e) < 0) {
        c->input = 0; /* still its caller's */
        call_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

int call_add_dump(struct session *s, const struct init_session_start *m, struct call **ret,
                  struct err *e)
{
    static const struct init_start record = {
        .id = "", .cwd = "", .user = "", .argv = {"", 1, 1}, .ring = SESSION_STATE_MAX};
    struct call *c;

    if (check_env(&m->env, e) < 0 || call_check_room(s, e) < 0)
        return -1;
    c = call_new(s, CALL_DUMP);
    if (c == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    put_call(c, "", &(struct wire_strv){"", 0, 0}, &(struct wire_bytes){"", 0});
    if (wire_put(&c->order, init_msg(INIT_SESSION_START), 0, m, e) < 0 ||
        enqueue(c, &record, NULL, e) < 0) {
        call_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

/* ---- running one ---- */

/* The shell is on its way: it opens its stdout and stderr only later, and waits there for
 * their reader. */
static int open_output(struct session *s, struct proc *p, struct err *e)
{
    for (int i = 0; i < 2; i++) {
        int fd =
            s->outputs[i].fd >= 0 ? take_fd(&s->outputs[i].fd) : session_dir_output(&s->dir, i, e);

        if (fd < 0)
            return -1;
        output_take(p, i, fd);
    }
    return output_start_late(p, e);
}

static int give(struct session *s, struct call *c, struct err *e)
{
    uint16_t status = (uint16_t)s->last_status;
    struct proc *p = c->proc;

    channel_drop(s);
    for (int i = 0; i < 2; i++) {
        if (s->outputs[i].stale && session_dir_renew(&s->dir, i, e) < 0)
            return -1;
        s->outputs[i].stale = false;
    }
    memcpy(buf_data(&c->bytes) + offsetof(struct shell_call, status), &status, sizeof(status));
    p->queued = false;
    p->record.started_ms = clock_real_ms();
    p->oom_kills = groups_oom_kills(&p->all->groups);
    if (proc_set_timeout(p, c->timeout_ms) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    proc_changed(p);
    if (channel_open(s, e) < 0)
        return -1;
    channel_send(s);
    return s->call == c ? open_output(s, p, e) : 0;
}

void session_next(struct session *s)
{
    struct call *c = LIST_FIRST(&s->queue, struct call, link);
    struct err e;

    if (s->state != SESSION_IDLE || c == NULL || session_is_moving(s) || s->dying != NULL)
        return;
    list_del(&c->link);
    s->nqueue--;
    s->call = c;
    s->state = SESSION_RUNNING;
    if (give(s, c, &e) < 0)
        session_fail(s, "a command could not be given to the shell: %s", e.msg);
}

/* ---- its end ---- */

static void end_proc(struct session *s, struct proc *p, unsigned code, unsigned signal)
{
    proc_ended(p, code, signal);
    for (int i = 0; i < 2; i++) {
        s->outputs[i].stale = p->out[i].fd >= 0;
        if (p->out[i].done >= 0)
            s->outputs[i].fd = take_fd(&p->out[i].done);
    }
}

/* Returns its status, also $? of the next command. */
static unsigned finish_proc(struct session *s, struct proc *p, unsigned code)
{
    if ((s->interrupted & INIT_EXIT_TIMED_OUT) != 0)
        code = CODE_TIMED_OUT;
    else if (s->interrupted != 0)
        code = CODE_INTERRUPTED;
    p->record.flags |= s->interrupted;
    if (s->interrupted == 0)
        proc_blame_memory(p, code);
    end_proc(s, p, code, 0);
    return code;
}

void call_finish(struct session *s)
{
    struct call *c = take_ptr(&s->call);
    unsigned code = finish_proc(s, c->proc, c->status);

    if (c->kind == CALL_COMMAND)
        s->last_status = code;
    else
        process_from_dump(c);
    call_free(c);
    s->interrupted = 0;
}

void session_drop_calls(struct session *s)
{
    bool deleted = s->state == SESSION_DELETED;
    struct call *c = take_ptr(&s->call);

    if (c != NULL) {
        c->proc->record.flags |= INIT_EXIT_SESSION_ENDED | (deleted ? INIT_EXIT_KILLED : 0u);
        if (s->interrupted != 0)
            finish_proc(s, c->proc, 0);
        else if (deleted) /* killed with all it started, however its shell ended */
            end_proc(s, c->proc, 0, SIGKILL);
        else
            end_proc(s, c->proc, s->record.code, s->record.signal);
        call_free(c);
    }
    while ((c = LIST_FIRST(&s->queue, struct call, link)) != NULL) {
        s->nqueue--;
        list_del(&c->link);
        c->proc->record.flags |= INIT_EXIT_NEVER_RAN;
        proc_ended(c->proc, 0, 0);
        call_free(c);
    }
}
