#include "unit.h"

#include <stdbool.h>

#include "front/workspace/states.h"

/* ---- a workspace as the table sees it, and the world that it would have made ---- */

struct model {
    enum ws_state state;
    unsigned sandboxes, most;
    bool archived; /* all that the newest sandbox had when it was last used */
    bool lost;     /* a sandbox was deleted by us and was not archived */
};

static void begin(struct model *m)
{
    if (ws_states[m->state].op == WS_OP_MAKE)
        m->sandboxes = 1 + (m->sandboxes > 0 ? 1 : 0);
    if (m->sandboxes > m->most)
        m->most = m->sandboxes;
}

static void happen(struct model *m, enum ws_event ev)
{
    const struct ws_step *s = &ws_steps[m->state][ev];
    enum ws_op op = ws_states[m->state].op;
    bool done = ev == WS_EV_DONE && s->tell != WS_NEVER;

    if (s->tell == WS_NEVER || s->tell == WS_LATER)
        return;
    if (ev == WS_EV_LOST)
        m->sandboxes = 0;
    if (done && op == WS_OP_ARCHIVE)
        m->archived = true;
    if (done && op == WS_OP_UNDO)
        m->sandboxes = 0;
    if (done && op == WS_OP_REMOVE) {
        m->lost = m->lost || (m->state != WS_DELETING && !m->archived);
        m->sandboxes = 0;
    }
    if (s->next == m->state)
        return;
    m->state = s->next;
    if (m->state == WS_WARM)
        m->archived = false;
    begin(m);
}

/* ---- the tests ---- */

TEST(every_cell_is_decided)
{
    for (int s = 0; s < WS_STATE_COUNT; s++)
        for (int ev = 0; ev < WS_EVENT_COUNT; ev++) {
            const struct ws_step *c = &ws_steps[s][ev];

            CHECK(c->tell >= WS_KEEP && c->tell <= WS_NEVER);
            CHECK(c->next < WS_STATE_COUNT);
            if (c->tell == WS_NEVER || c->tell == WS_LATER)
                CHECK_INT(c->next, s);
        }
}

TEST(waiters_are_served_only_by_a_sandbox_that_runs)
{
    for (int s = 0; s < WS_STATE_COUNT; s++)
        for (int ev = 0; ev < WS_EVENT_COUNT; ev++)
            if (ws_steps[s][ev].tell == WS_SERVE)
                CHECK_INT(ws_steps[s][ev].next, WS_WARM);
}

TEST(a_use_reaches_a_running_sandbox_from_every_state_but_deleting)
{
    for (int s = 0; s < WS_STATE_COUNT; s++) {
        struct model m = {.state = (enum ws_state)s};
        int steps = 0;

        if (s == WS_DELETING)
            continue;
        while (m.state != WS_WARM && steps++ < 6)
            happen(&m, ws_states[m.state].op == WS_OP_NONE ? WS_EV_USE : WS_EV_DONE);
        /* a use that came while it was put away comes again */
        CHECK_INT(m.state, WS_WARM);
    }
}

TEST(an_unused_one_becomes_cold_and_is_archived_before_its_sandbox_goes)
{
    struct model m = {.state = WS_WARM, .sandboxes = 1};
    int steps = 0;

    while (m.state != WS_COLD && steps++ < 8)
        happen(&m, ws_states[m.state].op == WS_OP_NONE ? WS_EV_REST : WS_EV_DONE);
    CHECK_INT(m.state, WS_COLD);
    CHECK_INT(m.sandboxes, 0);
    CHECK(m.archived);
}

/* Every sequence of events of some length, from a fixed seed. */
TEST(no_events_have_two_sandboxes_or_remove_one_that_was_not_archived)
{
    unsigned seed = 1;

    for (int run = 0; run < 20000; run++) {
        struct model m = {.state = WS_COLD};

        for (int i = 0; i < 60; i++) {
            enum ws_event ev;

            seed = seed * 1103515245u + 12345u;
            ev = (enum ws_event)((seed >> 16) % WS_EVENT_COUNT);
            /* what an operation says comes only while there is one */
            if (ws_states[m.state].op == WS_OP_NONE && (ev == WS_EV_DONE || ev == WS_EV_FAIL))
                continue;
            happen(&m, ev);
            CHECK(m.sandboxes <= 1);
            CHECK(!m.lost);
        }
    }
}

TEST(a_start_in_any_state_leaves_one_that_can_go_on)
{
    for (int s = 0; s < WS_STATE_COUNT; s++) {
        enum ws_state next = ws_steps[s][WS_EV_START].next;

        /* an interrupted make is undone, never repeated beside what it left */
        CHECK(ws_states[next].op != WS_OP_MAKE);
        /* and no waiter of a dead process is served */
        CHECK(ws_steps[s][WS_EV_START].tell != WS_SERVE);
    }
}
