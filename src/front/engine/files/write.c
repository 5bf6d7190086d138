/* write.c - see file.h: a file, written whole.
 *
 * The first bytes are held: a body that ends within INIT_FILE_MAX of them is a message
 * to init and nothing else. A longer one, and what init does not do by itself, goes to
 * the helper as it comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/files/internal.h"
#include "front/engine/process.h"
#include "mem/mem.h"

#define HELD_MAX                                                                                   \
    (INIT_FILE_MAX + (1u << 20)) /* and what a caller still gives while the helper starts */

static const struct talk_kind kind_write = {INIT_WRITE, {{INIT_FILE, TALK_LAST}}};

struct file_write {
    struct engine *g;
    enum { WRITE_HOLDING, WRITE_ASKED, WRITE_HELPER, WRITE_FAILED } step;
    struct talk talk;
    struct work *work;
    struct file_kept kept;
    struct file_write_opts o;
    char *match, *xattrs; /* o.match, o.owner and so on: ours */
    char xattr_prefix[FILE_NAME_MAX + 1];
    char owner[2 * FILE_NAME_MAX + 2];
    struct buf held;
    bool last, ready, special; /* all is here; the helper takes bytes; not for init */
    struct file_records records;
    bool told; /* an entry came */
    const struct file_write_ops *ops;
    void *arg;
    struct loop_later later;
    struct err why;
};

static void write_free(struct file_write *w)
{
    loop_undefer(&w->later);
    buf_free(&w->held);
    file_records_free(&w->records);
    free(w->match);
    free(w->xattrs);
    free(w);
}

static void finish(struct file_write *w, const struct file_info *f, const struct err *e)
{
    file_entry_cb *cb = w->ops->on_done;
    void *arg = w->arg;
    struct err why;

    if (e != NULL)
        why = *e;
    write_free(w);
    cb(arg, f, e != NULL ? &why : NULL);
}

static void finish_later(struct loop_later *l)
{
    struct file_write *w = CONTAINER_OF(l, struct file_write, later);

    finish(w, NULL, &w->why);
}

static void fail_later(struct file_write *w)
{
    w->step = WRITE_FAILED;
    loop_defer(w->g->loop, &w->later, finish_later);
}

/* ---- by the helper ---- */

static size_t push(struct file_write *w)
{
    size_t queued;

    if (!w->ready)
        return w->held.len > INIT_FILE_MAX ? FILE_FEED_HIGH + 1 : 0;
    queued = work_feed(w->work, buf_data(&w->held), w->held.len, w->last);
    buf_clear(&w->held);
    if (w->held.cap > FILE_FEED_HIGH)
        buf_free(&w->held);
    return queued;
}

static void helper_drain(void *arg)
{
    struct file_write *w = arg;
    bool first = !w->ready;

    w->ready = true;
    if (first && push(w) > FILE_FEED_HIGH)
        return; /* it drains again */
    if (!w->last && w->ops->on_drain != NULL)
        w->ops->on_drain(w->arg);
}

static int helper_record(void *arg, uint16_t type, const union file_record *m, struct err *e)
{
    struct file_write *w = arg;

    if (type != FILE_ENTRY || w->told || !w->last)
        return err_set(e, ERR_INVALID, "a record of type %u", type);
    w->told = true;
    /* Kept as it came; it is decoded again when the helper has ended well. */
    return wire_put(&w->held, file_msg(FILE_ENTRY), 0, &m->file_entry, e);
}

static void helper_data(void *arg, const char *p, size_t n)
{
    struct file_write *w = arg;
    struct err e;

    if (w->step != WRITE_HELPER || file_records_take(&w->records, p, n, helper_record, w, &e) == 0)
        return;
    work_close(take_ptr(&w->work));
    err_set(&w->why, ERR_UNRESPONSIVE, "invalid data from cove-helper: %s", e.msg);
    fail_later(w);
}

static void helper_done(void *arg, const struct err *e)
{
    struct file_write *w = arg;
    struct buf held = w->held;
    struct wire_head head;
    struct file_entry f;
    const char *body;
    struct err bad;

    w->work = NULL;
    if (e == NULL && !(w->records.ended && w->told)) {
        err_set(&bad, ERR_UNRESPONSIVE, "cove-helper exited without a result");
        e = &bad;
    }
    if (e != NULL) {
        finish(w, NULL, e);
        return;
    }
    buf_init(&w->held, 0);
    if (wire_peek(&held, &head, &body, &bad) > 0 &&
        wire_get(file_msg(FILE_ENTRY), body, head.len, &f, &bad) == 0)
        finish(w, (struct file_info[]){file_info_from(&f)}, NULL);
    else
        finish(w, NULL, &bad);
    buf_free(&held);
}

static const struct work_ops helper_ops = {
    .on_data = helper_data, .on_drain = helper_drain, .on_done = helper_done};

static void start_helper(struct file_write *w)
{
    const struct file_write_opts *o = &w->o;
    char mode[32], owner[sizeof(w->owner) + 8], prefix[sizeof(w->xattr_prefix) + 16];
    autofree char *match = NULL, *xattrs = NULL;
    const char *args[FILE_WORK_ARGS_MAX];
    size_t n = 0;

    str_fmt(mode, sizeof(mode), "mode=%u", o->mode);
    str_fmt(owner, sizeof(owner), "owner=%s", w->owner);
    if (o->mode != FILE_MODE_NONE)
        args[n++] = mode;
    if (w->owner[0] != '\0') {
        args[n++] = owner;
        args[n++] = "chown";
    }
    if (w->match != NULL)
        args[n++] = match = mem_format("match=%s", w->match);
    str_fmt(prefix, sizeof(prefix), "xattr_prefix=%s", w->xattr_prefix);
    if (w->xattr_prefix[0] != '\0')
        args[n++] = prefix;
    if (w->xattrs != NULL)
        args[n++] = xattrs = mem_format("xattrs=%s", w->xattrs);
    if (o->append)
        args[n++] = "append";
    if (o->atomic)
        args[n++] = "atomic";
    if (o->parents)
        args[n++] = "parents";
    if (o->only_new)
        args[n++] = "new";
    if (o->gzip)
        args[n++] = "gzip";
    args[n] = NULL;
    w->step = WRITE_HELPER;
    w->work = file_helper(&w->kept, "write", args, true, &helper_ops, w, &w->why);
    if (w->work == NULL)
        fail_later(w);
}

/* ---- by init ---- */

static int answered(struct talk *t, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct file_write *w = CONTAINER_OF(t, struct file_write, talk);
    struct file_info f = file_info_of(&m->init_file);

    (void)type, (void)e;
    if (m->init_file.elsewhere)
        start_helper(w);
    else
        finish(w, &f, NULL);
    return 0;
}

static void failed(struct talk *t, const struct err *e)
{
    finish(CONTAINER_OF(t, struct file_write, talk), NULL, e);
}

static const struct talk_ops talk_ops = {.on_msg = answered, .on_fail = failed};

static void ask_init(struct file_write *w)
{
    struct box *b = box_running(file_kept_ref(&w->kept), &w->why);
    struct init_write m = {
        .path = w->kept.path,
        .user = w->kept.user,
        .flags = (w->o.append ? INIT_WRITE_APPEND : 0u) | (w->o.parents ? INIT_WRITE_PARENTS : 0u) |
                 (w->o.only_new ? INIT_WRITE_NEW : 0u) | (w->kept.as_root ? INIT_WRITE_ROOT : 0u),
        .mode = w->o.mode,
        .xattr_prefix = w->xattr_prefix,
        .xattrs = w->xattrs != NULL ? w->xattrs : "",
        .data = {buf_data(&w->held), (uint32_t)w->held.len}};

    w->step = WRITE_ASKED;
    if (b == NULL)
        fail_later(w);
    else
        talk_begin(&w->talk, &b->peer, &kind_write, &m, PROCESS_DEADLINE_MS, &talk_ops);
}

/* ---- what callers call ---- */

size_t file_feed(struct file_write *w, const void *p, size_t n, bool last)
{
    if (w->step == WRITE_FAILED)
        return 0;
    w->last = last;
    if (buf_add(&w->held, p, n) < 0) {
        err_set(&w->why, ERR_UNAVAILABLE, "out of memory for the body");
        if (w->work != NULL)
            work_close(take_ptr(&w->work));
        fail_later(w);
        return 0;
    }
    if (w->step == WRITE_HOLDING) {
        if (last && !w->special && w->held.len <= INIT_FILE_MAX)
            ask_init(w);
        else if (w->special || w->held.len > INIT_FILE_MAX)
            start_helper(w);
    }
    return w->step == WRITE_HELPER ? push(w) : 0;
}

static int keep_opts(struct file_write *w, const struct file_write_opts *o, struct err *e)
{
    w->o = *o;
    if (o->owner != NULL && (*o->owner == '\0' || strlen(o->owner) >= sizeof(w->owner)))
        return err_set(e, ERR_INVALID, "owner: expected USER, USER:GROUP or :GROUP");
    if (o->owner != NULL)
        strcpy(w->owner, o->owner);
    if ((o->xattr_prefix != NULL && strlen(o->xattr_prefix) > FILE_NAME_MAX) ||
        (o->xattrs != NULL && strlen(o->xattrs) > XATTR_LINES_MAX))
        return err_set(e, ERR_INVALID, "extended attributes: more than %u bytes", XATTR_LINES_MAX);
    if (o->xattr_prefix != NULL)
        strcpy(w->xattr_prefix, o->xattr_prefix);
    w->match = mem_text(o->match);
    w->xattrs = mem_text(o->xattrs);
    w->special = o->owner != NULL || o->match != NULL || o->atomic || o->gzip;
    return 0;
}

struct file_write *file_write(const struct file_at *at, const struct file_write_opts *o,
                              const struct file_write_ops *ops, void *arg)
{
    struct file_write *w = mem_zeroed(1, sizeof(*w));

    w->g = at->ref.engine;
    w->ops = ops;
    w->arg = arg;
    buf_init(&w->held, HELD_MAX);
    file_records_init(&w->records);
    if (file_keep(at, &w->kept, &w->why) == NULL || keep_opts(w, o, &w->why) < 0)
        fail_later(w);
    return w;
}

void file_write_cancel(struct file_write *w)
{
    if (w == NULL)
        return;
    if (w->step == WRITE_ASKED)
        talk_end(&w->talk);
    if (w->work != NULL)
        work_close(w->work);
    write_free(w);
}
