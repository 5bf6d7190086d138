#include "unit.h"

#include "init/run/proc.h"

static enum proc_state after(enum proc_state s, enum proc_event ev, enum proc_act *act)
{
    *act = proc_step(&s, ev);
    return s;
}

TEST(every_event_is_decided_in_every_state)
{
    for (int s = 0; s < PROC_STATE_COUNT; s++) {
        for (int ev = 0; ev < PROC_EVENT_COUNT; ev++) {
            enum proc_act act;
            enum proc_state next = after((enum proc_state)s, (enum proc_event)ev, &act);

            CHECK(act != ACT_UNDECIDED && act < PROC_ACT_COUNT);
            if (act == ACT_STALE)
                CHECK_INT(next, s);
        }
    }
}

TEST(a_process_never_comes_back_from_a_later_state)
{
    for (int s = 0; s < PROC_STATE_COUNT; s++) {
        for (int ev = 0; ev < PROC_EVENT_COUNT; ev++) {
            enum proc_act act;

            CHECK((int)after((enum proc_state)s, (enum proc_event)ev, &act) >= s);
        }
    }
}

TEST(a_process_that_ignores_term_is_killed_when_its_grace_ends)
{
    enum proc_state s = PROC_RUNNING;

    CHECK_INT(proc_step(&s, EV_KILL), ACT_ASK);
    CHECK_INT(proc_step(&s, EV_FORCE), ACT_FORCE);
    CHECK_INT(proc_step(&s, EV_EXIT), ACT_REAP);
    CHECK_INT(proc_step(&s, EV_EMPTY), ACT_BURY);
    CHECK_INT(s, PROC_GONE);
}

TEST(children_that_outlive_the_root_are_killed_like_the_root)
{
    enum proc_state s = PROC_RUNNING;

    proc_step(&s, EV_EXIT);
    CHECK_INT(proc_step(&s, EV_KILL), ACT_ASK);
    CHECK_INT(proc_step(&s, EV_FORCE), ACT_FORCE);
    CHECK_INT(proc_step(&s, EV_EMPTY), ACT_BURY);
}

TEST(the_root_may_end_between_term_and_the_end_of_its_grace)
{
    enum proc_state s = PROC_ASKED;

    CHECK_INT(proc_step(&s, EV_EXIT), ACT_REAP_ASK);
    CHECK_INT(s, PROC_LEFT_ASKED);
    CHECK_INT(proc_step(&s, EV_FORCE), ACT_FORCE);
}

TEST(a_timeout_after_the_end_changes_nothing)
{
    for (int i = PROC_LEFT; i < PROC_STATE_COUNT; i++) {
        enum proc_state s = (enum proc_state)i;

        CHECK_INT(proc_step(&s, EV_TIMEOUT), ACT_STALE);
    }
}
