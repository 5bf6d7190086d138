/* keeper.c - see keeper.h. */
#include "front/engine/talk/keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/log.h"
#include "base/own.h"
#include "mem/mem.h"
#include "wire/keeper.h"

#define LINK_IN_MAX (256u << 10)
#define LINK_OUT_MAX (64u << 20)
#define LINK_READ (64u << 10)

/* Which answers a request has, and how long it may take. */
static const struct question {
    uint16_t type, each, last; /* each 0: none before the last */
    unsigned deadline_ms;
} questions[] = {
    /* clang-format off */
    {KEEPER_LIST,      KEEPER_SANDBOX,  KEEPER_END,     60 * 1000},
    {KEEPER_CREATE,    0,               KEEPER_SANDBOX, 30 * 1000},
    {KEEPER_BOOT,      0,               KEEPER_SANDBOX, 30 * 1000},
    {KEEPER_DESTROY,   0,               KEEPER_OK,      30 * 1000},
    {KEEPER_TEMPLATES, KEEPER_TEMPLATE, KEEPER_END,     10 * 1000},
    {KEEPER_REFRESH,   KEEPER_PROGRESS, KEEPER_OK,      15 * 60 * 1000},
    {KEEPER_STAT,      0,               KEEPER_STATS,   10 * 1000},
    {KEEPER_HALT,      0,               KEEPER_OK,      30 * 1000},
    {KEEPER_PAUSE,     0,               KEEPER_OK,      10 * 1000},
    {KEEPER_THAW,      0,               KEEPER_OK,      10 * 1000},
    {KEEPER_SNAPSHOT,  0,               KEEPER_SNAP,    5 * 60 * 1000},
    {KEEPER_SNAPSHOTS, KEEPER_SNAP,     KEEPER_END,     60 * 1000},
    {KEEPER_UNSNAP,    0,               KEEPER_OK,      60 * 1000},
    {KEEPER_SAMPLE,    KEEPER_POINT,    KEEPER_END,     60 * 1000},
    {KEEPER_IMPORT,    0,               KEEPER_SANDBOX, 30 * 1000},
    {KEEPER_COMMIT,    0,               KEEPER_OK,      5 * 60 * 1000},
    {KEEPER_ALIAS,     0,               KEEPER_OK,      30 * 1000},
    {KEEPER_FORGET,    0,               KEEPER_OK,      60 * 1000},
    {KEEPER_RULES,     0,               KEEPER_OK,      10 * 1000},
    {KEEPER_RELIMIT,   0,               KEEPER_OK,      10 * 1000},
    {KEEPER_MOUNT,     0,               KEEPER_OK,      10 * 1000},
    {KEEPER_UNMOUNT,   0,               KEEPER_OK,      10 * 1000},
    {KEEPER_FLUSH,     0,               KEEPER_OK,      30 * 1000},
    {KEEPER_RECOVER,   0,               KEEPER_SANDBOX, 30 * 1000},
    {KEEPER_TRAFFIC,   KEEPER_COUNT,    KEEPER_END,     10 * 1000},
    /* clang-format on */
};

/* Any message of the keeper, decoded. */
union answer {
#define X(kind, s, number, fields) struct s s;
    KEEPER_MSGS(X)
#undef X
};

struct request {
    struct list link;
    struct keeper_link *k;
    const struct question *q;
    const struct keeper_asker *asker;
    void *arg;
    uint32_t seq;
    struct loop_timer deadline;
};

struct keeper_link {
    struct keeper_link_opts o;
    struct loop_io io;
    struct buf in, out;
    struct list requests; /* oldest first: answers mostly come in that order */
    uint32_t seq;
    bool lost;
    struct loop_later later; /* tells that it is lost */
    struct err why;
};

static void tell_lost(struct loop_later *l)
{
    struct keeper_link *k = CONTAINER_OF(l, struct keeper_link, later);

    k->o.on_lost(k->o.arg, &k->why);
}

static void lose(struct keeper_link *k, const struct err *why)
{
    if (k->lost)
        return;
    k->lost = true;
    k->why = *why;
    err_wrap(&k->why, "the keeper");
    loop_io_stop(k->o.loop, &k->io);
    loop_defer(k->o.loop, &k->later, tell_lost);
}

static void request_free(struct request *r)
{
    loop_timer_stop(r->k->o.loop, &r->deadline);
    list_del(&r->link);
    free(r);
}

static struct request *request_of(struct keeper_link *k, uint32_t seq)
{
    struct request *r;

    LIST_EACH (&k->requests, r, struct request, link)
        if (r->seq == seq)
            return r;
    return NULL;
}

static void on_deadline(struct loop_timer *t)
{
    struct request *r = CONTAINER_OF(t, struct request, deadline);
    struct err e;

    err_set(&e, ERR_UNAVAILABLE, "the keeper did not answer within %u s; try again",
            r->q->deadline_ms / 1000);
    log_warn("%s: no answer from the keeper within %u s", keeper_msg(r->q->type)->name,
             r->q->deadline_ms / 1000);
    if (r->asker->late != NULL)
        r->asker->late(r->arg, &e);
}

static void answer_fail(struct request *r, const struct keeper_fail *m)
{
    const struct keeper_asker *asker = r->asker;
    void *arg = r->arg;
    struct err e;

    err_set(&e, err_from_code(m->code), "%s", m->message);
    request_free(r);
    asker->last(arg, NULL, &e);
}

/* -1: not an answer to what was asked. */
static int answer(struct request *r, uint16_t type, const union answer *a)
{
    const struct keeper_asker *asker = r->asker;
    void *arg = r->arg;

    if (type == KEEPER_FAIL) {
        answer_fail(r, &a->keeper_fail);
        return 0;
    }
    if (type == r->q->last) {
        request_free(r);
        asker->last(arg, a, NULL);
        return 0;
    }
    if (type != r->q->each)
        return -1;
    if (asker->each != NULL)
        asker->each(arg, a);
    return 0;
}

static enum wire_next frame(void *arg, const struct wire_head *head, const char *body,
                            struct err *e)
{
    const struct wire_msg *m = keeper_msg(head->type);
    struct keeper_link *k = arg;
    struct request *r = request_of(k, head->seq);
    union answer a;

    if (m == NULL) {
        err_set(e, ERR_INTERNAL, "unknown message %u", head->type);
        return WIRE_BROKEN;
    }
    if (wire_get(m, body, head->len, &a, e) < 0)
        return WIRE_BROKEN;
    if (head->type == KEEPER_DIED && head->seq == 0) {
        k->o.on_died(k->o.arg, &a.keeper_died);
    } else if (r == NULL || answer(r, head->type, &a) < 0) {
        err_set(e, ERR_INTERNAL, "%s without a request", m->name);
        return WIRE_BROKEN;
    }
    return k->lost ? WIRE_STOP : WIRE_NEXT;
}

static void flush(struct keeper_link *k)
{
    struct err e;

    if (k->lost)
        return;
    if (wire_flush(k->io.fd, &k->out, &e) < 0)
        lose(k, &e);
    else
        loop_io_set(k->o.loop, &k->io, EPOLLIN | (k->out.len > 0 ? EPOLLOUT : 0));
}

static void on_io(struct loop_io *io, uint32_t events)
{
    struct keeper_link *k = CONTAINER_OF(io, struct keeper_link, io);
    struct err e;
    int got;

    if (events & EPOLLOUT)
        flush(k);
    if (k->lost || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    got = wire_receive(k->io.fd, &k->in, LINK_READ, &e);
    if (got < 0 || (got > 0 && wire_pump(&k->in, WIRE_FRAME_MAX, frame, k, &e) < 0))
        lose(k, &e);
}

static void put(struct keeper_link *k, uint16_t type, uint32_t seq, const void *msg)
{
    struct err e;

    if (k->lost)
        return;
    if (wire_put(&k->out, keeper_msg(type), seq, msg, &e) < 0)
        lose(k, &e);
    else
        flush(k);
}

static const struct question *question_of(uint16_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        if (questions[i].type == type)
            return &questions[i];
    abort();
}

void keeper_ask(struct keeper_link *k, uint16_t type, const void *msg,
                const struct keeper_asker *asker, void *arg)
{
    struct request *r = mem_zeroed(1, sizeof(*r));

    if (++k->seq == 0) /* 0 is news */
        k->seq = 1;
    *r =
        (struct request){.k = k, .q = question_of(type), .asker = asker, .arg = arg, .seq = k->seq};
    list_add_tail(&k->requests, &r->link);
    loop_timer_set(k->o.loop, &r->deadline, r->q->deadline_ms, on_deadline);
    put(k, type, r->seq, msg);
}

void keeper_tell(struct keeper_link *k, uint16_t type, const void *msg)
{
    put(k, type, 0, msg);
}

int keeper_link_new(const struct keeper_link_opts *o, struct keeper_link **ret, struct err *e)
{
    struct keeper_link *k = mem_zeroed(1, sizeof(*k));

    k->o = *o;
    buf_init(&k->in, LINK_IN_MAX);
    buf_init(&k->out, LINK_OUT_MAX);
    list_init(&k->requests);
    if (loop_io_start(o->loop, &k->io, o->fd, EPOLLIN, on_io, e) < 0) {
        free(k);
        return err_wrap(e, "keeper");
    }
    *ret = k;
    return 0;
}

void keeper_link_free(struct keeper_link *k)
{
    struct request *r;

    if (k == NULL)
        return;
    LIST_EACH (&k->requests, r, struct request, link) {
        if (r->asker->drop != NULL)
            r->asker->drop(r->arg);
        request_free(r);
    }
    loop_io_stop(k->o.loop, &k->io);
    loop_undefer(&k->later);
    buf_free(&k->in);
    buf_free(&k->out);
    free(k);
}
