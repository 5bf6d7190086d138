/* read.c - see file.h: the bytes of a file.
 *
 * Init is asked first: it answers with a small file whole. A larger one comes as an fd,
 * and one that is not of the root filesystem as a stream of the helper's. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/fdpass.h"
#include "front/engine/files/internal.h"
#include "front/engine/process.h"
#include "mem/mem.h"

static const struct talk_kind kind_read = {INIT_LOOK, {{INIT_FILE, TALK_LAST}}};

struct reading {
    struct file_call call; /* first */
    struct engine *g;
    enum { READ_ASKED, READ_OPENING, READ_STREAM } step;
    struct talk talk;
    struct fd_call *fd;
    struct work *work; /* NULL in READ_STREAM: it could not begin */
    struct file_kept kept;
    struct file_info entry; /* its strings in the next three */
    char path[FILE_PATH_MAX + 1], owner[FILE_NAME_MAX + 1], group[FILE_NAME_MAX + 1];
    bool begun;        /* of a stream: told that it is one */
    bool inside, dead; /* being told of it; cancelled meanwhile */
    const struct file_read_ops *ops;
    void *arg;
    struct loop_later later;
    struct err why;
};

static void finish(struct reading *r, const struct err *e)
{
    const struct file_read_ops *ops = r->ops;
    void *arg = r->arg;
    struct err why;

    if (e != NULL)
        why = *e;
    loop_undefer(&r->later);
    free(r);
    ops->on_done(arg, e != NULL ? &why : NULL);
}

static void finish_later(struct loop_later *l)
{
    struct reading *r = CONTAINER_OF(l, struct reading, later);

    finish(r, &r->why);
}

/* The call is over before the content is told: nothing can be taken back any more. */
static void deliver(struct reading *r, const char *data, int fd)
{
    const struct file_read_ops *ops = r->ops;
    struct reading was = *r;
    void *arg = r->arg;

    was.entry.path = was.path;
    was.entry.owner = was.owner;
    was.entry.group = was.group;
    was.entry.target = "";
    free(r);
    ops->on_content(arg, &(struct file_content){.entry = &was.entry, .data = data, .fd = fd});
}

/* ---- the stream ---- */

static void begin_stream(struct reading *r)
{
    if (!r->begun)
        r->ops->on_content(r->arg, &(struct file_content){.fd = -1});
    r->begun = true;
}

static void stream_data(void *arg, const char *p, size_t n)
{
    struct reading *r = arg;

    r->inside = true;
    begin_stream(r);
    if (!r->dead)
        r->ops->on_data(r->arg, p, n);
    r->inside = false;
    if (r->dead)
        free(r);
}

static void stream_done(void *arg, const struct err *e)
{
    struct reading *r = arg;

    r->work = NULL;
    r->inside = true;
    if (e == NULL)
        begin_stream(r);
    r->inside = false;
    if (r->dead)
        free(r);
    else
        finish(r, e);
}

static const struct work_ops stream_ops = {.on_data = stream_data, .on_done = stream_done};

static void start_stream(struct reading *r)
{
    char max[32];
    const char *const args[] = {max, NULL};

    r->step = READ_STREAM;
    str_fmt(max, sizeof(max), "max=%u", FILE_STREAM_MAX);
    r->work = file_helper(&r->kept, "read", args, false, &stream_ops, r, &r->why);
    if (r->work == NULL)
        loop_defer(r->g->loop, &r->later, finish_later);
}

/* ---- the fd ---- */

/* What is promised to the client is what the fd says, not what init did a moment ago. */
static void opened(void *arg, int fd, const struct stat *st, const struct err *e)
{
    struct reading *r = arg;

    r->fd = NULL;
    if (e != NULL) {
        finish(r, e);
        return;
    }
    r->entry.size = (uint64_t)st->st_size;
    r->entry.ino = st->st_ino;
    r->entry.mtime_ns = clock_ns_of(&st->st_mtim);
    r->entry.ctime_ns = clock_ns_of(&st->st_ctim);
    deliver(r, NULL, fd);
}

/* ---- the question ---- */

static int answered(struct talk *t, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct reading *r = CONTAINER_OF(t, struct reading, talk);
    const struct init_file *f = &m->init_file;
    struct file_at at = file_kept_at(&r->kept);

    (void)type;
    if (f->elsewhere) {
        start_stream(r);
        return 0;
    }
    if (f->has_data && f->data.len != f->size)
        return err_set(e, ERR_INVALID, "%u bytes of a file of %llu", f->data.len,
                       (unsigned long long)f->size);
    r->entry = file_info_of(f);
    strcpy(r->path, f->path);
    strcpy(r->owner, f->owner);
    strcpy(r->group, f->group);
    if (f->has_data) {
        deliver(r, f->data.p, -1);
        return 0;
    }
    r->step = READ_OPENING;
    r->fd = fd_open(&at, opened, r);
    return 0;
}

static void failed(struct talk *t, const struct err *e)
{
    finish(CONTAINER_OF(t, struct reading, talk), e);
}

static const struct talk_ops talk_ops = {.on_msg = answered, .on_fail = failed};

static void cancel(struct file_call *c)
{
    struct reading *r = CONTAINER_OF(c, struct reading, call);

    if (r->step == READ_ASKED)
        talk_end(&r->talk);
    else if (r->step == READ_OPENING)
        fd_cancel(r->fd);
    else if (r->work != NULL)
        work_close(r->work);
    loop_undefer(&r->later);
    r->dead = true;
    if (!r->inside)
        free(r);
}

static void pause_stream(struct file_call *c, bool paused)
{
    struct reading *r = CONTAINER_OF(c, struct reading, call);

    if (r->step == READ_STREAM && r->work != NULL)
        work_pause(r->work, paused);
}

struct file_call *file_read(const struct file_at *at, const struct file_read_ops *ops, void *arg)
{
    struct reading *r = mem_zeroed(1, sizeof(*r));
    struct init_look m;
    struct err e;
    struct box *b;

    r->call = (struct file_call){.cancel = cancel, .pause = pause_stream};
    r->g = at->ref.engine;
    r->ops = ops;
    r->arg = arg;
    b = file_keep(at, &r->kept, &e);
    if (b == NULL) {
        talk_begin_failed(&r->talk, at->ref.engine->hub, &talk_ops, &e);
        return &r->call;
    }
    m = (struct init_look){.path = r->kept.path,
                           .user = r->kept.user,
                           .flags = INIT_LOOK_READ | (at->as_root ? INIT_LOOK_ROOT : 0u)};
    talk_begin(&r->talk, &b->peer, &kind_read, &m, PROCESS_DEADLINE_MS, &talk_ops);
    return &r->call;
}
