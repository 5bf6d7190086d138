/* event.c - see event.h. */
#include "front/planes/e2b/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

#define EVENT_JSON_MAX (256u << 10) /* of one, with its entry */

enum event_type { EVENT_CREATE, EVENT_WRITE, EVENT_REMOVE, EVENT_RENAME, EVENT_CHMOD };

static const struct {
    const char *name;
    bool there; /* so it has an entry */
} types[] = {
    [EVENT_CREATE] = {"EVENT_TYPE_CREATE", true},  [EVENT_WRITE] = {"EVENT_TYPE_WRITE", true},
    [EVENT_REMOVE] = {"EVENT_TYPE_REMOVE", false}, [EVENT_RENAME] = {"EVENT_TYPE_RENAME", false},
    [EVENT_CHMOD] = {"EVENT_TYPE_CHMOD", true},
};

struct event {
    struct list link;
    enum event_type type;
    uint64_t next;
    char name[];
};

void event_init(struct event_writer *w, struct call *c)
{
    w->c = c;
    list_init(&w->waiting);
    buf_init(&w->out, EVENT_JSON_MAX);
}

static void forget(struct event_writer *w)
{
    struct event *ev;

    while ((ev = LIST_FIRST(&w->waiting, struct event, link)) != NULL) {
        list_del(&ev->link);
        free(ev);
    }
    w->nwaiting = 0;
}

void event_drop(struct event_writer *w)
{
    if (w->c == NULL)
        return;
    file_cancel(take_ptr(&w->looking));
    forget(w);
    buf_free(&w->out);
}

bool event_waits(const struct event_writer *w)
{
    return w->nwaiting > 0;
}

/* ---- one event ---- */

static void open_event(struct event_writer *w, const struct event *ev)
{
    buf_clear(&w->out);
    jw_init(&w->w, &w->out);
    jw_open(&w->w);
    jw_kstr(&w->w, "name", ev->name);
    jw_kstr(&w->w, "type", types[ev->type].name);
    w->entry = (struct entry_writer){.w = &w->w};
    w->found = false;
}

static void next(struct event_writer *w);

static void close_event(struct event_writer *w)
{
    struct event *ev = LIST_FIRST(&w->waiting, struct event, link);
    uint64_t after = ev->next;

    entry_end(&w->entry);
    if (w->out.failed) /* too many attributes: send the event without its entry */
        open_event(w, ev);
    jw_close(&w->w);
    list_del(&ev->link);
    free(ev);
    w->nwaiting--;
    w->put(w, &w->out, after);
}

static void on_entry(void *arg, const struct file_info *f)
{
    struct event_writer *w = arg;

    if (w->found && w->entry.state != ENTRY_LINK)
        return;
    if (!w->found)
        jw_key(&w->w, "entry");
    w->found = true;
    entry_add(&w->entry, f);
}

static void on_xattr(void *arg, const struct file_attr_info *x)
{
    entry_add_xattr(&((struct event_writer *)arg)->entry, x);
}

/* What is gone again has no entry. */
static void looked(void *arg, const struct file_result *d, const struct err *e)
{
    struct event_writer *w = arg;

    (void)d;
    (void)e;
    w->looking = NULL;
    close_event(w);
    next(w);
}

static void look(struct event_writer *w, const struct event *ev)
{
    static const struct file_work_ops ops = {
        .on_entry = on_entry, .on_xattr = on_xattr, .on_done = looked};
    static const char *const args[] = {"resolve", "xattrs=" ENTRY_XATTR, NULL};
    autobuf struct buf path = BUF_INIT(2 * E2B_PATH_MAX);
    struct file_at at = e2b_at(w->c, NULL, NULL);

    buf_addf(&path, "%s/%s", w->dir, ev->name);
    at.path = buf_cstr(&path);
    w->looking = file_work(&at, "stat", args, &ops, w);
}

static void next(struct event_writer *w)
{
    struct event *ev;

    while ((ev = LIST_FIRST(&w->waiting, struct event, link)) != NULL) {
        open_event(w, ev);
        if (w->entries && types[ev->type].there) {
            look(w, ev);
            return;
        }
        close_event(w);
    }
    w->idle(w, NULL);
}

static bool add(struct event_writer *w, enum event_type type, const char *name, uint64_t after)
{
    struct event *ev;
    struct err e;

    if (w->nwaiting >= EVENT_WAITING_MAX) {
        file_cancel(take_ptr(&w->looking)); /* its event is forgotten too */
        forget(w);
        err_set(&e, ERR_LIMIT, "events were lost; list the directory again");
        w->idle(w, &e);
        return false;
    }
    ev = mem_zeroed(1, sizeof(*ev) + strlen(name) + 1);
    ev->type = type;
    ev->next = after;
    strcpy(ev->name, name);
    list_add_tail(&w->waiting, &ev->link);
    w->nwaiting++;
    return true;
}

void event_add(struct event_writer *w, const struct watch_event *ev)
{
    static const struct {
        bool known;
        enum event_type type;
    } of[WATCH_KIND_COUNT] = {
        [WATCH_CREATE] = {true, EVENT_CREATE}, [WATCH_MODIFY] = {true, EVENT_WRITE},
        [WATCH_DELETE] = {true, EVENT_REMOVE}, [WATCH_ATTRIB] = {true, EVENT_CHMOD},
        [WATCH_MOVE] = {true, EVENT_CREATE},
    };

    if (!of[ev->kind].known)
        return;
    if (ev->kind == WATCH_MOVE && ev->from != NULL && !add(w, EVENT_RENAME, ev->from, 0))
        return;
    if (add(w, of[ev->kind].type, ev->path, ev->next) && w->looking == NULL)
        next(w);
}
