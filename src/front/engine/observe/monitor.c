/* monitor.c - one connection per running sandbox, for events of its processes.
 *
 * All sandboxes share one ring of events, so a flood is slowed down: after MONITOR_BURST events in a
 * second we stop reading, and the init drops events. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/engine/internal.h"
#include "json/write.h"

#define MONITOR_BURST 200
#define MONITOR_CALM_MS 1000
#define MONITOR_RETRY_MS 100
#define MONITOR_RETRY_MAX_MS 10000
#define MONITOR_DATA_MAX 4096
#define MONITOR_COMMAND_MAX 512u /* bytes of a command line in an event */

static const struct talk_kind kind = {INIT_MONITOR, {{INIT_EVENT, TALK_MORE}}};

static struct box *box_of_monitor(struct monitor *m)
{
    return CONTAINER_OF(m, struct box, monitor);
}

static void on_calm(struct loop_timer *t)
{
    struct monitor *m = CONTAINER_OF(t, struct monitor, calm);

    m->burst = 0;
    talk_pause(&m->talk, false);
}

static void count(struct monitor *m)
{
    uint64_t now = clock_mono_ms();

    if (now - m->burst_ms >= MONITOR_CALM_MS) {
        m->burst_ms = now;
        m->burst = 0;
    }
    if (++m->burst < MONITOR_BURST)
        return;
    talk_pause(&m->talk, true);
    loop_timer_set(box_of_monitor(m)->g->loop, &m->calm, MONITOR_CALM_MS, on_calm);
}

static const struct {
    const char *event, *noun;
    bool end;
} kinds[] = {
    [INIT_EVENT_STARTED] = {"process.started", "process", false},
    [INIT_EVENT_EXITED] = {"process.exited", "process", true},
    [INIT_EVENT_SESSION_CREATED] = {"session.created", "session", false},
    [INIT_EVENT_SESSION_ENDED] = {"session.ended", "session", true},
};

/* The command line, cut: who wants all of it asks for the process. Inits of release 0.1.0 do not
 * send it. */
static void put_command(struct json_w *w, const struct init_event *ev)
{
    autobuf struct buf text = BUF_INIT(MONITOR_COMMAND_MAX);
    const char *arg;
    uint32_t at = 0;

    while ((arg = wire_strv_next(&ev->argv, &at)) != NULL && text.len < MONITOR_COMMAND_MAX - 8) {
        size_t room = MONITOR_COMMAND_MAX - 8 - text.len, n = strlen(arg);

        buf_addf(&text, "%s%.*s", text.len > 0 ? " " : "", (int)(n < room ? n : room), arg);
        if (n >= room)
            buf_adds(&text, "...");
    }
    if (text.len > 0)
        jw_kstr(w, "command", buf_cstr(&text));
    if (ev->user[0] != '\0')
        jw_kstr(w, "user", ev->user);
}

static void say(struct box *b, const struct init_event *ev)
{
    autobuf struct buf data = BUF_INIT(MONITOR_DATA_MAX);
    struct json_w w;

    jw_init(&w, &data);
    jw_open(&w);
    jw_kstr(&w, kinds[ev->kind].noun, ev->id);
    jw_ku64(&w, "pid", ev->pid);
    put_command(&w, ev);
    if (kinds[ev->kind].end) {
        jw_ku64(&w, "exit_code", ev->code);
        jw_ku64(&w, "signal", ev->signal);
    }
    if (ev->kind == INIT_EVENT_EXITED)
        jw_kbool(&w, "timed_out", ev->flags & INIT_EXIT_TIMED_OUT);
    if (ev->kind == INIT_EVENT_EXITED && (ev->flags & INIT_EXIT_OOM) != 0)
        jw_kbool(&w, "oom", true);
    if (ev->kind == INIT_EVENT_EXITED && (ev->flags & INIT_EXIT_OOM_MEANWHILE) != 0)
        jw_kbool(&w, "oom_meanwhile", true);
    jw_close(&w);
    if (!data.failed)
        events_add_at(b->g, b, kinds[ev->kind].event, ev->at_ms, buf_cstr(&data));
}

static int on_msg(struct talk *t, uint16_t type, const union talk_msg *msg, struct err *e)
{
    struct monitor *m = CONTAINER_OF(t, struct monitor, talk);

    (void)type;
    (void)e;
    m->failures = 0;
    say(box_of_monitor(m), &msg->init_event);
    count(m);
    return 0;
}

/* Events in between were lost. */
static void on_retry(struct loop_timer *t)
{
    struct box *b = box_of_monitor(CONTAINER_OF(t, struct monitor, retry));

    monitor_start(b);
    events_lost(b->g, b);
}

/* The keeper says when an init has died; until then this may be a full backlog,
 * or an init that misbehaves. One of another version stays unwatched. */
static void on_fail(struct talk *t, const struct err *e)
{
    struct monitor *m = CONTAINER_OF(t, struct monitor, talk);
    struct box *b = box_of_monitor(m);
    uint64_t ms = (uint64_t)MONITOR_RETRY_MS << (m->failures < 10 ? m->failures : 10);

    loop_timer_stop(b->g->loop, &m->calm);
    if (!box_has_init(b) || e->kind == ERR_UNSUPPORTED)
        return;
    m->failures++;
    loop_timer_set(b->g->loop, &m->retry, ms < MONITOR_RETRY_MAX_MS ? ms : MONITOR_RETRY_MAX_MS,
                   on_retry);
}

void monitor_start(struct box *b)
{
    static const struct talk_ops ops = {.on_msg = on_msg, .on_fail = on_fail};
    struct init_monitor ask = {0};

    talk_begin(&b->monitor.talk, &b->peer, &kind, &ask, 0, &ops);
}

void monitor_stop(struct box *b)
{
    loop_timer_stop(b->g->loop, &b->monitor.retry);
    loop_timer_stop(b->g->loop, &b->monitor.calm);
    talk_end(&b->monitor.talk);
}
