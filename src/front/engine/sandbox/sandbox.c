/* sandbox.c - operations on sandboxes: create, get, delete, pause, resume, timeout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/image.h"
#include "front/engine/internal.h"
#include "front/engine/sandbox/fill.h"
#include "mem/mem.h"

#define SANDBOX_TEMPLATE "base"
#define SANDBOX_TIMEOUT_MAX (1ull << 50)

/* ---- create ---- */

struct create {
    struct engine *g;
    struct list link;      /* in engine.asking or engine.waiting */
    struct waiter *waiter; /* NULL once the client was told that creating the sandbox timed out */
    struct store_sandbox row;
    char snapshot[KEEPER_ID_MAX + 1]; /* that the keeper makes it from; or "" */
    struct buf rules;                 /* packed */
    struct flush flush;               /* of its row */
    struct quota_user *user;          /* charged for it until there is a box */
    struct quotas charged;
    char id[KEEPER_ID_MAX + 1]; /* meanwhile */
    fill_cb *fill;              /* or NULL */
    void *fill_arg;
    char text[]; /* what the row points to */
};

static const char *keep(char **at, const char *text)
{
    char *to = *at;

    *at = stpcpy(to, text) + 1;
    return to;
}

static struct limits limits_of(const struct engine *g, const struct create_opts *o)
{
    struct limits l = o->limits;

    LIMITS_DEFAULT(&l, g->o.config);
    ceilings_apply(g, &l);
    return l;
}

static struct create *create_new(struct engine *g, const struct create_opts *o)
{
    const char *template = o->template != NULL ? o->template : SANDBOX_TEMPLATE;
    const char *network = o->network != NULL ? o->network : "";
    const char *metadata = o->metadata != NULL ? o->metadata : "{}";
    const char *plane = o->plane != NULL ? o->plane : "";
    const char *name = o->name != NULL ? o->name : "";
    size_t len = strlen(o->key) + strlen(template) + strlen(network) + strlen(metadata) +
                 strlen(plane) + strlen(name) + 6;
    struct create *c = mem_zeroed(1, sizeof(*c) + len + o->env_len);
    char *at = c->text;
    struct limits limits;

    buf_init(&c->rules, WIRE_RULES_BYTES);
    box_pack_rules(&c->rules, o->rules, o->nrules);
    c->g = g;
    list_init(&c->link);
    c->row.key = keep(&at, o->key);
    c->row.template = keep(&at, template);
    c->row.network = keep(&at, network);
    c->row.metadata = keep(&at, metadata);
    c->row.plane = keep(&at, plane);
    c->row.name = keep(&at, name);
    c->row.env = (struct store_bytes){at, o->env_len};
    if (o->env_len > 0)
        memcpy(at, o->env, o->env_len);
    c->row.on_timeout = o->on_timeout;
    c->row.timeout_ms = o->timeout_ms;
    c->row.auto_resume = o->auto_resume;
    c->row.idle_ms = o->idle_ms;
    c->row.guarded = o->guarded;
    c->row.log_output = o->log_output == CREATE_LOG_DEFAULT ? g->o.config->logs_output
                                                            : o->log_output == CREATE_LOG_OUTPUT;
    c->row.log_boot = "";
    c->row.relaxed =
        (o->fsync != FSYNC_SETTING ? o->fsync : fsync_of(g->o.config->fsync)) == FSYNC_RELAXED;
    limits = limits_of(g, o);
    LIMITS_COPY(&c->row, &limits);
    c->user = quota_user(g->o.quotas, o->key);
    c->charged = charge_of_new(&limits);
    quota_add(c->user, &c->charged);
    return c;
}

static void create_uncharge(struct create *c)
{
    quota_drop(c->user, &c->charged);
    c->charged = (struct quotas){0};
}

/* ---- those who wait until no create of a key is under way ---- */

struct settling {
    struct list link;
    struct waiter *waiter;
    char key[];
};

static bool is_creating(const struct engine *g, const char *key)
{
    const struct list *all[] = {&g->asking, &g->waiting, &g->ending};
    struct create *c;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        LIST_EACH (all[i], c, struct create, link)
            if (strcmp(c->row.key, key) == 0)
                return true;
    return false;
}

static void settling_free(struct settling *t)
{
    list_del(&t->link);
    free(t);
}

static void creates_settle(struct engine *g, const char *key)
{
    struct settling *t;

    LIST_EACH (&g->settling, t, struct settling, link)
        if (strcmp(t->key, key) == 0 && !is_creating(g, key)) {
            waiter_answer(t->waiter, "", NULL);
            settling_free(t);
        }
}

void engine_creates_settled(struct engine *g, const char *key, engine_done_cb *done, void *arg)
{
    struct settling *t = mem_zeroed(1, sizeof(*t) + strlen(key) + 1);

    strcpy(t->key, key);
    t->waiter = waiter_new(g, done, NULL, arg);
    list_add_tail(&g->settling, &t->link);
    creates_settle(g, t->key);
}

static void create_end(struct create *c, const char *id, const struct err *e)
{
    list_del(&c->link);
    creates_settle(c->g, c->row.key);
    create_uncharge(c);
    c->g->ncreates--;
    c->g->stats.creates += e == NULL;
    c->g->stats.create_failures += e != NULL;
    waiter_answer(c->waiter, id, e);
    buf_free(&c->rules);
    free(c);
}

static int insert(struct store *s, struct store_sandbox *row, struct err *e)
{
    if (store_begin_light(s, e) == 0 && store_sandbox_insert(s, row, e) == 0 &&
        store_commit(s, e) == 0)
        return 0;
    store_rollback(s);
    return -1;
}

/* On record first, then in memory: what a client is told of survives us. */
static struct box *create_keep(struct create *c, const struct keeper_sandbox *m, struct err *e)
{
    autobuf struct buf image = BUF_INIT(IMAGE_SETTINGS_MAX);
    struct engine *g = c->g;
    struct box *b;

    if (m->settings.len > 0 && image_defaults(m->settings.p, m->settings.len, &image, e) < 0)
        return NULL;
    c->row.image = (struct store_bytes){buf_data(&image), image.len};
    c->row.id = m->id;
    if (c->snapshot[0] != '\0') {
        c->row.template = m->template;
        c->row.snapshot = snap_pub(g, c->snapshot) != NULL ? c->snapshot : "";
    } else {
        c->row.snapshot = "";
    }
    c->row.network = m->network;
    c->row.rules = (struct store_bytes){buf_data(&c->rules), c->rules.len};
    c->row.state = STORE_RUNNING;
    c->row.boot_id = m->boot_id;
    c->row.reason = "";
    LIMITS_COPY(&c->row, m);
    c->row.created_ms = c->row.changed_ms = clock_real_ms();
    c->row.ends_ms = c->row.timeout_ms == 0 ? 0 : c->row.created_ms + c->row.timeout_ms;
    if (insert(g->o.store, &c->row, e) < 0)
        return NULL;
    create_uncharge(c);
    b = box_add(g, &c->row);
    if (b == NULL)
        err_set(e, ERR_INTERNAL, "sandbox %s: the keeper gave an id that is in use", m->id);
    else
        b->pub.address = m->address;
    return b;
}

static void create_ask(struct create *c);

static void create_queue(struct create *c)
{
    struct create *other;
    size_t n = 0;

    list_del(&c->link);
    LIST_EACH (&c->g->asking, other, struct create, link)
        n += strcmp(other->row.key, c->row.key) == 0;
    list_add_tail(n < ENGINE_CREATES_SHARE ? &c->g->asking : &c->g->waiting, &c->link);
    if (n < ENGINE_CREATES_SHARE)
        create_ask(c);
}

/* The keeper has answered. */
static void create_next(struct create *c)
{
    struct create *other;

    list_del(&c->link);
    list_add_tail(&c->g->ending, &c->link);
    LIST_EACH (&c->g->waiting, other, struct create, link)
        if (strcmp(other->row.key, c->row.key) == 0) {
            list_del(&other->link);
            list_add_tail(&c->g->asking, &other->link);
            create_ask(other);
            return;
        }
}

/* There is no template of that name, but the client has a snapshot of it. */
static bool is_snapshot(struct create *c, const struct err *why)
{
    const struct snapshot *s;

    if (why == NULL || why->kind != ERR_NOT_FOUND || c->snapshot[0] != '\0' || c->waiter == NULL ||
        c->fill != NULL)
        return false;
    s = engine_snapshot_get((struct ref){c->g, c->row.key, c->row.template});
    if (s != NULL)
        str_fmt(c->snapshot, sizeof(c->snapshot), "%s", s->id);
    return s != NULL;
}

static void create_drop(void *arg)
{
    struct create *c = arg;

    list_del(&c->link);
    free(c->waiter);
    buf_free(&c->rules);
    free(c);
}

void creates_free(struct engine *g)
{
    struct settling *t;

    while ((t = LIST_FIRST(&g->settling, struct settling, link)) != NULL) {
        free(t->waiter);
        settling_free(t);
    }
    while (!list_empty(&g->waiting))
        create_drop(LIST_FIRST(&g->waiting, struct create, link));
}

static void drop_flush(struct flush *w)
{
    create_drop(CONTAINER_OF(w, struct create, flush));
}

/* A client may have found it in a list and deleted it: waiter.c looks again. */
static void on_durable(struct flush *w, const struct err *e)
{
    struct create *c = CONTAINER_OF(w, struct create, flush);
    struct box *b = box_find(c->g, c->id);
    struct life_news none = {0};

    if (b != NULL && e == NULL)
        join_told(c->g, b->pub.id);
    if (b != NULL && e == NULL)
        events_say(c->g, b, "sandbox.created", "template", b->pub.template);
    else if (b != NULL)
        life_event(b, LIFE_DELETE, &none);
    create_end(c, c->id, e);
}

/* It is there: on record, then known. `why` NULL: by `m`. */
static void create_known(struct create *c, const struct keeper_sandbox *m, const struct err *why)
{
    struct box *b = NULL;
    struct err e;

    if (why != NULL)
        e = *why;
    else
        b = create_keep(c, m, &e);
    if (b == NULL && m != NULL)
        life_destroy_leftover(c->g, m->id);
    if (b == NULL) {
        if (e.kind == ERR_INTERNAL)
            log_error("create: %s", e.msg);
        create_end(c, "", &e);
        return;
    }
    life_begin(b);
    str_fmt(c->id, sizeof(c->id), "%s", b->pub.id);
    c->flush = (struct flush){.records = true, .drop = drop_flush};
    flush_then(c->g->flusher, &c->flush, on_durable);
}

/* ---- filled before it is known ---- */

struct filling { /* what the keeper said, until then */
    struct create *create;
    struct keeper_sandbox m;
    char id[KEEPER_ID_MAX + 1], template[KEEPER_NAME_MAX + 1], boot_id[65], network[17];
    char settings[];
};

static void create_fill(struct create *c, const struct keeper_sandbox *m)
{
    struct filling *f = mem_zeroed(1, sizeof(*f) + m->settings.len);

    f->create = c;
    f->m = *m;
    str_fmt(f->id, sizeof(f->id), "%s", m->id);
    str_fmt(f->template, sizeof(f->template), "%s", m->template);
    str_fmt(f->boot_id, sizeof(f->boot_id), "%s", m->boot_id);
    str_fmt(f->network, sizeof(f->network), "%s", m->network);
    if (m->settings.len > 0)
        memcpy(f->settings, m->settings.p, m->settings.len);
    f->m.id = f->id;
    f->m.template = f->template;
    f->m.boot_id = f->boot_id;
    f->m.network = f->network;
    f->m.reason = "";
    f->m.settings.p = f->settings;
    c->fill(c->fill_arg, f->id, f);
}

void filling_done(struct filling *f, const struct err *e)
{
    create_known(f->create, &f->m, e);
    free(f);
}

void filling_drop(struct filling *f)
{
    create_drop(f->create);
    free(f);
}

static void on_created(void *arg, const void *msg, const struct err *why)
{
    const struct keeper_sandbox *m = msg;
    struct create *c = arg;
    struct err e;

    if (is_snapshot(c, why)) {
        create_ask(c);
        return;
    }
    create_next(c);
    if (why != NULL) {
        create_known(c, NULL, why);
    } else if (!id_is_valid(m->id, KEEPER_ID_MAX) || box_find(c->g, m->id) != NULL) {
        err_set(&e, ERR_INTERNAL, "invalid sandbox id '%s' from the keeper", m->id);
        create_known(c, NULL, &e);
    } else if (c->waiter == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "creating the sandbox timed out");
        create_known(c, m, &e);
    } else if (c->fill != NULL) {
        create_fill(c, m);
    } else {
        create_known(c, m, NULL);
    }
}

static void on_create_late(void *arg, const struct err *e)
{
    struct create *c = arg;

    waiter_answer(take_ptr(&c->waiter), "", e);
}

static int check_create(struct engine *g, const struct create_opts *o, struct err *e)
{
    if (!g->ready)
        return err_set(e, ERR_UNAVAILABLE, "the server is starting; try again");
    if (g->ncreates >= g->o.config->creates)
        return err_set(e, ERR_UNAVAILABLE, "%zu sandboxes are being created already; try again",
                       g->ncreates);
    if (strlen(o->key) > ENGINE_KEY_MAX)
        return err_set(e, ERR_INVALID, "the key's id is too long");
    if (o->metadata != NULL && strlen(o->metadata) > ENGINE_METADATA_MAX)
        return err_set(e, ERR_TOO_LARGE, "metadata: more than %u bytes", ENGINE_METADATA_MAX);
    if (o->plane != NULL && strlen(o->plane) > ENGINE_PLANE_MAX)
        return err_set(e, ERR_TOO_LARGE, "options: more than %u bytes", ENGINE_PLANE_MAX);
    if (o->env_len > ENGINE_ENV_MAX)
        return err_set(e, ERR_TOO_LARGE, "env: more than %u bytes", ENGINE_ENV_MAX);
    if (o->template != NULL && strlen(o->template) > KEEPER_NAME_MAX)
        return err_set(e, ERR_NOT_FOUND,
                       "no template '%.64s'; `cove template list` shows the names", o->template);
    if (o->network != NULL && strcmp(o->network, "none") != 0 && strcmp(o->network, "egress") != 0)
        return err_set(e, ERR_INVALID, "network: '%.32s' is neither none nor egress", o->network);
    if (o->nrules > ENGINE_RULES_MAX)
        return err_set(e, ERR_INVALID, "network: more than %u rules", ENGINE_RULES_MAX);
    if (o->timeout_ms > SANDBOX_TIMEOUT_MAX)
        return err_set(e, ERR_INVALID, "timeout_ms is too large");
    return command_check_env(o->env, o->env_len, e);
}

static int check_quota(struct engine *g, const struct create_opts *o, struct err *e)
{
    struct limits l = limits_of(g, o);
    struct quotas more = charge_of_new(&l);

    if (ceilings_check(g, &l, e) < 0)
        return -1;
    return quota_check(quota_user(g->o.quotas, o->key), &more, e) < 0
               ? err_wrap(e, "create a sandbox")
               : 0;
}

static void create_ask(struct create *c)
{
    static const struct keeper_asker asker = {
        .last = on_created, .late = on_create_late, .drop = create_drop};
    struct keeper_create ask = {.template = c->row.template,
                                .network = c->row.network,
                                .rules = {buf_data(&c->rules), (uint32_t)c->rules.len},
                                .snapshot = c->snapshot,
                                .relaxed = (uint32_t)c->row.relaxed};

    LIMITS_COPY(&ask, &c->row);
    keeper_ask(c->g->keeper, KEEPER_CREATE, &ask, &asker, c);
}

static struct create *create_begin(struct engine *g, const struct create_opts *o,
                                   engine_sandbox_cb *cb, void *arg)
{
    struct waiter *w = waiter_new(g, NULL, cb, arg);
    struct create *c;
    struct err e;

    if (check_create(g, o, &e) < 0 || check_quota(g, o, &e) < 0) {
        waiter_answer(w, "", &e);
        return NULL;
    }
    c = create_new(g, o);
    c->waiter = w;
    g->ncreates++;
    return c;
}

void create_from(struct engine *g, const struct create_opts *o, const char *snapshot,
                 engine_sandbox_cb *cb, void *arg)
{
    struct create *c = create_begin(g, o, cb, arg);

    if (c == NULL)
        return;
    str_fmt(c->snapshot, sizeof(c->snapshot), "%s", snapshot);
    create_queue(c);
}

void create_filled(struct engine *g, const struct create_opts *o, fill_cb *fill,
                   engine_sandbox_cb *cb, void *arg)
{
    struct create *c = create_begin(g, o, cb, arg);

    if (c == NULL)
        return;
    c->fill = fill;
    c->fill_arg = arg;
    create_queue(c);
}

void engine_create(struct engine *g, const struct create_opts *o, engine_sandbox_cb *cb, void *arg)
{
    const char *what = o->snapshot != NULL ? o->snapshot : o->template;
    const struct snapshot *s =
        what == NULL ? NULL : engine_snapshot_get((struct ref){g, o->key, what});

    if (o->snapshot != NULL && o->template != NULL)
        waiter_fail(waiter_new(g, NULL, cb, arg), ERR_INVALID,
                    "at most one of template and snapshot is allowed");
    else if (o->snapshot != NULL && s == NULL)
        waiter_fail(waiter_new(g, NULL, cb, arg), ERR_NOT_FOUND, "no snapshot %.64s", o->snapshot);
    else if (s != NULL && (o->snapshot != NULL || strcmp(s->id, what) == 0))
        create_from(g, o, s->id, cb, arg);
    else
        create_from(g, o, "", cb, arg);
}

/* ---- the rest of its life ---- */

const struct sandbox *engine_get(struct ref ref)
{
    struct box *b = box_of(ref);

    return b == NULL ? NULL : &b->pub;
}

const struct sandbox *engine_find(struct engine *g, const char *id)
{
    struct box *b = box_find(g, id);

    return b == NULL ? NULL : engine_get(sandbox_ref(g, &b->pub));
}

void engine_delete(struct ref ref, engine_done_cb *cb, void *arg)
{
    struct life_news n = {.waiter = waiter_new(ref.engine, cb, NULL, arg)};
    struct box *b = box_find(ref.engine, ref.id);

    if (b == NULL || strcmp(b->pub.key, ref.key) != 0)
        waiter_fail(n.waiter, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else
        life_event(b, LIFE_DELETE, &n);
}

void engine_pause(struct ref ref, bool memory, engine_sandbox_cb *cb, void *arg)
{
    struct life_news n = {.waiter = waiter_new(ref.engine, NULL, cb, arg), .no_memory = !memory};
    struct box *b = box_of(ref);

    if (b == NULL)
        waiter_fail(n.waiter, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else
        life_event(b, LIFE_PAUSE, &n);
}

void engine_resume(struct ref ref, enum resume_end end, uint64_t timeout_ms, engine_sandbox_cb *cb,
                   void *arg)
{
    struct life_news n = {
        .waiter = waiter_new(ref.engine, NULL, cb, arg), .end = end, .timeout_ms = timeout_ms};
    struct box *b = box_of(ref);
    struct err e;

    if (b == NULL)
        waiter_fail(n.waiter, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else if (timeout_ms > SANDBOX_TIMEOUT_MAX)
        waiter_fail(n.waiter, ERR_INVALID, "timeout_ms is too large");
    else if (box_may_run(b, &e) < 0)
        waiter_answer(n.waiter, ref.id, &e);
    else
        life_event(b, LIFE_RESUME, &n);
}

void engine_recover(struct ref ref, engine_sandbox_cb *cb, void *arg)
{
    struct life_news n = {.waiter = waiter_new(ref.engine, NULL, cb, arg)};
    struct box *b = box_of(ref);

    if (b == NULL)
        waiter_fail(n.waiter, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else
        life_event(b, LIFE_RECOVER, &n);
}

void engine_connect(struct ref ref, bool memory, uint64_t timeout_ms, engine_sandbox_cb *cb,
                    void *arg)
{
    struct box *b = box_of(ref);
    struct err e;

    if (b == NULL || b->life != LIFE_RUNNING)
        engine_resume(ref, memory ? RESUME_FOR : RESUME_COLD_FOR, timeout_ms, cb, arg);
    else if (engine_extend(ref, timeout_ms, &e) < 0)
        waiter_answer(waiter_new(ref.engine, NULL, cb, arg), ref.id, &e);
    else
        waiter_answer(waiter_new(ref.engine, NULL, cb, arg), ref.id, NULL);
}

void engine_wake(struct ref ref, engine_sandbox_cb *cb, void *arg)
{
    struct waiter *w = waiter_new(ref.engine, NULL, cb, arg);
    struct life_news n = {.waiter = w, .end = RESUME_WAKE};
    struct err e;
    struct box *b = box_running(ref, &e);

    if (b == NULL)
        waiter_answer(w, "", &e);
    else if (b->life == LIFE_RUNNING)
        waiter_answer(w, ref.id, NULL);
    else
        life_event(b, LIFE_RESUME, &n);
}

int box_set_end(struct box *b, uint64_t ends_ms, struct err *e)
{
    if (store_sandbox_set_ends(b->g->o.store, b->pub.id, ends_ms, e) < 0)
        return -1;
    b->pub.ends_ms = ends_ms;
    if (b->life == LIFE_BOOTING) /* the last word counts */
        b->wished_end = ends_ms;
    life_arm(b);
    return 0;
}

struct box *box_with_end(struct ref ref, uint64_t timeout_ms, struct err *e)
{
    struct box *b = box_of(ref);

    if (b == NULL || b->life == LIFE_STUCK)
        err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else if (b->life == LIFE_DAMAGED)
        life_fail_damaged(b, e);
    else if (b->life == LIFE_PAUSED)
        err_set(e, ERR_CONFLICT, "sandbox %s is paused and has no timeout; resume it with one",
                ref.id);
    else if (b->life == LIFE_THAWING)
        err_set(e, ERR_CONFLICT, "sandbox %s is being resumed; try again", ref.id);
    else if (timeout_ms > SANDBOX_TIMEOUT_MAX)
        err_set(e, ERR_INVALID, "timeout_ms is too large");
    else
        return b;
    return NULL;
}

int engine_set_timeout(struct ref ref, uint64_t timeout_ms, struct err *e)
{
    struct box *b = box_with_end(ref, timeout_ms, e);

    return b == NULL ? -1 : box_set_end(b, timeout_ms == 0 ? 0 : clock_real_ms() + timeout_ms, e);
}

int engine_extend(struct ref ref, uint64_t timeout_ms, struct err *e)
{
    struct box *b = box_with_end(ref, timeout_ms, e);
    uint64_t ends_ms = clock_real_ms() + timeout_ms;

    if (b == NULL)
        return -1;
    if (b->pub.ends_ms == 0 || (timeout_ms != 0 && ends_ms <= b->pub.ends_ms))
        return 0;
    return box_set_end(b, timeout_ms == 0 ? 0 : ends_ms, e);
}
