/* keys.c - API keys: create, list, show, change, revoke. Only the answer to the create contains the key itself. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/planes/native/internal.h"

#define KEYS_BYTES_MAX (4u << 20)
#define QUOTAS_BYTES_MAX (64u << 10)

struct key_view {
    const char *id, *name, *key;
    uint64_t created_ms, sandboxes;
    bool admin, revoked;
    struct shape_bytes quotas;
};

struct quota_view {
    const char *name;
    uint64_t limit, used;
    bool own;
};

/* clang-format off */
#define KEY_FIELDS \
    {"id", SHAPE_STR, offsetof(struct key_view, id), "Id of the key; not secret."}, \
    {"name", SHAPE_STR, offsetof(struct key_view, name), "As given."}, \
    {"admin", SHAPE_BOOL, offsetof(struct key_view, admin), "Whether the key may manage keys and templates."}, \
    {"created_at", SHAPE_TIME, offsetof(struct key_view, created_ms), "Time of creation; null if unknown.", SHAPE_NULLABLE}

static const struct shape_field key_fields[] = {
    KEY_FIELDS,
    {"sandboxes", SHAPE_U64, offsetof(struct key_view, sandboxes), "Number of its sandboxes."},
    {"revoked", SHAPE_BOOL, offsetof(struct key_view, revoked), "The key was revoked, and is listed because it still has sandboxes."},
};
static const struct shape_field new_key_fields[] = {
    KEY_FIELDS,
    {"key", SHAPE_STR, offsetof(struct key_view, key), "The key. It is not stored and cannot be shown again."},
};
static const struct shape_field quota_fields[] = {
    {"name", SHAPE_STR, offsetof(struct quota_view, name), "Name of the quota."},
    {"limit", SHAPE_U64, offsetof(struct quota_view, limit), "The most that the key may have; 0: no limit."},
    {"used", SHAPE_U64, offsetof(struct quota_view, used), "What it has, with what is being created."},
    {"own", SHAPE_BOOL, offsetof(struct quota_view, own), "The limit was given to this key; else it is that of the settings, or none for an admin's key."},
};
static SHAPE(quota_shape, "Quota", "One quota of an API key.", quota_fields);

static const struct shape_field full_key_fields[] = {
    KEY_FIELDS,
    {"quotas", SHAPE_LIST, offsetof(struct key_view, quotas), "All its quotas.", SHAPE_ALWAYS, &quota_shape},
};
static SHAPE(full_key_shape, "KeyDetails", "An API key and its quotas.", full_key_fields);
static SHAPE(key_shape, "Key", "An API key. A key sees only the sandboxes it created.", key_fields);
static SHAPE(new_key_shape, "NewKey", "A new API key.", new_key_fields);

struct keys_view {
    struct shape_bytes keys;
};
static const struct shape_field keys_fields[] = {
    {"keys", SHAPE_LIST, offsetof(struct keys_view, keys), "Keys, oldest first; then revoked keys that still have sandboxes.", SHAPE_ALWAYS, &key_shape},
};
static SHAPE(keys_shape, "KeyList", "All API keys.", keys_fields);

#define QUOTA(A, B, member, name, type, def, max, doc) \
    {name, JSON_FIELD_U64, offsetof(struct quotas, of) + QUOTA_##member * sizeof(uint64_t), 0, max, false, doc "; 0: no limit; null: the setting quota-" name "."},
static const struct json_field quotas_in[] = {QUOTAS(QUOTA, _, _)};
#undef QUOTA
static const struct surface_nested quotas_nested[] = {{"quotas", quotas_in, ARRAY_LEN(quotas_in)}, {0}};

struct create_in {
    const char *name;
    bool admin;
    json_t *quotas;
};
static const struct json_field create_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct create_in, name), 0, AUTH_NAME_MAX, false, "Name, to recognise the key."},
    {"admin", JSON_FIELD_BOOL, offsetof(struct create_in, admin), 0, 0, false, "Whether the key may manage keys and templates."},
    {"quotas", JSON_FIELD_ANY, offsetof(struct create_in, quotas), 0, 0, false, "Quotas of its own. Default: the settings quota-NAME; for an admin's key none."},
};
static const struct surface_input create_input = {SURFACE_INPUT(create_fields, struct create_in), .nested = quotas_nested};

struct update_in {
    json_t *quotas;
};
static const struct json_field update_fields[] = {
    {"quotas", JSON_FIELD_ANY, offsetof(struct update_in, quotas), 0, 0, true, "Quotas to change; the others stay. What is above a lower limit stays."},
};
static const struct surface_input update_input = {SURFACE_INPUT(update_fields, struct update_in), .nested = quotas_nested};

struct revoke_in {
    bool delete_sandboxes;
    const char *sandboxes;
};
static const struct json_field revoke_fields[] = {
    {"sandboxes", JSON_FIELD_STR, offsetof(struct revoke_in, sandboxes), 1, AUTH_NAME_MAX, false,
     "What becomes of its sandboxes: keep (default: they stay until their lifetime ends, and admin keys see them), stop (their processes end, files stay) or delete."},
    {"delete_sandboxes", JSON_FIELD_BOOL, offsetof(struct revoke_in, delete_sandboxes), 0, 0, false,
     "true: the same as sandboxes=delete."},
};
static const struct surface_input revoke_input = {SURFACE_INPUT(revoke_fields, struct revoke_in)};

struct revoked_view {
    const char *id, *sandboxes;
    uint64_t count;
    bool left;
};
static const struct shape_field revoked_fields[] = {
    {"id", SHAPE_STR, offsetof(struct revoked_view, id), "Id of the key."},
    {"sandboxes", SHAPE_STR, offsetof(struct revoked_view, sandboxes), "What became of its sandboxes: kept, stopped or deleted."},
    {"count", SHAPE_U64, offsetof(struct revoked_view, count), "Of how many. Kept: all it has; stopped: those that ran or were paused."},
    {"left", SHAPE_BOOL, offsetof(struct revoked_view, left), "It still has snapshots or sandboxes, which an admin key reaches with the header Cove-As."},
};
static SHAPE(revoked_shape, "RevokedKey", "A key that was revoked, and what became of its sandboxes.", revoked_fields);
/* clang-format on */

/* ---- quotas ---- */

struct wish {
    struct quota_own own;
    bool reset[QUOTA_COUNT];
};

static int decode_quotas(json_t *doc, struct wish *w, struct err *e)
{
    *w = (struct wish){0};
    memset(&w->own.values, 0xff, sizeof(w->own.values)); /* which no quota can be */
    if (doc != NULL && json_decode(doc, quotas_in, ARRAY_LEN(quotas_in), &w->own.values, e) < 0)
        return err_wrap(e, "quotas");
    for (enum quota q = 0; q < QUOTA_COUNT; q++) {
        w->own.has[q] = w->own.values.of[q] != UINT64_MAX;
        w->reset[q] = doc != NULL && json_is_null(json_object_get(doc, quota_name(q)));
    }
    return 0;
}

static void reply_key(struct call *c, const char *id)
{
    autobuf struct buf rows = BUF_INIT(QUOTAS_BYTES_MAX);
    const struct quota_user *u = auth_user(c->plane->auth, id);
    struct auth_info k;
    struct err e;

    if (auth_get(c->plane->auth, id, &k, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    for (enum quota q = 0; u != NULL && q < QUOTA_COUNT; q++)
        shape_append(&rows, &quota_shape,
                     &(struct quota_view){.name = quota_name(q),
                                          .limit = u->most.of[q],
                                          .used = u->used.of[q],
                                          .own = k.quotas->has[q]});
    call_reply_shape(c, &full_key_shape,
                     &(struct key_view){.id = k.id,
                                        .name = k.name,
                                        .admin = k.admin,
                                        .created_ms = k.created_ms,
                                        .quotas = shape_list(&rows)});
}

static void key_get(struct call *c, const void *in)
{
    (void)in;
    reply_key(c, call_param(c, 0));
}

static void key_get_self(struct call *c, const void *in)
{
    (void)in;
    reply_key(c, c->ref.key);
}

static void key_update(struct call *c, const void *in)
{
    const char *id = call_param(c, 0);
    struct wish w;
    struct err e;

    if (decode_quotas(((const struct update_in *)in)->quotas, &w, &e) < 0 ||
        auth_set_quotas(c->plane->auth, id, &w.own, w.reset, &e) < 0)
        call_fail(c, &e);
    else
        reply_key(c, id);
}

/* ---- create ---- */

/* A key whose quotas cannot be stored must not exist. */
static int create(struct auth *a, const struct create_in *in, char key[AUTH_KEY_SIZE],
                  struct auth_info *ret, struct err *e)
{
    struct err ignored;
    struct wish w;

    if (decode_quotas(in->quotas, &w, e) < 0 ||
        auth_create(a, in->name != NULL ? in->name : "", in->admin, key, ret, e) < 0)
        return -1;
    if (in->quotas == NULL || auth_set_quotas(a, ret->id, &w.own, w.reset, e) == 0)
        return 0;
    auth_revoke(a, ret->id, &ignored);
    return -1;
}

static void key_create(struct call *c, const void *in)
{
    char key[AUTH_KEY_SIZE];
    struct auth_info info;
    struct err e;

    if (create(c->plane->auth, in, key, &info, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_reply_shape(c, &new_key_shape,
                     &(struct key_view){.id = info.id,
                                        .name = info.name,
                                        .admin = info.admin,
                                        .created_ms = info.created_ms,
                                        .key = key});
    explicit_bzero(key, sizeof(key));
}

/* ---- list ---- */

struct owner {
    const char *key; /* points into the engine */
    size_t sandboxes;
    bool known;
};

struct listing {
    struct engine *engine;
    struct buf owners, rows;
};

static void add_owner(void *arg, const char *key, size_t sandboxes)
{
    struct listing *l = arg;

    buf_add(&l->owners, &(struct owner){key, sandboxes, false}, sizeof(struct owner));
}

static int by_key(const void *x, const void *y)
{
    return strcmp(((const struct owner *)x)->key, ((const struct owner *)y)->key);
}

static void add_key(void *arg, const struct auth_info *k)
{
    struct listing *l = arg;
    struct owner *o = NULL;

    if (l->owners.len > 0) /* engine_owners() tells them in order */
        o = bsearch(&(struct owner){.key = k->id}, buf_data(&l->owners), l->owners.len / sizeof(*o),
                    sizeof(*o), by_key);
    if (o != NULL)
        o->known = true;
    shape_append(&l->rows, &key_shape,
                 &(struct key_view){.id = k->id,
                                    .name = k->name,
                                    .admin = k->admin,
                                    .created_ms = k->created_ms,
                                    .sandboxes = o != NULL ? o->sandboxes : 0});
}

static void add_revoked(struct listing *l)
{
    const struct owner *o = (const struct owner *)(const void *)buf_data(&l->owners);

    for (size_t i = 0; i < l->owners.len / sizeof(*o); i++)
        if (!o[i].known)
            shape_append(
                &l->rows, &key_shape,
                &(struct key_view){
                    .id = o[i].key, .name = "", .sandboxes = o[i].sandboxes, .revoked = true});
}

static void key_list(struct call *c, const void *in)
{
    struct listing l = {.owners = BUF_INIT(KEYS_BYTES_MAX), .rows = BUF_INIT(KEYS_BYTES_MAX)};

    (void)in;
    engine_owners(c->plane->engine, add_owner, &l);
    auth_each(c->plane->auth, add_key, &l);
    add_revoked(&l);
    call_reply_shape(c, &keys_shape, &(struct keys_view){shape_list(&l.rows)});
    buf_free(&l.owners);
    buf_free(&l.rows);
}

/* ---- revoke ---- */

enum fate { FATE_KEEP, FATE_STOP, FATE_DELETE, FATE_COUNT };

static const struct {
    const char *name, *done;
    unsigned states; /* of the sandboxes that it concerns; 0: all */
} fates[FATE_COUNT] = {
    [FATE_KEEP] = {"keep", "kept", 0},
    [FATE_STOP] = {"stop", "stopped", SANDBOX_BIT(SANDBOX_RUNNING) | SANDBOX_BIT(SANDBOX_PAUSED)},
    [FATE_DELETE] = {"delete", "deleted", 0},
};

struct revoking {
    struct call *c;
    enum fate fate;
    struct buf ids; /* each with its NUL */
    size_t waiting, done;
    bool failed;
    struct err e; /* the first one */
};

static void revoking_drop(void *state)
{
    buf_free(&((struct revoking *)state)->ids);
}

static void add_id(void *arg, const struct sandbox *s)
{
    buf_add(arg, s->id, strlen(s->id) + 1);
}

/* The sandboxes of the key that the fate concerns. */
static int list_ids(struct revoking *r, struct err *e)
{
    struct list_opts o = {
        .key = call_param(r->c, 0), .states = fates[r->fate].states, .limit = SIZE_MAX};
    autofree char *next = NULL;

    buf_clear(&r->ids);
    return engine_list(r->c->plane->engine, &o, add_id, &r->ids, &next, e);
}

static size_t count_ids(const struct revoking *r)
{
    size_t n = 0;

    for (size_t at = 0; at < r->ids.len; at += strlen(buf_data(&r->ids) + at) + 1)
        n++;
    return n;
}

static void reply_revoked(struct revoking *r)
{
    const char *id = call_param(r->c, 0);

    if (r->failed) {
        err_wrap(&r->e, "key %.64s is revoked, but %zu of its sandboxes were %s and one was not",
                 id, r->done, fates[r->fate].done);
        call_fail(r->c, &r->e);
        return;
    }
    call_reply_shape(r->c, &revoked_shape,
                     &(struct revoked_view){.id = id,
                                            .sandboxes = fates[r->fate].done,
                                            .count = r->done,
                                            .left = engine_has_any_of(r->c->plane->engine, id)});
}

static void ended(struct revoking *r, const struct err *e)
{
    if (e == NULL)
        r->done++;
    else if (e->kind != ERR_NOT_FOUND && e->kind != ERR_GONE && !r->failed) {
        r->failed = true;
        r->e = *e;
    }
    if (--r->waiting == 0 && call_told(r->c))
        reply_revoked(r);
}

static void deleted(void *arg, const struct err *e)
{
    ended(arg, e);
}

static void stopped(void *arg, const struct sandbox *s, const struct err *e)
{
    (void)s;
    ended(arg, e);
}

/* A create that was under way has ended: nothing of the key comes any more. */
static void end_all(void *arg, const struct err *none)
{
    struct revoking *r = arg;
    const char *key = call_param(r->c, 0), *ids;
    struct engine *g = r->c->plane->engine;

    (void)none;
    if (list_ids(r, &r->e) < 0)
        r->failed = true;
    r->waiting = r->failed ? 0 : count_ids(r);
    if (r->waiting == 0) {
        if (call_told(r->c))
            reply_revoked(r);
        return;
    }
    ids = buf_data(&r->ids);
    for (size_t at = 0; at < r->ids.len; at += strlen(ids + at) + 1) {
        struct ref ref = {g, key, ids + at};

        if (r->fate == FATE_DELETE)
            engine_delete(ref, deleted, r);
        else
            engine_pause(ref, false, stopped, r);
    }
}

static int decode_revoke(const struct revoke_in *in, enum fate *ret, struct err *e)
{
    *ret = in->delete_sandboxes ? FATE_DELETE : FATE_KEEP;
    if (in->sandboxes == NULL)
        return 0;
    for (*ret = 0; *ret < FATE_COUNT; (*ret)++)
        if (strcmp(in->sandboxes, fates[*ret].name) == 0)
            return 0;
    return err_set(e, ERR_INVALID, "sandboxes: expected keep, stop or delete");
}

/* A key that is revoked already is found by what it left. */
static void key_revoke(struct call *c, const void *in)
{
    struct revoking *r = call_state(c, sizeof(*r), revoking_drop);
    const char *id = call_param(c, 0);
    struct err e;

    r->c = c;
    buf_init(&r->ids, KEYS_BYTES_MAX);
    if (decode_revoke(in, &r->fate, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (auth_revoke(c->plane->auth, id, &e) == 0) {
        http_cut_others(c->r, id);
    } else if (e.kind != ERR_NOT_FOUND || r->fate == FATE_KEEP || list_ids(r, &e) < 0 ||
               r->ids.len == 0) {
        call_fail(c, &e);
        return;
    }
    if (r->fate != FATE_KEEP) {
        call_expect(c, &call_pending, NULL);
        engine_creates_settled(c->plane->engine, id, end_all, r);
    } else if (list_ids(r, &e) < 0)
        call_fail(c, &e);
    else {
        r->done = count_ids(r);
        reply_revoked(r);
    }
}

/* clang-format off */
const struct surface_row surface_keys[] = {
    {{"POST",   "/v1/keys"}, SCOPE_ADMIN, key_create, "createKey",
     "Creates an API key; the answer is the only one that shows it.",
     .body = &create_input, .status = 201, .answers = {&new_key_shape}},
    {{"GET",    "/v1/keys"}, SCOPE_ADMIN, key_list, "listKeys",
     "Lists all API keys, without their secrets.",
     .status = 200, .answers = {&keys_shape}},
    {{"GET",    "/v1/keys/self"}, SCOPE_READ, key_get_self, "getOwnKey",
     "Shows the key of this request, with its quotas and what is used of them.",
     .status = 200, .answers = {&full_key_shape}},
    {{"GET",    "/v1/keys/{key}"}, SCOPE_ADMIN, key_get, "getKey",
     "Shows an API key, with its quotas and what is used of them.",
     .status = 200, .answers = {&full_key_shape}},
    {{"PATCH",  "/v1/keys/{key}"}, SCOPE_ADMIN, key_update, "updateKey",
     "Changes the quotas of an API key.",
     .body = &update_input, .status = 200, .answers = {&full_key_shape}},
    {{"DELETE", "/v1/keys/{key}"}, SCOPE_ADMIN, key_revoke, "revokeKey",
     "Revokes an API key, closes its connections and ends its tokens. Says what became of its sandboxes.",
     .query = &revoke_input, .status = 200, .answers = {&revoked_shape}},
    {.op = NULL},
};
/* clang-format on */
