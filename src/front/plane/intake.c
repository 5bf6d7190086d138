/* intake.c - see intake.h. */
#include "front/plane/intake.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/surface.h"
#include "loop/job.h"
#include "mem/mem.h"

#define INTAKE_HERE_MAX (16u << 10) /* bytes; a longer body is decoded in a thread */
#define INTAKE_MEMORY                                                                              \
    3u /* bytes held per byte of a body: its text, its document, what is made of that */
#define INTAKE_TRIM_MS 1000

struct intake {
    struct call *c;
    struct job job;
    struct buf body;
    void *in;
    json_t *doc;
    int failed; /* why: e */
    struct err e;
};

/* ---- the document ---- */

/* In any thread: touches the intake, and tables that never change. No body at all is an empty
 * object: most fields have defaults. */
static int decode(struct intake *k)
{
    struct call *c = k->c;
    const struct surface_input *input = c->row->body;
    const char *p = buf_data(&k->body);
    size_t n = k->body.len;

    if (input->unwrap != NULL && input->unwrap(&p, &n, &k->e) < 0)
        return -1;
    if (n == 0)
        k->doc = json_object();
    else if (json_parse(p, n, &k->doc, &k->e) < 0)
        return -1;
    k->in = mem_zeroed(1, input->size);
    if (input->defaults != NULL)
        input->defaults(k->in, c->plane->config);
    if (c->plane->manner->lenient)
        json_only(k->doc, input->fields, input->n);
    if (json_decode(k->doc, input->fields, input->n, k->in, &k->e) < 0)
        return -1;
    return input->unfold != NULL ? input->unfold(k->in, &c->unfolded, &k->e) : 0;
}

struct disposal {
    struct job job;
    json_t *doc;
};

/* A document of many small pieces leaves holes that free() does not give back to the system. */
static void dispose_run(struct job *w)
{
    static uint64_t trimmed_ms; /* a lost update costs one more trim */
    struct disposal *d = CONTAINER_OF(w, struct disposal, job);
    uint64_t now = clock_mono_ms();

    json_decref(take_ptr(&d->doc));
    if (now < __atomic_load_n(&trimmed_ms, __ATOMIC_RELAXED) + INTAKE_TRIM_MS)
        return;
    __atomic_store_n(&trimmed_ms, now, __ATOMIC_RELAXED);
    malloc_trim(0);
}

static void dispose_done(struct job *w)
{
    free(CONTAINER_OF(w, struct disposal, job));
}

static void dispose_drop(struct job *w)
{
    struct disposal *d = CONTAINER_OF(w, struct disposal, job);

    json_decref(d->doc);
    free(d);
}

/* What was decoded in a thread is freed in one. */
static void dispose(struct intake *k, json_t *doc)
{
    struct disposal *d;

    if (doc == NULL || k->job.run == NULL) {
        json_decref(doc);
        return;
    }
    d = mem_zeroed(1, sizeof(*d));
    d->doc = doc;
    d->job.drop = dispose_drop;
    d->job.share = k->job.share;
    job_start(k->c->loop, &d->job, dispose_run, dispose_done);
}

/* The call, also one that is answered, is there until the end of this turn. */
static void decoded(struct intake *k)
{
    struct call *c = k->c;

    job_free_buf(c->loop, &k->body, k->job.share);
    if (k->failed < 0)
        call_fail(c, &k->e);
    else
        c->row->handle(c, k->in);
    if (c->keeps) {
        c->in = take_ptr(&k->in);
        c->doc = take_ptr(&k->doc);
    } else {
        free(take_ptr(&k->in));
        dispose(k, take_ptr(&k->doc));
    }
}

static void decode_run(struct job *w)
{
    struct intake *k = CONTAINER_OF(w, struct intake, job);

    k->failed = decode(k);
}

static void decode_done(struct job *w)
{
    struct intake *k = CONTAINER_OF(w, struct intake, job);

    if (!call_told(k->c))
        return;
    loop_doing(k->c->loop, k->c->row->op);
    decoded(k);
}

/* ---- the bytes ---- */

static void take(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct intake *k = arg;
    struct call *c = k->c;
    struct err e;

    (void)r;
    if (c->r == NULL)
        return;
    if (n > k->body.max - k->body.len) {
        err_set(&e, ERR_TOO_LARGE, "the body is larger than %zu bytes", k->body.max);
        call_fail(c, &e);
    } else if (call_hold(c, (k->body.len + n) * INTAKE_MEMORY, &e) < 0) {
        call_fail(c, &e);
    } else if (buf_add(&k->body, p, n) < 0) {
        err_set(&e, ERR_UNAVAILABLE, "no memory for the body; try again");
        call_fail(c, &e);
    }
}

static void whole(struct http_req *r, void *arg)
{
    struct intake *k = arg;
    struct call *c = k->c;

    (void)r;
    if (c->r == NULL)
        return;
    if (k->body.len > INTAKE_HERE_MAX) {
        k->job.share = job_share(c->ref.key);
        call_expect(c, &call_pending, NULL);
        job_start(c->loop, &k->job, decode_run, decode_done);
        return;
    }
    loop_doing(c->loop, c->row->op);
    k->failed = decode(k);
    decoded(k);
}

void intake_begin(struct call *c)
{
    const struct http_head *h = http_head(c->r);
    struct intake *k = mem_zeroed(1, sizeof(*k));
    struct err e;

    c->intake = k;
    k->c = c;
    buf_init(&k->body, surface_body_max(c->row));
    if (h->content_length > 0 &&
        call_hold(c, (uint64_t)h->content_length * INTAKE_MEMORY, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (h->content_length > 0) /* so that it never moves; the pages come when they are written */
        buf_room(&k->body, (size_t)h->content_length);
    http_body_stream(c->r, take, whole, k);
}

/* ---- the end ---- */

void intake_free(struct call *c)
{
    struct intake *k = c->intake;

    if (k == NULL)
        return;
    job_settle(c->loop, &k->job);
    dispose(k, take_ptr(&c->doc));
    dispose(k, take_ptr(&k->doc));
    job_free_buf(c->loop, &k->body, k->job.share);
    free(k->in);
    free(take_ptr(&c->intake));
}
