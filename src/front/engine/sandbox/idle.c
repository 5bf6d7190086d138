/* idle.c - pauses sandboxes that were not used for a while.
 *
 * Use is a conversation with its init, or a hold (a connection to one of its ports, which init does
 * not see). Activity of its processes does not count. The next use resumes it. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/internal.h"

static void look_again(struct box *b, uint64_t ms);

/* These two are ours, and always there. */
static bool is_busy(const struct box *b)
{
    for (const struct list *l = b->peer.talks.next; l != &b->peer.talks; l = l->next)
        if (l != &b->monitor.talk.link && l != &b->journal.talk.link)
            return true;
    return b->holds > 0;
}

static uint64_t last_use(const struct box *b)
{
    return b->peer.used_ms > b->pub.changed_ms ? b->peer.used_ms : b->pub.changed_ms;
}

static void on_idle(struct loop_timer *t)
{
    struct box *b = CONTAINER_OF(t, struct box, idle);
    uint64_t now = clock_real_ms(), used = last_use(b);
    uint64_t since = now > used ? now - used : 0;
    struct life_news none = {0};

    if (b->life != LIFE_RUNNING || is_busy(b)) {
        look_again(b, b->pub.idle_ms);
    } else if (since < b->pub.idle_ms) {
        look_again(b, b->pub.idle_ms - since);
    } else {
        log_info("sandbox %s is idle; pausing it", b->pub.id);
        look_again(b, b->pub.idle_ms);
        life_event(b, LIFE_PAUSE, &none);
    }
}

static void look_again(struct box *b, uint64_t ms)
{
    loop_timer_set(b->g->loop, &b->idle, ms, on_idle);
}

void idle_watch(struct box *b)
{
    if (b->pub.idle_ms > 0)
        look_again(b, b->pub.idle_ms);
}

bool engine_is_used(struct ref ref)
{
    const struct box *b = box_find(ref.engine, ref.id);

    return b != NULL && strcmp(b->pub.key, ref.key) == 0 && is_busy(b);
}

void engine_hold(struct engine *g, const char *id)
{
    struct box *b = box_find(g, id);

    if (b != NULL)
        b->holds++;
}

void engine_release(struct engine *g, const char *id)
{
    struct box *b = box_find(g, id);

    if (b == NULL || b->holds == 0)
        return;
    b->holds--;
    b->peer.used_ms = clock_real_ms();
}
