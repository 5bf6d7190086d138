/* engine_rig.h - an engine between a keeper and an init that the test plays.
 *
 * Both peers are other processes in the product; here the test has their ends
 * of the sockets and sends valid and hostile messages. */
#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "config/config.h"
#include "front/engine/engine.h"
#include "front/engine/process.h"
#include "front/store/store.h"
#include "wire/init.h"
#include "wire/keeper.h"

#define RIG_TURNS 2000
#define KEY "root"

struct peer { /* the test's end of a socket */
    int fd;
    struct buf in;
};

struct rig {
    struct loop *loop;
    struct config config;
    struct store *store;
    struct engine *g;
    struct peer keeper;
    int engine_fd, run_fd;
    char dir[32];
    int ready, lost, told;
    uint32_t snapshots_seq;
    int flushes; /* flushes of its records that the keeper was asked for */
    bool no_flushes;
    struct err why;
};

union rig_msg {
#define X(kind, s, number, fields) struct s s;
    KEEPER_MSGS(X)
    INIT_MSGS(X)
#undef X
};

static inline void rig_answer_flush(struct rig *r);

static inline void rig_turn(struct rig *r)
{
    struct err e;

    CHECK_INT(loop_turn(r->loop, 1, &e), 0);
    rig_answer_flush(r);
}

/* `cond` may have effects: it is not asked again once it holds. */
#define RIG_UNTIL(r, cond)                                                                         \
    do {                                                                                           \
        int turns_ = 0;                                                                            \
        while (!(cond) && turns_++ < RIG_TURNS)                                                    \
            rig_turn(r);                                                                           \
        CHECK(turns_ < RIG_TURNS);                                                                 \
    } while (0)

static inline void rig_settle(struct rig *r)
{
    for (int i = 0; i < 5; i++)
        rig_turn(r);
}

/* ---- frames ---- */

static inline void peer_raw(struct peer *p, const void *bytes, size_t n)
{
    CHECK_INT(send(p->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT), (ssize_t)n);
}

static inline void peer_say(struct peer *p, const struct wire_msg *m, uint32_t seq, const void *msg)
{
    autobuf struct buf out = BUF_INIT(8u << 20);
    struct err e;

    CHECK_INT(wire_put(&out, m, seq, msg, &e), 0);
    peer_raw(p, buf_data(&out), out.len);
}

/* True when a whole frame is there. */
static inline bool peer_has(struct peer *p, struct wire_head *head, const char **body)
{
    char *room = buf_room(&p->in, 64u << 10);
    struct err e;
    ssize_t n = recv(p->fd, room, 64u << 10, MSG_DONTWAIT);

    if (n > 0)
        buf_added(&p->in, (size_t)n);
    return wire_peek(&p->in, head, body, &e) == 1;
}

/* Waits for a request of that type; returns its seq. Strings in `msg` are good
 * until the next call for this peer. */
static inline uint32_t peer_hear(struct rig *r, struct peer *p, const struct wire_msg *m,
                                 union rig_msg *msg)
{
    static char body[16][4096];
    static unsigned turn;
    struct wire_head head = {0};
    const char *at = NULL;
    struct err e;
    char *copy = body[turn++ % 16];

    RIG_UNTIL(r, peer_has(p, &head, &at));
    CHECK_INT(head.type, m->type);
    CHECK(head.len <= 4096);
    memcpy(copy, at, head.len);
    buf_consume(&p->in, WIRE_HEAD + head.len);
    CHECK_INT(wire_get(m, copy, head.len, msg, &e), 0);
    return head.seq;
}

static inline bool peer_is_closed(struct peer *p)
{
    char c;
    ssize_t n = recv(p->fd, &c, 1, MSG_DONTWAIT | MSG_PEEK);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}

static inline void peer_close(struct peer *p)
{
    drop_fd(&p->fd);
    buf_free(&p->in);
}

/* ---- the keeper ---- */

static inline uint32_t keeper_hear(struct rig *r, uint16_t type, union rig_msg *msg)
{
    return peer_hear(r, &r->keeper, keeper_msg(type), msg);
}

static inline void keeper_say(struct rig *r, uint16_t type, uint32_t seq, const void *msg)
{
    peer_say(&r->keeper, keeper_msg(type), seq, msg);
}

static inline void keeper_ok_to(struct rig *r, uint32_t seq)
{
    keeper_say(r, KEEPER_OK, seq, &(struct keeper_ok){0});
}

/* Answers the flush that is part of every create and delete. */
static inline void rig_answer_flush(struct rig *r)
{
    struct wire_head head;
    const char *body;

    while (r->g != NULL && r->keeper.fd >= 0 && peer_has(&r->keeper, &head, &body) &&
           (head.type == KEEPER_TOLD || (head.type == KEEPER_FLUSH && !r->no_flushes))) {
        buf_consume(&r->keeper.in, WIRE_HEAD + head.len);
        if (head.type == KEEPER_TOLD) {
            r->told++;
            continue;
        }
        keeper_ok_to(r, head.seq);
        r->flushes++;
    }
}

static inline struct keeper_sandbox keeper_box(const char *id, enum keeper_state state)
{
    return (struct keeper_sandbox){.id = id,
                                   .state = state,
                                   .template = "base",
                                   .boot_id = "boot-1",
                                   .reason = state == KEEPER_STOPPED ? "the host restarted" : "",
                                   .memory = 1 << 30};
}

/* ---- init ---- */

static inline int init_listen(struct rig *r, const char *id)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", r->dir, id);
    unlink(a.sun_path);
    CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(listen(fd, 8), 0);
    return fd;
}

static inline struct peer init_accept(struct rig *r, int listen_fd)
{
    struct peer p = {.fd = -1, .in = BUF_INIT(8u << 20)};

    RIG_UNTIL(r, (p.fd = accept(listen_fd, NULL, NULL)) >= 0);
    return p;
}

static inline void init_say(struct peer *p, uint16_t type, uint32_t seq, const void *msg)
{
    peer_say(p, init_msg(type), seq, msg);
}

static inline void init_hello_to(struct peer *p)
{
    init_say(p, INIT_HELLO, 0, &(struct init_hello){.version = INIT_VERSION, .boot_id = "boot-1"});
}

static inline uint32_t init_hear(struct rig *r, struct peer *p, uint16_t type, union rig_msg *msg)
{
    return peer_hear(r, p, init_msg(type), msg);
}

/* ---- the rig ---- */

static inline void rig_on_ready(void *arg)
{
    ((struct rig *)arg)->ready++;
}

static inline void rig_on_lost(void *arg, const struct err *why)
{
    struct rig *r = arg;

    r->lost++;
    r->why = *why;
}

static inline void rig_new(struct rig *r)
{
    struct err e;
    char path[64];

    *r = (struct rig){.run_fd = -1};
    strcpy(r->dir, "/tmp/cove-unit-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    r->run_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/cove.db", r->dir);
    CHECK_INT(config_load(&r->config, 0, NULL, &e), 0);
    CHECK_INT(loop_new(&r->loop, &e), 0);
    CHECK_INT(store_open(path, &r->store, &e), 0);
    CHECK_INT(store_set_joined(r->store, &e), 0); /* one that has been used before */
}

/* Starts the engine up to its questions for the lists; returns the seq of the first. */
static inline uint32_t rig_start(struct rig *r)
{
    struct engine_opts o = {.loop = r->loop,
                            .config = &r->config,
                            .store = r->store,
                            .run_fd = r->run_fd,
                            .first_key = "root",
                            .on_ready = rig_on_ready,
                            .on_lost = rig_on_lost,
                            .arg = r};
    union rig_msg m;
    struct err e;
    uint32_t seq;
    int pair[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    o.keeper_fd = r->engine_fd = pair[0];
    r->keeper = (struct peer){.fd = pair[1], .in = BUF_INIT(8u << 20)};
    CHECK_INT(engine_new(&o, &r->g, &e), 0);
    seq = keeper_hear(r, KEEPER_LIST, &m);
    r->snapshots_seq = keeper_hear(r, KEEPER_SNAPSHOTS, &m);
    return seq;
}

static inline void rig_join(struct rig *r, uint32_t seq)
{
    keeper_say(r, KEEPER_END, seq, &(struct keeper_end){0});
    keeper_say(r, KEEPER_END, r->snapshots_seq, &(struct keeper_end){0});
    RIG_UNTIL(r, r->ready || r->lost);
    CHECK_INT(r->ready, 1);
}

static inline void rig_stop(struct rig *r)
{
    engine_free(r->g);
    r->g = NULL;
    r->ready = 0;
    peer_close(&r->keeper);
    drop_fd(&r->engine_fd);
}

static inline void rig_free(struct rig *r)
{
    char cmd[64];

    rig_stop(r);
    store_close(r->store);
    loop_free(r->loop);
    config_free(&r->config);
    drop_fd(&r->run_fd);
    snprintf(cmd, sizeof(cmd), "rm -rf %s", r->dir);
    CHECK_INT(system(cmd), 0);
    clock_release();
}

/* ---- what came back ---- */

struct told {
    int n;
    int failed;
    struct err e;
    char id[64], state[16], reason[256];
    uint64_t value;
};

static inline void told_err(struct told *t, const struct err *e)
{
    t->n++;
    t->failed = e != NULL;
    if (e != NULL)
        t->e = *e;
}

static inline void told_sandbox(void *arg, const struct sandbox *s, const struct err *e)
{
    struct told *t = arg;

    told_err(t, e);
    if (s != NULL) {
        snprintf(t->id, sizeof(t->id), "%s", s->id);
        snprintf(t->state, sizeof(t->state), "%s", sandbox_state_name(s->state));
    }
}

static inline void told_done(void *arg, const struct err *e)
{
    told_err(arg, e);
}

/* A running sandbox, made the whole way. `monitor` is the init's end of its
 * first connection, already greeted. */
static inline void rig_create(struct rig *r, const char *id, uint64_t timeout_ms,
                              enum sandbox_end on_timeout, int *ret_listen, struct peer *monitor)
{
    struct create_opts o = {.key = KEY, .timeout_ms = timeout_ms, .on_timeout = on_timeout};
    struct keeper_sandbox box = keeper_box(id, KEEPER_RUNNING);
    struct told t = {0};
    union rig_msg m;
    uint32_t seq;

    *ret_listen = init_listen(r, id);
    engine_create(r->g, &o, told_sandbox, &t);
    seq = keeper_hear(r, KEEPER_CREATE, &m);
    keeper_say(r, KEEPER_SANDBOX, seq, &box);
    RIG_UNTIL(r, t.n == 1);
    CHECK_INT(t.failed, 0);
    CHECK_STR(t.id, id);
    *monitor = init_accept(r, *ret_listen);
    init_hello_to(monitor);
    init_hear(r, monitor, INIT_MONITOR, &m);
}

#endif
