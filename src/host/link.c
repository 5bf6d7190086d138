/* link.c - the keeper that the front sees: it speaks wire/keeper.h and has one sandbox.
 *
 * The table is all that there is; what is not in it is answered `unsupported`. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "host/internal.h"
#include "wire/keeper.h"
#include "json/write.h"

#define LINK_IN_MAX (256u << 10)
#define ENV_WORDS_MAX 500u
#define LINK_OUT_MAX (1u << 20)
#define LINK_READ 4096u

static void lost(struct host *h, const char *why)
{
    if (!h->ending)
        log_warn("lost the front: %s", why);
    link_end(h);
    if (h->front.pid > 0)
        kill(h->front.pid, SIGKILL);
}

static void flush(struct host *h)
{
    struct err e;

    wire_flush(h->link.fd, &h->link.out, &e); /* an error shows on reading too */
    loop_io_set(h->loop, &h->link.io, EPOLLIN | (h->link.out.len > 0 ? (uint32_t)EPOLLOUT : 0u));
}

static void answer(struct host *h, uint16_t type, uint32_t seq, const void *msg)
{
    struct err e;

    if (h->link.fd < 0)
        return;
    if (wire_put(&h->link.out, keeper_msg(type), seq, msg, &e) < 0)
        log_error("answer the front: %s", e.msg);
    flush(h);
}

static void refuse(struct host *h, uint32_t seq, enum err_kind kind, const char *text)
{
    answer(h, KEEPER_FAIL, seq, &(struct keeper_fail){.code = err_code(kind), .message = text});
}

/* COVE_API_KEY and the like: by it a command could act as a client of a server. */
static bool is_passed(const char *var)
{
    /* Of the server's shell and terminal; and as root init sets these for the user of each command. */
    static const char *const never[] = {"COVE_", "PWD=", "OLDPWD=", "SHLVL=", "_=", "TERM="};
    static const char *const own[] = {"HOME=", "USER=", "LOGNAME=", "SHELL="};

    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (strncmp(var, never[i], strlen(never[i])) == 0)
            return false;
    for (size_t i = 0; geteuid() == 0 && i < ARRAY_LEN(own); i++)
        if (strncmp(var, own[i], strlen(own[i])) == 0)
            return false;
    return true;
}

/* As those of an image: commands begin where this server began, with its environment. */
static void put_settings(const struct host *h, struct buf *out)
{
    static const char *const none[] = {"entrypoint", "cmd"};
    char cwd[4096], user[16];
    size_t room = IMAGE_SETTINGS_MAX / 2; /* escapes may double a text */
    unsigned n = 0;
    struct json_w w;

    str_fmt(user, sizeof(user), "%u", (unsigned)geteuid());
    jw_init(&w, out);
    jw_open(&w);
    jw_kstr(&w, "user", h->o->user != NULL ? h->o->user : user);
    jw_kstr(&w, "workdir", getcwd(cwd, sizeof(cwd)) != NULL ? cwd : "/");
    jw_key(&w, "env");
    jw_open_list(&w);
    for (char **v = environ; *v != NULL && n < ENV_WORDS_MAX; v++) {
        size_t len = strlen(*v);
        const char *eq = strchr(*v, '=');

        if (eq == NULL || eq == *v || !is_passed(*v) || out->len + len > room)
            continue;
        jw_str(&w, *v);
        n++;
    }
    jw_close_list(&w);
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        jw_key(&w, none[i]);
        jw_open_list(&w);
        jw_close_list(&w);
    }
    jw_close(&w);
}

static void send_sandbox(struct host *h, uint32_t seq)
{
    autobuf struct buf settings = BUF_INIT(IMAGE_SETTINGS_MAX);
    struct keeper_sandbox m = {.id = HOST_ID,
                               .state =
                                   h->engine.state == ENGINE_UP ? KEEPER_RUNNING : KEEPER_STOPPED,
                               .template = "host",
                               .boot_id = h->engine.boot_id,
                               .reason = h->engine.state == ENGINE_UP ? "" : "its init ended",
                               .created_ms = h->engine.started_ms,
                               .network = "host",
                               .told = 1};

    put_settings(h, &settings);
    m.settings = (struct wire_bytes){buf_data(&settings), (uint32_t)settings.len};
    answer(h, KEEPER_SANDBOX, seq, &m);
}

/* ---- the operations ---- */

static void op_list(struct host *h, uint32_t seq)
{
    h->link.listed = true;
    send_sandbox(h, seq);
    answer(h, KEEPER_END, seq, &(struct keeper_end){.count = 1});
}

static void op_none(struct host *h, uint32_t seq)
{
    answer(h, KEEPER_END, seq, &(struct keeper_end){0});
}

static void op_ok(struct host *h, uint32_t seq)
{
    answer(h, KEEPER_OK, seq, &(struct keeper_ok){0});
}

static void op_stat(struct host *h, uint32_t seq)
{
    answer(h, KEEPER_STATS, seq,
           &(struct keeper_stats){.sandboxes = 1,
                                  .sandboxes_max = 1,
                                  .disk_backed = 1,
                                  .proven = 1,
                                  .lacks = "sandboxes"});
}

static void op_boot(struct host *h, uint32_t seq)
{
    struct err e;

    if (engine_start(h, &e) < 0)
        refuse(h, seq, e.kind, e.msg);
    else
        send_sandbox(h, seq);
}

static void op_halt(struct host *h, uint32_t seq)
{
    engine_stop(h);
    op_ok(h, seq);
}

static void op_ready(struct host *h, uint32_t seq)
{
    (void)seq;
    host_is_ready(h);
}

static void op_told(struct host *h, uint32_t seq)
{
    (void)h;
    (void)seq;
}

/* clang-format off */
static const struct {
    uint16_t type;
    void (*run)(struct host *h, uint32_t seq);
} ops[] = {
    {KEEPER_LIST,      op_list},
    {KEEPER_BOOT,      op_boot},
    {KEEPER_HALT,      op_halt},
    {KEEPER_TEMPLATES, op_none},
    {KEEPER_SNAPSHOTS, op_none},
    {KEEPER_TRAFFIC,   op_none},
    {KEEPER_SAMPLE,    op_none},
    {KEEPER_STAT,      op_stat},
    {KEEPER_FLUSH,     op_ok},
    {KEEPER_READY,     op_ready},
    {KEEPER_TOLD,      op_told},
};
/* clang-format on */

static void unsupported(struct host *h, uint32_t seq)
{
    refuse(
        h, seq, ERR_UNSUPPORTED,
        "not supported in host mode: this server has one machine, itself, and makes no sandboxes; "
        "run `cove serve` for those");
}

static enum wire_next serve(void *arg, const struct wire_head *head, const char *body,
                            struct err *e)
{
    struct host *h = arg;

    (void)body;
    if (keeper_msg(head->type) == NULL) {
        err_set(e, ERR_INVALID, "unknown message %u", head->type);
        return WIRE_BROKEN;
    }
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (ops[i].type == head->type && (h->link.listed || head->type == KEEPER_LIST ||
                                          ops[i].run == op_none || ops[i].run == op_stat)) {
            ops[i].run(h, head->seq);
            return h->link.fd < 0 ? WIRE_GONE : WIRE_NEXT;
        }
    unsupported(h, head->seq);
    return h->link.fd < 0 ? WIRE_GONE : WIRE_NEXT;
}

static void on_io(struct loop_io *io, uint32_t events)
{
    struct host *h = CONTAINER_OF(io, struct host, link.io);
    struct err e;
    int got;

    if (events & EPOLLOUT)
        flush(h);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    got = wire_receive(h->link.fd, &h->link.in, LINK_READ, &e);
    if (got < 0 || (got > 0 && wire_pump(&h->link.in, WIRE_FRAME_MAX, serve, h, &e) < 0))
        lost(h, e.msg);
}

int link_begin(struct host *h, int fd, struct err *e)
{
    h->link.fd = fd;
    h->link.listed = false;
    buf_init(&h->link.in, LINK_IN_MAX);
    buf_init(&h->link.out, LINK_OUT_MAX);
    return loop_io_start(h->loop, &h->link.io, fd, EPOLLIN, on_io, e);
}

void link_end(struct host *h)
{
    loop_io_stop(h->loop, &h->link.io);
    drop_fd(&h->link.fd);
    buf_free(&h->link.in);
    buf_free(&h->link.out);
}

void link_died(struct host *h, const char *why)
{
    answer(h, KEEPER_DIED, 0, &(struct keeper_died){.id = HOST_ID, .reason = why});
}
