/* sessions.c - the front's requests about sessions, see wire/init.h. What a session is, is in
 * session/session.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "init/serve/internal.h"

#define EXEC_MSG_MAX (INIT_ARGS_MAX + 2 * INIT_CHUNK_MAX)

/* A command whose bytes are still coming. The bytes of a refused one are read too: they would
 * be taken for requests otherwise. */
struct upload {
    struct buf msg;   /* the request, decoded again when all is there */
    struct buf text;  /* of the command */
    uint64_t session; /* its serial: the id may be used again meanwhile */
    uint32_t text_left, stdin_left;
    int input_fd; /* where its stdin goes, or -1 */
    uint64_t input;
    bool refused;
    struct err why;
};

static struct session *named(struct conn *c, const char *id)
{
    struct err e;
    struct session *s = session_find(&serve_of(c)->sessions, id, &e);

    if (s == NULL)
        conn_fail(c, &e);
    return s;
}

static void wait_in(struct conn *c, struct list *conns)
{
    conn_begin(c, TALK_SESSION, NULL);
    list_add_tail(conns, &c->asking);
}

void on_session_create(struct conn *c, const union request *r)
{
    struct err e = {0};
    struct session *s;

    if (session_create(&serve_of(c)->sessions, &r->init_session_create, &s, &e) < 0)
        conn_fail(c, &e);
    else
        wait_in(c, &s->askers);
}

void session_list_pump(struct conn *c)
{
    struct session *s;
    struct init_end end = {0};

    LIST_EACH (&serve_of(c)->sessions.all, s, struct session, link) {
        char cwd[INIT_PATH_MAX + 1];
        struct init_session m;

        if (s->serial < c->next || s->state == SESSION_STARTING || s->state == SESSION_DELETED)
            continue;
        if (!conn_has_room(c))
            return;
        session_fill(s, &m, cwd);
        conn_send(c, INIT_SESSION, &m);
        if (conn_is_closed(c))
            return;
        c->next = s->serial + 1;
    }
    conn_send(c, INIT_END, &end);
    conn_done(c);
}

void on_session_list(struct conn *c, const union request *r)
{
    (void)r;
    c->next = 0;
    conn_begin(c, TALK_SESSIONS, NULL);
    conn_pump(c);
}

void on_session_get(struct conn *c, const union request *r)
{
    struct session *s = named(c, r->init_session_get.id);
    char cwd[INIT_PATH_MAX + 1];
    struct init_session m;

    if (s == NULL)
        return;
    session_fill(s, &m, cwd);
    conn_send(c, INIT_SESSION, &m);
    conn_done(c);
}

void on_session_delete(struct conn *c, const union request *r)
{
    struct session *s = named(c, r->init_session_delete.id);

    if (s == NULL)
        return;
    wait_in(c, &s->leavers);
    session_delete(s);
}

void on_session_interrupt(struct conn *c, const union request *r)
{
    struct session *s = named(c, r->init_session_interrupt.id);
    bool runs;

    if (s == NULL)
        return;
    if (s->state == SESSION_ENDED || s->state == SESSION_DELETED) {
        conn_fail_with(c, ERR_GONE, "session %s has ended: %s", s->record.id, s->why);
        return;
    }
    runs = s->call != NULL && s->call->kind == CALL_COMMAND;
    if (runs)
        session_event(s, ON_INTERRUPT, &(struct session_news){.why = INIT_EXIT_INTERRUPTED});
    conn_ok(c, runs);
}

void on_session_commands(struct conn *c, const union request *r)
{
    struct session *s = named(c, r->init_session_commands.id);

    if (s == NULL)
        return;
    c->next = 0;
    c->list.own = false;
    c->list.session = s->serial;
    conn_begin(c, TALK_LIST, NULL);
    conn_pump(c);
}

void on_session_start(struct conn *c, const union request *r)
{
    struct session *s = named(c, r->init_session_start.session);
    struct err e = {0};
    struct call *call;

    if (s == NULL)
        return;
    if (call_add_dump(s, &r->init_session_start, &call, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    wait_in(c, &call->askers);
    session_event(s, ON_CALL, NULL);
}

/* ---- a command ---- */

void upload_free(void *detail)
{
    struct upload *u = detail;

    drop_fd(&u->input_fd);
    buf_free(&u->msg);
    buf_free(&u->text);
    free(u);
}

static void run(struct conn *c, struct session *s, const struct init_session_exec *m,
                const struct wire_bytes *text, uint64_t input)
{
    struct init_started started = {0};
    struct err e = {0};
    struct call *call;
    struct proc *p;

    if (call_check_room(s, &e) < 0 || call_add_command(s, m, text, input, &call, &e) < 0) {
        if (input != 0)
            session_dir_drop_input(&s->dir, input);
        conn_fail(c, &e);
        return;
    }
    p = call->proc;
    started.id = p->record.id;
    started.started_ms = p->record.started_ms;
    conn_send(c, INIT_STARTED, &started);
    c->streams = 0;
    if (!conn_is_closed(c) && (m->flags & INIT_START_OWN) != 0) {
        conn_begin(c, TALK_OWN, NULL);
        conn_watch(c, p, 0);
    } else {
        conn_done(c);
    }
    session_event(s, ON_CALL, NULL);
    if (c->talk == TALK_OWN && output_is_late(c->watch.proc))
        conn_hold(c);
}

static void upload_whole(struct conn *c)
{
    struct upload *u = take_ptr(&c->detail);
    struct wire_bytes text = {u->text.len > 0 ? buf_data(&u->text) : "", (uint32_t)u->text.len};
    struct init_session_exec m;
    struct wire_head head;
    struct session *s;
    const char *body;

    conn_begin(c, TALK_NONE, NULL);
    if (wire_peek(&u->msg, &head, &body, &u->why) != 1 ||
        wire_get(init_msg(INIT_SESSION_EXEC), body, head.len, &m, &u->why) < 0) {
        conn_close(c);
    } else if ((s = session_find(&serve_of(c)->sessions, m.session, &(struct err){0})) == NULL ||
               s->serial != u->session) {
        conn_fail_with(c, ERR_GONE, "session %s was deleted", m.session);
    } else if (u->refused) {
        if (u->input != 0)
            session_dir_drop_input(&s->dir, u->input);
        conn_fail(c, &u->why);
    } else {
        run(c, s, &m, &text, u->input);
    }
    upload_free(u);
}

static int keep(struct upload *u, const char *p, size_t text, size_t rest, struct err *e)
{
    if (buf_add(&u->text, p, text) < 0)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (rest > 0 && write(u->input_fd, p + text, rest) != (ssize_t)rest)
        return err_set(e, ERR_LIMIT,
                       "stdin: no room left in " SESSION_ROOT
                       ", where the stdin of waiting commands is kept");
    return 0;
}

/* First the text, then stdin. More bytes than announced: the connection is closed. */
static void uploaded(struct conn *c, const struct wire_bytes *data)
{
    struct upload *u = c->detail;
    uint32_t text = data->len < u->text_left ? data->len : u->text_left, rest = data->len - text;

    if (rest > u->stdin_left) {
        conn_close(c);
        return;
    }
    if (!u->refused && keep(u, data->p, text, rest, &u->why) < 0)
        u->refused = true;
    u->text_left -= text;
    u->stdin_left -= rest;
    if (u->text_left == 0 && u->stdin_left == 0)
        upload_whole(c);
}

static struct upload *upload_new(struct session *s, const struct init_session_exec *m)
{
    struct init_session_exec head = *m;
    struct upload *u = calloc(1, sizeof(*u));
    struct err e;

    if (u == NULL)
        return NULL;
    *u = (struct upload){
        .session = s->serial, .text_left = m->text_len, .stdin_left = m->stdin_len, .input_fd = -1};
    buf_init(&u->msg, EXEC_MSG_MAX);
    buf_init(&u->text, INIT_SCRIPT_MAX);
    head.data = (struct wire_bytes){"", 0};
    if (wire_put(&u->msg, init_msg(INIT_SESSION_EXEC), 0, &head, &e) < 0) {
        upload_free(u);
        return NULL;
    }
    u->refused = call_check_room(s, &u->why) < 0;
    if (u->refused || m->stdin_len == 0)
        return u;
    u->input = ++s->ninputs;
    u->refused = session_dir_input(&s->dir, u->input, &u->input_fd, &u->why) < 0;
    return u;
}

/* The common case needs no copy: everything is in one message. */
void on_session_exec(struct conn *c, const union request *r)
{
    const struct init_session_exec *m = &r->init_session_exec;
    struct session *s = named(c, m->session);
    struct upload *u;

    if (s == NULL && (m->stdin_len > 0 || m->data.len < m->text_len))
        conn_close(c); /* session_more follows, and has no session */
    if (s == NULL)
        return;
    if (m->stdin_len == 0 && m->data.len == m->text_len) {
        run(c, s, m, &m->data, 0);
        return;
    }
    u = upload_new(s, m);
    if (u == NULL) {
        conn_close(c);
        return;
    }
    conn_begin(c, TALK_UPLOAD, u);
    uploaded(c, &m->data);
}

void on_session_more(struct conn *c, const union request *r)
{
    uploaded(c, &r->init_session_more.data);
}
