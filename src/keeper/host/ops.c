/* ops.c - see ops.h. The table of operations is all that the front can do. */
#include "keeper/ops.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "keeper/host/front.h"
#include "keeper/image.h"
#include "keeper/life.h"
#include "keeper/meter.h"
#include "keeper/mount.h"
#include "keeper/network.h"
#include "keeper/quarantine.h"
#include "keeper/snapshot.h"
#include "keeper/template.h"

#define LINK_IN_MAX (256u << 10)
#define LINK_READ (64u << 10)
#define LINK_OUT_MAX (16u << 20) /* a list of every sandbox fits many times */

/* When a request is allowed: the front must first have asked for the list. */
enum when { WHEN_NEVER, WHEN_ALWAYS, WHEN_LISTED };

struct link {
    struct keeper *k;
    int fd;
    struct loop_io io;
    struct buf in, out;
    bool listed, ready;
    uint32_t refresh_seq; /* of the one template refresh that may run */
};

static void lost(struct keeper *k, const char *why)
{
    if (!front_is_stopping(k))
        log_warn("lost the front: %s", why);
    link_close(k);
    front_ended(k);
}

static void flush(struct link *l)
{
    struct err e;

    wire_flush(l->fd, &l->out, &e); /* an error shows on reading too */
    loop_io_set(l->k->loop, &l->io, EPOLLIN | (l->out.len > 0 ? (uint32_t)EPOLLOUT : 0u));
}

void link_send(struct keeper *k, uint16_t type, uint32_t seq, const void *msg)
{
    struct err e;

    if (k->link == NULL || seq == ASK_FORGOTTEN)
        return;
    if (wire_put(&k->link->out, keeper_msg(type), seq, msg, &e) < 0)
        log_error("answer the front: %s", e.msg);
    flush(k->link);
}

void link_ok(struct keeper *k, uint32_t seq)
{
    link_send(k, KEEPER_OK, seq, &(struct keeper_ok){0});
}

void link_fail(struct keeper *k, uint32_t seq, const struct err *e)
{
    struct keeper_fail m = {.code = err_code(e->kind), .message = e->msg};

    link_send(k, KEEPER_FAIL, seq, &m);
}

static void send_sandbox(struct keeper *k, uint32_t seq, const struct sandbox *sb,
                         struct wire_bytes settings)
{
    const struct record *r = &sb->rec;
    struct keeper_sandbox m = {
        .id = r->id,
        .state = r->phase == PHASE_DAMAGED    ? KEEPER_DAMAGED
                 : r->phase != PHASE_GIVEN    ? KEEPER_STOPPED
                 : sb->state == STATE_RUNNING ? KEEPER_RUNNING
                                              : KEEPER_PAUSED,
        .template = r->template,
        .boot_id = r->boot_id,
        .reason = r->reason,
        .created_ms = r->created_ms,
        .settings = settings,
        .network = network_mode(r->network),
        .address = network_address(sb),
        .told = r->told,
        .relaxed = r->relaxed,
        .lost_ms = r->lost_ms,
    };

    LIMITS_COPY(&m, &r->limits);
    link_send(k, KEEPER_SANDBOX, seq, &m);
}

void link_sandbox(struct keeper *k, uint32_t seq, const struct sandbox *sb)
{
    send_sandbox(k, seq, sb, image_settings(k, sb->rec.layer));
}

/* ---- the operations ---- */

static int op_list(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    bool settings = ((const struct keeper_list *)msg)->settings != 0;
    struct keeper_end end = {0};
    struct sandbox *sb;

    (void)e;
    SANDBOX_EACH(k, sb)
    {
        if (sb->rec.phase != PHASE_GIVEN && sb->rec.phase != PHASE_STOPPED &&
            sb->rec.phase != PHASE_DAMAGED)
            continue;
        send_sandbox(k, seq, sb,
                     settings ? image_settings(k, sb->rec.layer) : (struct wire_bytes){"", 0});
        end.count++;
    }
    k->link->listed = true;
    link_send(k, KEEPER_END, seq, &end);
    return 0;
}

static int op_create(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    return sandbox_create(k, seq, msg, e);
}

static int op_rules(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    return sandbox_rules(k, seq, msg, e);
}

static int op_relimit(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    return sandbox_relimit(k, seq, msg, e);
}

struct count_call {
    struct keeper *k;
    uint32_t seq;
    uint64_t n;
};

static void send_count(void *arg, const struct keeper_count *c)
{
    struct count_call *call = arg;

    link_send(call->k, KEEPER_COUNT, call->seq, c);
    call->n++;
}

static int op_traffic(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    struct count_call c = {.k = k, .seq = seq};
    struct keeper_end end;

    (void)msg;
    if (network_counts(k, send_count, &c, e) < 0)
        return -1;
    end = (struct keeper_end){.count = c.n};
    link_send(k, KEEPER_END, seq, &end);
    return 0;
}

static int op_snapshots(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    struct keeper_end end = {0};
    struct snapshot *s;

    (void)msg;
    (void)e;
    LIST_EACH (&k->snapshots->all, s, struct snapshot, link) {
        struct keeper_snap m;

        if ((s->rec.flags & SNAPSHOT_WANTED) == 0)
            continue;
        snapshot_message(s, &m);
        link_send(k, KEEPER_SNAP, seq, &m);
        end.count++;
    }
    link_send(k, KEEPER_END, seq, &end);
    return 0;
}

static int op_unsnap(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    if (snapshot_delete(k, ((const struct keeper_unsnap *)msg)->id, e) < 0)
        return -1;
    link_ok(k, seq);
    return 0;
}

static int op_sample(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    return meter_sample(k, seq, ((const struct keeper_sample *)msg)->id, e);
}

static void send_template(struct keeper *k, uint32_t seq, const struct keeper_template *m)
{
    link_send(k, KEEPER_TEMPLATE, seq, m);
}

static int op_templates(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    struct keeper_end end;
    struct template_row row;
    struct keeper_template m;

    (void)msg;
    if (template_show(k, "base", &row, e) < 0)
        return -1;
    m = (struct keeper_template){.name = row.name,
                                 .state = row.state,
                                 .bytes = row.bytes,
                                 .files = row.files,
                                 .created_ms = row.created_ms,
                                 .note = row.note};
    link_send(k, KEEPER_TEMPLATE, seq, &m);
    end.count = 1 + image_list(k, send_template, seq);
    link_send(k, KEEPER_END, seq, &end);
    return 0;
}

static int op_import(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    return sandbox_import(k, seq, msg, e);
}

static int op_alias(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    const struct keeper_alias *m = msg;
    if (image_alias(k, m->name, m->alias, e) < 0)
        return -1;
    link_ok(k, seq);
    return 0;
}

static int op_forget(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    if (image_remove(k, ((const struct keeper_forget *)msg)->name, e) < 0)
        return -1;
    link_ok(k, seq);
    return 0;
}

static void refresh_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct keeper *k = arg;
    struct keeper_progress m = {.text = text, .done = done, .total = total};

    if (k->link != NULL && k->link->refresh_seq != 0)
        link_send(k, KEEPER_PROGRESS, k->link->refresh_seq, &m);
}

static void refresh_done(void *arg, const struct err *e)
{
    struct keeper *k = arg;
    uint32_t seq = k->link == NULL ? 0 : k->link->refresh_seq;

    if (seq == 0)
        return;
    k->link->refresh_seq = 0;
    if (e != NULL)
        link_fail(k, seq, e);
    else
        link_ok(k, seq);
}

static int op_refresh(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    const struct keeper_refresh *m = msg;

    if (template_refresh(k, m->name, refresh_progress, refresh_done, k, e) < 0)
        return -1;
    k->link->refresh_seq = seq;
    return 0;
}

void link_stats(struct keeper *k, uint32_t seq)
{
    struct keeper_stats m = {.sandboxes = k->counts[COUNT_GIVEN],
                             .pooled = k->counts[COUNT_POOLED],
                             .teardown = k->counts[COUNT_TEARDOWN],
                             .sandboxes_max = k->nsandboxes_max};
    struct reserve_view r;
    struct err e;

    reserve_show(k, &r);
    m.disk_total = r.total;
    m.disk_free = r.free;
    m.disk_allocated = r.allocated;
    m.disk_used = r.used;
    m.reserve_wanted = r.wanted;
    m.reserve = r.now;
    m.disk_low = r.low;
    m.disk_backed = r.backed;
    m.lacks = sandbox_lacks(k, &e);
    m.failing = k->proof.stage;
    m.proven = k->proof.at_ms != 0;
    m.proofs = k->proof.builds;
    if (strcmp(m.lacks, "disk") == 0 &&
        e.kind != ERR_DISK_FULL) { /* read-only: not for want of space */
        m.failing = m.lacks;
        m.lacks = "";
    }
    m.memory_low = memory_check(k, &e) < 0;
    m.memory_total = k->memory.limit;
    m.memory_left = k->memory.left;
    m.io_weights = k->cgroups.io;
    m.io_limits = k->cgroups.io_max;
    m.bandwidth = k->network.limits;
    m.firewall = k->network.beside;
    link_send(k, KEEPER_STATS, seq, &m);
}

static int op_stat(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    (void)e;
    if (((const struct keeper_stat *)msg)->prove == 0 || !proof_wait(k, seq))
        link_stats(k, seq);
    return 0;
}

static int op_mount(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    if (mount_up(k, msg, e) < 0)
        return -1;
    link_ok(k, seq);
    return 0;
}

static int op_unmount(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    if (mount_down(k, msg, e) < 0)
        return -1;
    link_ok(k, seq);
    return 0;
}

static int op_flush(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    (void)msg;
    return records_flush(k, seq, e);
}

/* Not flushed: if the host fails now and the row is lost too, the sandbox counts as one that no
 * client knew. */
static int op_told(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    const char *id = ((const struct keeper_told *)msg)->id;
    struct sandbox *sb = sandbox_find(k, id);

    (void)seq;
    if (sb == NULL)
        return snapshot_told(k, id, e);
    if (sb->rec.told || (sb->rec.phase != PHASE_GIVEN && sb->rec.phase != PHASE_STOPPED))
        return 0;
    sb->rec.told = 1;
    return record_save(sb, false, e);
}

static int op_ready(struct keeper *k, uint32_t seq, const void *msg, struct err *e)
{
    (void)seq;
    (void)msg;
    (void)e;
    k->link->ready = true;
    front_ready(k);
    return 0;
}

/* A request about one sandbox is an event of its state (life/states.c); these messages begin
 * with its id. */
#define BEGINS_WITH_ID(message) _Static_assert(offsetof(struct message, id) == 0, "id first")
BEGINS_WITH_ID(keeper_boot);
BEGINS_WITH_ID(keeper_destroy);
BEGINS_WITH_ID(keeper_halt);
BEGINS_WITH_ID(keeper_pause);
BEGINS_WITH_ID(keeper_thaw);
BEGINS_WITH_ID(keeper_snapshot);
BEGINS_WITH_ID(keeper_commit);
BEGINS_WITH_ID(keeper_recover);

/* clang-format off */
static const struct op {
    uint16_t type;
    enum when when;
    int (*run)(struct keeper *k, uint32_t seq, const void *msg, struct err *e);
    enum event event; /* without `run` */
    bool news; /* seq 0: wants no answer */
} ops[] = {
    {KEEPER_LIST,      WHEN_ALWAYS, op_list},
    {KEEPER_CREATE,    WHEN_LISTED, op_create},
    {KEEPER_BOOT,      WHEN_LISTED, .event = EV_BOOT},
    {KEEPER_DESTROY,   WHEN_LISTED, .event = EV_DELETE},
    {KEEPER_HALT,      WHEN_LISTED, .event = EV_STOP},
    {KEEPER_PAUSE,     WHEN_LISTED, .event = EV_PAUSE},
    {KEEPER_THAW,      WHEN_LISTED, .event = EV_RESUME},
    {KEEPER_SNAPSHOT,  WHEN_LISTED, .event = EV_SNAPSHOT},
    {KEEPER_COMMIT,    WHEN_LISTED, .event = EV_COMMIT},
    {KEEPER_RECOVER,   WHEN_LISTED, .event = EV_RECOVER},
    {KEEPER_SNAPSHOTS, WHEN_LISTED, op_snapshots},
    {KEEPER_UNSNAP,    WHEN_LISTED, op_unsnap},
    {KEEPER_SAMPLE,    WHEN_LISTED, op_sample},
    {KEEPER_TEMPLATES, WHEN_LISTED, op_templates},
    {KEEPER_REFRESH,   WHEN_LISTED, op_refresh},
    {KEEPER_STAT,      WHEN_ALWAYS, op_stat},
    {KEEPER_RULES,     WHEN_LISTED, op_rules},
    {KEEPER_TRAFFIC,   WHEN_LISTED, op_traffic},
    {KEEPER_READY,     WHEN_LISTED, op_ready, .news = true},
    {KEEPER_IMPORT,    WHEN_LISTED, op_import},
    {KEEPER_ALIAS,     WHEN_LISTED, op_alias},
    {KEEPER_FORGET,    WHEN_LISTED, op_forget},
    {KEEPER_MOUNT,     WHEN_LISTED, op_mount},
    {KEEPER_UNMOUNT,   WHEN_LISTED, op_unmount},
    {KEEPER_FLUSH,     WHEN_LISTED, op_flush},
    {KEEPER_TOLD,      WHEN_LISTED, op_told, .news = true},
    {KEEPER_RELIMIT,   WHEN_LISTED, op_relimit},
};
/* clang-format on */

static int run(struct keeper *k, const struct op *op, uint32_t seq, const void *msg, struct err *e)
{
    const char *id;
    struct sandbox *sb;

    if (op->run != NULL)
        return op->run(k, seq, msg, e);
    id = *(const char *const *)msg;
    sb = sandbox_find(k, id);
    if (sb == NULL)
        return err_set(e, ERR_NOT_FOUND, "no sandbox %s", id);
    return sandbox_event(sb, op->event, &(struct news){.seq = seq, .msg = msg}, e);
}

/* Any request, decoded. */
union request {
#define X(kind, s, number, fields) struct s s;
    KEEPER_MSGS(X)
#undef X
};

/* -1: the front broke the protocol, and is ended. */
static int serve(struct keeper *k, const struct wire_head *head, const char *body, struct err *e)
{
    const struct wire_msg *m = keeper_msg(head->type);
    union request msg;
    struct err why;

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (ops[i].type != head->type)
            continue;
        if (m == NULL || (head->seq == 0) != ops[i].news || head->seq == ASK_FORGOTTEN)
            return err_set(e, ERR_INVALID, "request %u cannot be read", head->type);
        if (ops[i].when == WHEN_LISTED && !k->link->listed)
            return err_set(e, ERR_DENIED, "%s before list", m->name);
        if (wire_get(m, body, head->len, &msg, e) < 0)
            return -1;
        if (run(k, &ops[i], head->seq, &msg, &why) == 0)
            return 0;
        if (ops[i].news)
            log_warn("%s", why.msg);
        else
            link_fail(k, head->seq, &why);
        return 0;
    }
    return err_set(e, ERR_DENIED, "request %u is not in the table", head->type);
}

static enum wire_next heard(void *arg, const struct wire_head *head, const char *body,
                            struct err *e)
{
    struct link *l = arg;
    struct keeper *k = l->k;

    if (serve(k, head, body, e) < 0)
        return WIRE_BROKEN;
    return k->link == l ? WIRE_NEXT : WIRE_GONE;
}

static void readable(struct loop_io *io, uint32_t events)
{
    struct link *l = CONTAINER_OF(io, struct link, io);
    struct err e;
    int got;

    if (events & EPOLLOUT)
        flush(l);
    got = wire_receive(l->fd, &l->in, LINK_READ, &e);
    if (got < 0 || (got > 0 && wire_pump(&l->in, WIRE_FRAME_MAX, heard, l, &e) < 0))
        lost(l->k, e.msg);
}

int link_open(struct keeper *k, int fd, struct err *e)
{
    struct link *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    l->k = k;
    l->fd = fd;
    buf_init(&l->in, LINK_IN_MAX);
    buf_init(&l->out, LINK_OUT_MAX);
    if (loop_io_start(k->loop, &l->io, fd, EPOLLIN, readable, e) < 0) {
        free(l);
        return -1;
    }
    k->link = l;
    k->nfronts++;
    return 0;
}

void link_close(struct keeper *k)
{
    struct link *l = k->link;
    struct sandbox *sb;

    if (l == NULL)
        return;
    k->link = NULL;
    loop_io_stop(k->loop, &l->io);
    drop_fd(&l->fd);
    buf_free(&l->in);
    buf_free(&l->out);
    free(l);
    proof_forget(k);
    /* Running requests continue; a sandbox that is given after this is in the list for the next
     * front, which has no row for it. */
    SANDBOX_EACH(k, sb)
    {
        if (sb->ask != 0)
            sb->ask = ASK_FORGOTTEN;
        sandbox_tell(sb, EV_FRONT_GONE);
    }
}

bool link_is_ready(const struct keeper *k)
{
    return k->link != NULL && k->link->ready;
}
