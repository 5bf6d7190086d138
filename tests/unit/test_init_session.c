/* test_init_session.c - the table of init/session/life.c. */
#include "unit.h"

#include "init/session/session.h"

TEST(every_event_is_decided_in_every_state)
{
    for (int s = 0; s < SESSION_STATE_COUNT; s++)
        for (int ev = 0; ev < SESSION_EVENT_COUNT; ev++)
            CHECK(session_reactions[s][ev] != NULL);
}

TEST(the_shell_is_heard_only_while_a_reply_is_expected)
{
    for (int s = 0; s < SESSION_STATE_COUNT; s++)
        CHECK_INT(session_listens((enum session_state)s),
                  s != SESSION_IDLE && s < SESSION_FINISHING);
}

TEST(a_shell_can_say_only_once_that_it_exits)
{
    CHECK(session_reactions[SESSION_EXITING][ON_EXIT] ==
          session_reactions[SESSION_STARTING][ON_EXIT]);
    CHECK(session_reactions[SESSION_INTERRUPTING_EXIT][ON_EXIT] ==
          session_reactions[SESSION_STARTING][ON_EXIT]);
    CHECK(session_reactions[SESSION_RUNNING][ON_EXIT] !=
          session_reactions[SESSION_STARTING][ON_EXIT]);
}

TEST(a_second_interrupt_and_a_late_one_change_nothing)
{
    session_reaction *stale = session_reactions[SESSION_ENDED][ON_INTERRUPT];

    for (int s = 0; s < SESSION_STATE_COUNT; s++)
        if (s != SESSION_RUNNING && s != SESSION_EXITING)
            CHECK(session_reactions[s][ON_INTERRUPT] == stale);
    CHECK(session_reactions[SESSION_RUNNING][ON_INTERRUPT] != stale);
}
