/* event.h - changes in a directory as envd reports them: FilesystemEvent of filesystem.proto, in
 * order, each with its entry if requested.
 *
 * Entries are looked up one at a time, when the event is sent; meanwhile later events wait here, and
 * the reader should pause (event_waits()). */
#ifndef FRONT_PLANES_E2B_EVENT_H
#define FRONT_PLANES_E2B_EVENT_H

#include "base/list.h"
#include "front/engine/watch.h"
#include "front/planes/e2b/entry.h"
#include "front/planes/e2b/internal.h"

#define EVENT_WAITING_MAX 65536u /* then ERR_LIMIT, once */

struct event_writer {
    struct call *c;
    const char *dir; /* that is watched, absolute; borrowed */
    bool entries;
    /* One event, as a JSON object. `next`: the cursor after it; 0: not yet known, another event
     * belongs to it. */
    void (*put)(struct event_writer *w, struct buf *event, uint64_t next);
    /* All events were put; `e`: and no more will come, for this reason. */
    void (*idle)(struct event_writer *w, const struct err *e);
    /* event.c's own */
    struct list waiting;
    size_t nwaiting;
    struct file_call *looking;
    bool found; /* an entry */
    struct buf out;
    struct json_w w;
    struct entry_writer entry;
};

void event_init(struct event_writer *w, struct call *c);
/* Forgets what waits, tells nothing more. */
void event_drop(struct event_writer *w);
/* Of the kinds that clients know: others are ignored. */
void event_add(struct event_writer *w, const struct watch_event *ev);
bool event_waits(const struct event_writer *w);

#endif
