/* pack.c - makes one archive: a snapshot; two temporary sandboxes, of the snapshot and of its
 * template; the list of the second goes to the helper in the first; its chunks go to the store; then
 * the manifest, then the row.
 *
 * Until the row is durable there is no archive, and what was stored is collected. A step that fails
 * ends the others; the caller is told when nothing of it is under way any more. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"
#include "mem/mem.h"
#include "json/read.h"

#define CHUNKS_AT_ONCE 3u /* being stored, of one archive: the memory it needs */

struct packing {
    struct list link;
    struct archives *as;
    struct space *space; /* counted in its puts; NULL: not begun */
    struct ref sandbox;  /* its strings are below */
    char key[ENGINE_KEY_MAX + 1], id[KEEPER_ID_MAX + 1], owner[ARCHIVE_OWNER_MAX + 1];
    char snapshot[KEEPER_ID_MAX + 1];
    struct manifest m;
    struct temp base, layer;
    unsigned asks, chunks; /* requests to the keeper, and jobs, under way */
    bool listed;           /* all of the base was fed */
    bool packed;           /* the helper has ended, and well */
    bool result;           /* it said the last frame */
    bool failed, told;
    struct buf in; /* frames */
    struct quotas charged;
    struct quota_user *user;
    struct err why;
    struct loop_later later;
    archive_cb *cb;
    void *arg;
};

/* One blob on its way to the store: a chunk, or the manifest. */
struct blob {
    struct job job;
    struct packing *x; /* on the loop only; NULL: the call has ended */
    struct vault *vault;
    char space[ARCHIVE_SPACE + 1], digest[SHA256_HEX];
    bool manifest, failed;
    enum manifest_part part;
    size_t at; /* in that part */
    struct buf data;
    struct err e;
};

static void pack_free(struct packing *x)
{
    list_del(&x->link);
    loop_undefer(&x->later);
    quota_drop(x->user, &x->charged);
    manifest_free(&x->m);
    buf_free(&x->in);
    free(x);
}

/* ---- the end ---- */

static void begin(struct packing *x);

void packs_kick(struct archives *as)
{
    struct packing *x;

    LIST_EACH (&as->packs_waiting, x, struct packing, link) {
        struct space *sp = space_of(as, x->key, false, &x->why);

        if (as->npacking >= ARCHIVE_PUTS_MAX)
            return;
        if (sp != NULL && sp->collecting)
            continue;
        list_del(&x->link);
        list_add_tail(&as->packing, &x->link);
        as->nwaiting--;
        as->npacking++;
        begin(x);
    }
}

static void tell(struct packing *x, const struct archive *a)
{
    struct archives *as = x->as;
    archive_cb *cb = x->cb;
    void *arg = x->arg;
    struct err why = x->why;

    if (x->space != NULL)
        space_put_ended(x->space);
    as->npacking--;
    pack_free(x);
    if (a == NULL)
        err_wrap(&why, "archive the sandbox");
    cb(arg, a, a == NULL ? &why : NULL);
    packs_kick(as);
}

static void tell_failed(struct loop_later *l)
{
    tell(CONTAINER_OF(l, struct packing, later), NULL);
}

/* Ends what is under way; the caller is told after the last of it. */
static void wind_up(struct packing *x)
{
    temp_end(&x->base);
    temp_end(&x->layer);
    if (x->snapshot[0] != '\0') {
        snap_forget(x->as->g, x->snapshot);
        x->snapshot[0] = '\0';
    }
    if (x->failed && x->asks == 0 && x->chunks == 0 && !x->told) {
        x->told = true;
        loop_defer(x->as->g->loop, &x->later, tell_failed);
    }
}

static void fail(struct packing *x, const struct err *e)
{
    if (!x->failed) {
        x->failed = true;
        x->why = *e;
    }
    wind_up(x);
}

/* ---- the store ---- */

static void blob_free(struct blob *b)
{
    vault_unref(b->vault);
    buf_free(&b->data);
    free(b);
}

static void blob_drop(struct job *w)
{
    blob_free(CONTAINER_OF(w, struct blob, job));
}

static void blob_run(struct job *w)
{
    struct blob *b = CONTAINER_OF(w, struct blob, job);
    const char *kind = b->manifest ? BLOB_MANIFESTS : BLOB_CHUNKS;

    b->failed =
        blob_put(b->vault, b->space, kind, buf_data(&b->data), b->data.len, b->digest, &b->e) < 0;
}

static void go_on(struct packing *x);

/* The row makes it an archive. */
static void keep_row(struct packing *x, const char *digest)
{
    struct store_archive row = {.key = x->key,
                                .owner = x->owner,
                                .digest = digest,
                                .space = x->space->name,
                                .template = x->m.template,
                                .base = x->m.base,
                                .entries = x->m.entries,
                                .bytes = x->m.bytes,
                                .stored = manifest_stored(&x->m),
                                .created_ms = x->m.created_ms};
    const struct archive *a;
    struct err e;

    quota_drop(x->user, &x->charged);
    x->charged = (struct quotas){0};
    a = kept_add(x->as, &row, &e);
    if (a == NULL)
        fail(x, &e);
    else
        tell(x, a);
}

static void blob_done(struct job *w)
{
    struct blob *b = CONTAINER_OF(w, struct blob, job);
    struct packing *x = b->x;

    x->chunks--;
    if (b->failed) {
        fail(x, &b->e);
    } else if (x->failed) {
        wind_up(x);
    } else if (b->manifest) {
        keep_row(x, b->digest);
    } else {
        memcpy(x->m.parts[b->part].v[b->at].digest, b->digest, SHA256_HEX);
        go_on(x);
    }
    blob_free(b);
}

/* Takes the data. */
static struct blob *blob_new(struct packing *x, struct buf *data)
{
    struct blob *b = mem_zeroed(1, sizeof(*b));

    b->x = x;
    b->vault = vault_ref(x->as->vault);
    b->data = *data;
    *data = (struct buf){.max = data->max};
    str_fmt(b->space, sizeof(b->space), "%s", x->space->name);
    b->job.lane = JOB_STORE;
    b->job.share = job_share(x->key);
    b->job.drop = blob_drop;
    return b;
}

static void blob_start(struct packing *x, struct blob *b)
{
    x->chunks++;
    job_start(x->as->g->loop, &b->job, blob_run, blob_done);
}

/* ---- frames of the helper ---- */

static int charge(struct packing *x, uint64_t bytes, struct err *e)
{
    struct quotas more = {{[QUOTA_archives] = bytes}};

    if (quota_check(x->user, &more, e) < 0)
        return -1;
    quota_add(x->user, &more);
    x->charged.of[QUOTA_archives] += bytes;
    return 0;
}

static int take_chunk(struct packing *x, enum manifest_part part, const char *p, size_t n,
                      struct err *e)
{
    struct manifest_chunk *c = n == 0 ? NULL : manifest_add(&x->m, part);
    struct buf data = BUF_INIT(n);
    struct blob *b;

    if (c == NULL)
        return err_set(e, ERR_TOO_LARGE, "its files need more than %u chunks", ARCHIVE_CHUNKS_MAX);
    if (charge(x, n, e) < 0)
        return -1;
    c->size = (uint32_t)n;
    if (buf_add(&data, p, n) < 0)
        return err_set(e, ERR_INTERNAL, "out of memory");
    b = blob_new(x, &data);
    b->part = part;
    b->at = x->m.parts[part].n - 1;
    blob_start(x, b);
    return 0;
}

static int take_result(struct packing *x, const char *p, size_t n, struct err *e)
{
    autojson json_t *doc = NULL;
    const char *base;

    if (json_parse(p, n, &doc, e) < 0)
        return -1;
    base = json_string_value(json_object_get(doc, "base"));
    if (base == NULL || strlen(base) != SHA256_HEX - 1 || x->result)
        return err_set(e, ERR_INTERNAL, "the helper's result is malformed");
    memcpy(x->m.base, base, SHA256_HEX);
    x->m.entries = (uint64_t)json_integer_value(json_object_get(doc, "entries"));
    x->m.bytes = (uint64_t)json_integer_value(json_object_get(doc, "bytes"));
    x->result = true;
    return 0;
}

static int take_frame(struct packing *x, char kind, const char *p, size_t n, struct err *e)
{
    switch (kind) {
    case ARCHIVE_TAR:
        return take_chunk(x, MANIFEST_TAR, p, n, e);
    case ARCHIVE_GONE:
        return take_chunk(x, MANIFEST_GONE, p, n, e);
    case ARCHIVE_RESULT:
        return take_result(x, p, n, e);
    default:
        return err_set(e, ERR_INTERNAL, "the helper sent an unknown frame");
    }
}

/* 1: one frame was taken; 0: it is not complete, or there is no room for its chunk. */
static int next_frame(struct packing *x, struct err *e)
{
    const unsigned char *p = (const unsigned char *)buf_data(&x->in);
    size_t n;

    if (x->in.len < ARCHIVE_FRAME_HEAD)
        return 0;
    n = (size_t)p[1] | (size_t)p[2] << 8 | (size_t)p[3] << 16 | (size_t)p[4] << 24;
    if (n > ARCHIVE_FRAME_MAX)
        return err_set(e, ERR_INTERNAL, "the helper sent a frame of %zu bytes", n);
    if (x->in.len < ARCHIVE_FRAME_HEAD + n || x->chunks >= CHUNKS_AT_ONCE)
        return 0;
    if (take_frame(x, (char)p[0], (const char *)p + ARCHIVE_FRAME_HEAD, n, e) < 0)
        return -1;
    buf_consume(&x->in, ARCHIVE_FRAME_HEAD + n);
    return 1;
}

static void store_manifest(struct packing *x)
{
    struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
    struct blob *b;
    struct err e;

    temp_end(&x->base);
    temp_end(&x->layer);
    x->m.created_ms = clock_real_ms();
    if (!x->result || x->in.len > 0) {
        err_set(&e, ERR_INTERNAL, "the helper ended before its result");
        fail(x, &e);
        return;
    }
    if (manifest_write(&x->m, &text, &e) < 0) {
        buf_free(&text);
        fail(x, &e);
        return;
    }
    x->packed = false; /* only once */
    b = blob_new(x, &text);
    b->manifest = true;
    blob_start(x, b);
}

/* Takes the frames that there is room for; at the end, the manifest. */
static void go_on(struct packing *x)
{
    struct err e;
    int r;

    while ((r = next_frame(x, &e)) > 0)
        continue;
    if (r < 0) {
        fail(x, &e);
        return;
    }
    temp_pause(&x->layer, x->chunks >= CHUNKS_AT_ONCE);
    if (x->packed && x->chunks == 0)
        store_manifest(x);
}

static void on_data(void *arg, const char *p, size_t n)
{
    struct packing *x = arg;
    struct err e;

    if (buf_add(&x->in, p, n) == 0) {
        go_on(x);
        return;
    }
    err_set(&e, ERR_INTERNAL, "the helper sent more than it was asked for");
    fail(x, &e);
}

static void on_packed(void *arg, const struct err *e)
{
    struct packing *x = arg;

    if (e != NULL) {
        fail(x, e);
        return;
    }
    x->packed = true;
    go_on(x);
}

/* ---- the list of the base, from one helper to the other ---- */

static void on_list(void *arg, const char *p, size_t n)
{
    struct packing *x = arg;

    if (temp_feed(&x->layer, p, n, false) > PROCESS_FEED_HIGH)
        temp_pause(&x->base, true);
}

static void on_fed(void *arg)
{
    struct packing *x = arg;

    if (!x->listed)
        temp_pause(&x->base, false);
}

static void on_listed(void *arg, const struct err *e)
{
    struct packing *x = arg;

    if (e != NULL) {
        fail(x, e);
        return;
    }
    x->listed = true;
    temp_feed(&x->layer, NULL, 0, true);
    temp_end(&x->base);
}

static void on_started(void *arg)
{
    static const struct temp_ops ops = {.on_data = on_list, .on_done = on_listed};
    static const char argv[] = "cove-helper\0layer-list";
    struct packing *x = arg;

    temp_run(&x->base, &(struct wire_strv){argv, sizeof(argv), 2}, false, &ops, x);
}

static void start_helpers(struct packing *x)
{
    static const struct temp_ops ops = {
        .on_started = on_started, .on_data = on_data, .on_drain = on_fed, .on_done = on_packed};
    static const char argv[] = "cove-helper\0layer-pack";

    temp_run(&x->layer, &(struct wire_strv){argv, sizeof(argv), 2}, true, &ops, x);
}

/* ---- the sandboxes ---- */

static void on_made(struct packing *x, struct temp *t, const struct keeper_sandbox *m,
                    const struct err *why)
{
    struct err e;

    x->asks--;
    if (why != NULL) {
        e = *why;
        if (t == &x->base)
            err_wrap(&e, "the template it was made from");
        fail(x, &e);
    } else if (temp_take(t, x->as->g, m->id, &e) < 0) {
        fail(x, &e);
    } else if (x->failed) {
        wind_up(x);
    } else if (x->asks == 0) {
        start_helpers(x);
    }
}

static void on_base(void *arg, const void *msg, const struct err *e)
{
    on_made(arg, &((struct packing *)arg)->base, msg, e);
}

static void on_layer(void *arg, const void *msg, const struct err *e)
{
    on_made(arg, &((struct packing *)arg)->layer, msg, e);
}

static void make_sandboxes(struct packing *x)
{
    static const struct keeper_asker base = {.last = on_base}, layer = {.last = on_layer};
    struct keeper_create ask = {.template = x->m.template, .network = "none"};

    x->asks = 2;
    keeper_ask(x->as->g->keeper, KEEPER_CREATE, &ask, &base, x);
    ask = (struct keeper_create){.snapshot = x->snapshot, .network = "none"};
    keeper_ask(x->as->g->keeper, KEEPER_CREATE, &ask, &layer, x);
}

static void on_snapped(void *arg, const void *msg, const struct err *e)
{
    const struct keeper_snap *m = msg;
    struct packing *x = arg;

    x->asks--;
    if (e != NULL) {
        fail(x, e);
        return;
    }
    str_fmt(x->snapshot, sizeof(x->snapshot), "%s", m->id);
    str_fmt(x->m.template, sizeof(x->m.template), "%s", m->template);
    make_sandboxes(x);
}

/* ---- the beginning ---- */

static void begin(struct packing *x)
{
    static const struct keeper_asker asker = {.last = on_snapped};
    struct err e;

    x->space = space_of(x->as, x->key, true, &e);
    if (x->space == NULL) {
        fail(x, &e);
        return;
    }
    x->space->puts++;
    if (archives_vault(x->as, &e) == NULL || box_to_snapshot(x->sandbox, &e) == NULL ||
        charge(x, 0, &e) < 0) {
        fail(x, &e);
        return;
    }
    x->asks = 1;
    keeper_ask(x->as->g->keeper, KEEPER_SNAPSHOT, &(struct keeper_snapshot){.id = x->id}, &asker,
               x);
}

static int check(const struct packing *x, const struct archive_opts *o, struct err *e)
{
    autojson json_t *spec = NULL;
    size_t owner = strlen(o->owner);

    if (owner == 0 || owner > ARCHIVE_OWNER_MAX)
        return err_set(e, ERR_INVALID, "the name of an archive's owner has 1 to %u bytes",
                       ARCHIVE_OWNER_MAX);
    if (o->spec != NULL && strlen(o->spec) > ARCHIVE_SPEC_MAX)
        return err_set(e, ERR_TOO_LARGE, "the spec has more than %u bytes", ARCHIVE_SPEC_MAX);
    if (o->spec != NULL && json_parse(o->spec, strlen(o->spec), &spec, e) < 0)
        return err_wrap(e, "the spec");
    if (x->as->nwaiting >= ARCHIVE_WAITING_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%u sandboxes wait to be archived; try again",
                       x->as->nwaiting);
    return 0;
}

void engine_archive(struct ref ref, const struct archive_opts *o, archive_cb *cb, void *arg)
{
    struct archives *as = ref.engine->archives;
    struct packing *x = mem_zeroed(1, sizeof(*x));

    x->as = as;
    x->cb = cb;
    x->arg = arg;
    x->user = quota_user(ref.engine->o.quotas, ref.key);
    str_fmt(x->key, sizeof(x->key), "%s", ref.key);
    str_fmt(x->id, sizeof(x->id), "%.*s", (int)KEEPER_ID_MAX, ref.id);
    str_fmt(x->owner, sizeof(x->owner), "%.*s", (int)ARCHIVE_OWNER_MAX, o->owner);
    x->sandbox = (struct ref){ref.engine, x->key, x->id};
    buf_init(&x->in, ARCHIVE_FRAME_HEAD + ARCHIVE_FRAME_MAX + PROCESS_CHUNK_MAX);
    if (check(x, o, &x->why) < 0) {
        list_add_tail(&as->packing, &x->link);
        as->npacking++;
        x->failed = x->told = true;
        loop_defer(ref.engine->loop, &x->later, tell_failed);
        return;
    }
    x->m.spec = mem_text(o->spec);
    list_add_tail(&as->packs_waiting, &x->link);
    as->nwaiting++;
    packs_kick(as);
}

void packs_free(struct archives *as)
{
    struct list *lists[] = {&as->packing, &as->packs_waiting};
    struct packing *x;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        LIST_EACH (lists[i], x, struct packing, link) {
            temp_drop(&x->base);
            temp_drop(&x->layer);
            pack_free(x);
        }
}
