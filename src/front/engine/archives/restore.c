/* restore.c - brings the files of an archive into a new sandbox, before it has a row: engine/sandbox
 * makes the sandbox, this fills it, and then it becomes known. So a kill at any moment leaves either
 * a sandbox with all files or one without a row, which the next start destroys.
 *
 * Chunks are read ahead, verified one by one, and given to the helper in their order. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"
#include "front/engine/sandbox/fill.h"
#include "mem/mem.h"
#include "json/read.h"

#define AHEAD_MAX 3u /* chunks in memory, of one restore */
#define ANSWER_MAX 4096u

struct piece {
    struct job job;
    struct restoring *r; /* on the loop only */
    struct vault *vault;
    char space[ARCHIVE_SPACE + 1], digest[SHA256_HEX];
    bool manifest, ready, failed, alone; /* alone: the restore has ended */
    uint32_t size;
    size_t fed;
    struct buf data;
    struct manifest m;
    struct err e;
    struct list link; /* in the order of the archive */
};

struct restoring {
    struct list link;
    struct archives *as;
    struct kept *archive; /* counted in its users */
    struct filling *filling;
    struct temp temp;
    struct manifest m;
    bool any_base, started, headed, ended;
    enum manifest_part part; /* the next chunk to be read */
    size_t at;
    struct list pieces;
    unsigned npieces;
    struct buf answer;
    engine_sandbox_cb *cb;
    void *arg;
    struct err why;
};

/* ---- the end ---- */

static void piece_free(struct piece *p)
{
    vault_unref(p->vault);
    manifest_free(&p->m);
    buf_free(&p->data);
    free(p);
}

/* Those that a thread has are freed when it is done. */
static void drop_pieces(struct restoring *r)
{
    struct piece *p;

    LIST_EACH (&r->pieces, p, struct piece, link) {
        list_del(&p->link);
        p->alone = true;
        if (!p->job.busy || job_cancel(r->as->g->loop, &p->job))
            piece_free(p);
    }
}

static void begin(struct restoring *r);

static void kick(struct archives *as)
{
    struct restoring *r;

    LIST_EACH (&as->restores_waiting, r, struct restoring, link) {
        if (as->nrestoring >= ARCHIVE_RESTORES_MAX)
            return;
        list_del(&r->link);
        list_add_tail(&as->restoring, &r->link);
        as->nrestoring++;
        begin(r);
    }
}

/* The filling has ended; the sandbox follows, or its failure. */
static void filled(struct restoring *r, const struct err *e)
{
    struct filling *f = take_ptr(&r->filling);

    if (r->ended)
        return;
    r->ended = true;
    drop_pieces(r);
    temp_leave(&r->temp);
    filling_done(f, e);
}

static void fail(struct restoring *r, const struct err *e)
{
    filled(r, e);
}

static void restore_free(struct restoring *r)
{
    list_del(&r->link);
    manifest_free(&r->m);
    buf_free(&r->answer);
    free(r);
}

static void on_sandbox(void *arg, const struct sandbox *s, const struct err *e)
{
    struct restoring *r = arg;
    struct archives *as = r->as;
    engine_sandbox_cb *cb = r->cb;
    void *cb_arg = r->arg;
    struct err why;

    if (e != NULL) {
        why = *e;
        err_wrap(&why, "restore the archive of %s (template '%s')", r->archive->pub.owner,
                 r->archive->pub.template);
    }
    as->nrestoring -= r->ended;
    kept_unuse(as, r->archive);
    restore_free(r);
    cb(cb_arg, s, e == NULL ? NULL : &why);
    kick(as);
}

/* ---- reading ---- */

static void piece_run(struct job *w)
{
    struct piece *p = CONTAINER_OF(w, struct piece, job);
    const char *kind = p->manifest ? BLOB_MANIFESTS : BLOB_CHUNKS;

    p->failed = blob_get(p->vault, p->space, kind, p->digest, &p->data, &p->e) < 0;
    if (!p->failed && p->manifest)
        p->failed = manifest_read(buf_data(&p->data), p->data.len, &p->m, &p->e) < 0;
    if (p->failed && p->e.kind == ERR_NOT_FOUND) {
        p->e.kind = ERR_INTERNAL; /* the archive is there, but not all of it */
        err_wrap(&p->e, "the archive is incomplete");
    }
}

static void feed(struct restoring *r);
static void on_manifest(struct restoring *r, struct piece *p);

static void piece_done(struct job *w)
{
    struct piece *p = CONTAINER_OF(w, struct piece, job);
    struct restoring *r = p->r;

    if (p->alone) {
        piece_free(p);
        return;
    }
    p->ready = true;
    if (p->failed)
        fail(r, &p->e);
    else if (p->manifest)
        on_manifest(r, p);
    else
        feed(r);
}

static void piece_drop(struct job *w)
{
    piece_free(CONTAINER_OF(w, struct piece, job));
}

static void read_blob(struct restoring *r, const char *digest, uint32_t size, bool manifest)
{
    struct piece *p = mem_zeroed(1, sizeof(*p));

    p->r = r;
    p->vault = vault_ref(r->as->vault);
    p->manifest = manifest;
    p->size = size;
    str_fmt(p->space, sizeof(p->space), "%s", r->archive->pub.space);
    str_fmt(p->digest, sizeof(p->digest), "%s", digest);
    buf_init(&p->data, manifest ? MANIFEST_BYTES_MAX : (size_t)size + 1);
    p->job.lane = JOB_STORE;
    p->job.share = job_share(r->archive->pub.key);
    p->job.drop = piece_drop;
    list_add_tail(&r->pieces, &p->link);
    r->npieces++;
    job_start(r->as->g->loop, &p->job, piece_run, piece_done);
}

static void read_ahead(struct restoring *r)
{
    while (r->npieces < AHEAD_MAX && r->part < MANIFEST_PARTS) {
        const struct manifest_list *l = &r->m.parts[r->part];

        if (r->at == l->n) {
            r->part++;
            r->at = 0;
            continue;
        }
        read_blob(r, l->v[r->at].digest, l->v[r->at].size, false);
        r->at++;
    }
}

/* ---- feeding ---- */

/* First the size of the removals (wire/archive.h). */
static void feed_head(struct restoring *r)
{
    const struct manifest_list *l = &r->m.parts[MANIFEST_GONE];
    uint64_t size = 0;

    for (size_t i = 0; i < l->n; i++)
        size += l->v[i].size;
    temp_feed(&r->temp, &size, sizeof(size), false);
    r->headed = true;
}

/* Until enough is queued; true: all of it was fed. */
static bool feed_piece(struct restoring *r, struct piece *p)
{
    size_t queued = 0;

    while (p->fed < p->data.len && queued <= PROCESS_FEED_HIGH) {
        size_t n = p->data.len - p->fed;

        n = n < PROCESS_CHUNK_MAX ? n : PROCESS_CHUNK_MAX;
        queued = temp_feed(&r->temp, buf_data(&p->data) + p->fed, n, false);
        p->fed += n;
    }
    return p->fed == p->data.len && queued <= PROCESS_FEED_HIGH;
}

static void feed(struct restoring *r)
{
    struct piece *p;

    if (!r->started || r->ended)
        return;
    if (!r->headed)
        feed_head(r);
    while ((p = LIST_FIRST(&r->pieces, struct piece, link)) != NULL && p->ready) {
        if (!feed_piece(r, p))
            return; /* on_drain follows */
        list_del(&p->link);
        piece_free(p);
        r->npieces--;
        read_ahead(r);
    }
    if (p == NULL && r->part == MANIFEST_PARTS) {
        temp_feed(&r->temp, NULL, 0, true);
        r->started = false; /* nothing more to feed */
    }
}

static void on_drain(void *arg)
{
    feed(arg);
}

static void on_started(void *arg)
{
    struct restoring *r = arg;

    r->started = true;
    feed(r);
}

static void on_data(void *arg, const char *p, size_t n)
{
    struct restoring *r = arg;

    buf_add(&r->answer, p, n);
}

/* What was unpacked must be what was packed. */
static int check_answer(struct restoring *r, struct err *e)
{
    autojson json_t *doc = NULL;

    if (r->answer.failed || json_parse(buf_data(&r->answer), r->answer.len, &doc, e) < 0)
        return err_set(e, ERR_INTERNAL, "the helper's answer is malformed");
    if ((uint64_t)json_integer_value(json_object_get(doc, "entries")) != r->m.entries ||
        (uint64_t)json_integer_value(json_object_get(doc, "bytes")) != r->m.bytes)
        return err_set(e, ERR_INTERNAL,
                       "the archive is damaged: it has other files than its "
                       "manifest says");
    return 0;
}

static void on_put(void *arg, const struct err *e)
{
    struct restoring *r = arg;
    struct err why;

    if (e != NULL)
        fail(r, e);
    else if (check_answer(r, &why) < 0)
        fail(r, &why);
    else
        filled(r, NULL);
}

/* ---- the beginning ---- */

static void on_manifest(struct restoring *r, struct piece *p)
{
    static const struct temp_ops ops = {
        .on_started = on_started, .on_data = on_data, .on_drain = on_drain, .on_done = on_put};
    autobuf struct buf argv = BUF_INIT(256);
    struct wire_strv words;

    r->m = p->m;
    p->m = (struct manifest){0};
    list_del(&p->link);
    piece_free(p);
    r->npieces--;
    wire_strv_add(&argv, "cove-helper");
    wire_strv_add(&argv, "layer-put");
    wire_strv_add(&argv, r->any_base ? "any" : r->m.base);
    words = wire_strv_of(&argv);
    temp_run(&r->temp, &words, true, &ops, r);
    read_ahead(r);
}

static void begin(struct restoring *r)
{
    struct err e;

    if (archives_vault(r->as, &e) == NULL)
        fail(r, &e);
    else
        read_blob(r, r->archive->pub.digest, 0, true);
}

/* The sandbox is there, and nothing but this knows of it. */
static void on_fill(void *arg, const char *id, struct filling *f)
{
    struct restoring *r = arg;
    struct archives *as = r->as;
    struct err e;

    r->filling = f;
    list_del(&r->link);
    list_add_tail(&as->restores_waiting, &r->link);
    if (temp_take(&r->temp, as->g, id, &e) < 0) {
        as->nrestoring++;
        fail(r, &e);
        return;
    }
    kick(as);
}

static void refuse(struct engine *g, engine_sandbox_cb *cb, void *arg, const struct err *e)
{
    waiter_answer(waiter_new(g, NULL, cb, arg), "", e);
}

void engine_archive_restore(struct engine *g, const char *key, const struct archive_restore *o,
                            engine_sandbox_cb *cb, void *arg)
{
    struct archives *as = g->archives;
    struct kept *k = kept_find(as, key, o->owner, o->digest);
    struct create_opts create = *o->create;
    struct restoring *r;
    struct err e;

    if (k == NULL) {
        err_set(&e, ERR_NOT_FOUND, "no archive of %.64s", o->owner);
        refuse(g, cb, arg, &e);
        return;
    }
    r = mem_zeroed(1, sizeof(*r));
    r->as = as;
    r->archive = k;
    k->users++;
    r->any_base = o->any_base;
    r->cb = cb;
    r->arg = arg;
    list_init(&r->pieces);
    buf_init(&r->answer, ANSWER_MAX);
    list_add_tail(&as->restoring, &r->link);
    create.key = key;
    create.template = k->pub.template;
    create.snapshot = NULL;
    create_filled(g, &create, on_fill, on_sandbox, r);
}

void restores_free(struct archives *as)
{
    struct list *lists[] = {&as->restoring, &as->restores_waiting};
    struct restoring *r;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        LIST_EACH (lists[i], r, struct restoring, link) {
            drop_pieces(r);
            temp_drop(&r->temp);
            if (r->filling != NULL)
                filling_drop(r->filling);
            restore_free(r);
        }
}
