/* work_call.c - see file.h: work on files by cove-helper, told in records. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/files/internal.h"
#include "mem/mem.h"

struct file_work {
    struct file_call call; /* first */
    struct engine *g;
    struct work *work; /* NULL: it could not begin */
    struct file_records records;
    const struct file_work_ops *ops;
    void *arg;
    struct loop_later later; /* a failure known at once, or found by ourselves */
    struct err why;
    bool inside, dead; /* told of a record; cancelled meanwhile */
};

struct work *file_helper(const struct file_kept *k, const char *kind, const char *const *args,
                         bool input, const struct work_ops *ops, void *arg, struct err *e)
{
    char path[FILE_PATH_MAX + sizeof("path=")], owner[INIT_USER_MAX + sizeof("owner=")];
    char whom[INIT_USER_MAX + sizeof("for=")];
    const char *argv[FILE_WORK_ARGS_MAX + 5] = {kind, path};
    struct work_opts o = {.argv = argv, .cwd = "/", .user = k->user, .input = input};
    size_t n = 2;

    str_fmt(path, sizeof(path), "path=%s", k->path);
    if (k->as_root) {
        str_fmt(owner, sizeof(owner), "owner=%s", k->user);
        str_fmt(whom, sizeof(whom), "for=%s", k->user);
        argv[n++] = owner;
        argv[n++] = whom;
        o.user = "root";
    }
    for (; args != NULL && *args != NULL; args++) {
        if (n + 1 >= ARRAY_LEN(argv)) {
            err_set(e, ERR_INTERNAL, "%s: too many arguments", kind);
            return NULL;
        }
        argv[n++] = *args;
    }
    return work_start(file_kept_ref(k), &o, ops, arg);
}

static void work_free(struct file_work *w)
{
    loop_undefer(&w->later);
    file_records_free(&w->records);
    free(w);
}

static void finish(struct file_work *w, const struct err *e)
{
    const struct file_work_ops *ops = w->ops;
    void *arg = w->arg;
    struct err why;

    if (e != NULL) {
        why = *e;
        work_free(w);
        ops->on_done(arg, NULL, &why);
        return;
    }
    ops->on_done(arg, &w->records.done, NULL);
    work_free(w);
}

static void finish_later(struct loop_later *l)
{
    struct file_work *w = CONTAINER_OF(l, struct file_work, later);
    struct err why = w->why;

    finish(w, &why);
}

static int each(void *arg, uint16_t type, const union file_record *m, struct err *e)
{
    struct file_work *w = arg;
    const struct file_work_ops *ops = w->ops;

    if (w->dead)
        return 0;
    if (type == FILE_ENTRY && ops->on_entry != NULL)
        ops->on_entry(w->arg, (struct file_info[]){file_info_from(&m->file_entry)});
    else if (type == FILE_LINE && ops->on_line != NULL)
        ops->on_line(w->arg, (struct file_match[]){file_match_from(&m->file_line)});
    else if (type == FILE_XATTR && ops->on_xattr != NULL)
        ops->on_xattr(w->arg, (struct file_attr_info[]){file_attr_info_from(&m->file_xattr)});
    else
        return err_set(e, ERR_INVALID, "a record of type %u", type);
    return 0;
}

/* What speaks nonsense is ended; that is told from the loop, as everything is. */
static void on_data(void *arg, const char *p, size_t n)
{
    struct file_work *w = arg;
    struct err e;
    int r;

    if (w->work == NULL)
        return;
    w->inside = true;
    r = file_records_take(&w->records, p, n, each, w, &e);
    w->inside = false;
    if (w->dead) {
        work_free(w);
    } else if (r < 0) {
        work_close(take_ptr(&w->work));
        err_set(&w->why, ERR_UNRESPONSIVE, "invalid data from cove-helper: %s", e.msg);
        loop_defer(w->g->loop, &w->later, finish_later);
    }
}

static void on_done(void *arg, const struct err *e)
{
    struct file_work *w = arg;
    struct err cut;

    w->work = NULL;
    if (e == NULL && !w->records.ended) {
        err_set(&cut, ERR_UNRESPONSIVE, "cove-helper exited without a result");
        e = &cut;
    }
    finish(w, e);
}

static void cancel(struct file_call *c)
{
    struct file_work *w = CONTAINER_OF(c, struct file_work, call);

    if (w->work != NULL)
        work_close(take_ptr(&w->work));
    w->dead = true;
    if (!w->inside)
        work_free(w);
}

static void pause_work(struct file_call *c, bool paused)
{
    struct file_work *w = CONTAINER_OF(c, struct file_work, call);

    if (w->work != NULL)
        work_pause(w->work, paused);
}

static const struct work_ops helper_ops = {.on_data = on_data, .on_done = on_done};

static struct file_work *work_new(struct engine *g, const struct file_work_ops *ops, void *arg)
{
    struct file_work *w = mem_zeroed(1, sizeof(*w));

    w->call = (struct file_call){.cancel = cancel, .pause = pause_work};
    w->g = g;
    w->ops = ops;
    w->arg = arg;
    file_records_init(&w->records);
    return w;
}

struct file_call *file_work_failed(struct engine *g, const struct err *e,
                                   const struct file_work_ops *ops, void *arg)
{
    struct file_work *w = work_new(g, ops, arg);

    w->why = *e;
    loop_defer(g->loop, &w->later, finish_later);
    return &w->call;
}

struct file_call *file_work(const struct file_at *at, const char *kind, const char *const *args,
                            const struct file_work_ops *ops, void *arg)
{
    struct file_work *w = work_new(at->ref.engine, ops, arg);
    struct file_kept kept;

    if (file_keep(at, &kept, &w->why) != NULL)
        w->work = file_helper(&kept, kind, args, false, &helper_ops, w, &w->why);
    if (w->work == NULL)
        loop_defer(at->ref.engine->loop, &w->later, finish_later);
    return &w->call;
}
