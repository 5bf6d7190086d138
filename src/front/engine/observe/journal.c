/* journal.c - copies the output of commands from init to the log.
 *
 * One conversation with the init of each sandbox that logs output. Init numbers the lines and keeps
 * the latest; we read them, and write each to the log in one transaction with the number of the
 * next. So a crash neither loses nor repeats a line. A skipped number is a line that init dropped,
 * and gets an entry too. Lines are not read faster than they are written. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"

#define JOURNAL_RETRY_MS 100
#define JOURNAL_RETRY_MAX_MS 10000

static const struct talk_kind kind = {INIT_JOURNAL, {{INIT_LINE, TALK_MORE}}};

static struct box *box_of_journal(struct journal *j)
{
    return CONTAINER_OF(j, struct box, journal);
}

static int check(const struct journal *j, const struct init_line *m, struct err *e)
{
    if (m->seq < j->next || m->seq >= INT64_MAX)
        return err_set(e, ERR_INVALID, "line %llu instead of %llu", (unsigned long long)m->seq,
                       (unsigned long long)j->next);
    return 0;
}

void journal_go_on(struct journal *j)
{
    list_del(&j->waiting);
    talk_pause(&j->talk, false);
}

static int on_msg(struct talk *t, uint16_t type, const union talk_msg *msg, struct err *e)
{
    struct journal *j = CONTAINER_OF(t, struct journal, talk);
    const struct init_line *m = &msg->init_line;
    struct box *b = box_of_journal(j);
    bool room = true;

    (void)type;
    if (check(j, m, e) < 0)
        return -1;
    j->failures = 0;
    if (m->seq > j->next)
        room = logbook_gap(b, m);
    if (m->stream != 0)
        room = logbook_line(b, m) && room;
    else if (m->seq == j->next)
        j->next++;
    if (!room) {
        logbook_hurry(box_of_journal(j)->g);
        talk_pause(&j->talk, true);
        list_del(&j->waiting);
        list_add_tail(&box_of_journal(j)->g->logbook.waiting, &j->waiting);
    }
    return 0;
}

static void begin(struct journal *j);

static void on_retry(struct loop_timer *t)
{
    begin(CONTAINER_OF(t, struct journal, retry));
}

/* As the monitor's. An init of an older Cove has no journal. */
static void on_fail(struct talk *t, const struct err *e)
{
    struct journal *j = CONTAINER_OF(t, struct journal, talk);
    struct box *b = box_of_journal(j);
    uint64_t ms = (uint64_t)JOURNAL_RETRY_MS << (j->failures < 10 ? j->failures : 10);

    list_del(&j->waiting);
    if (!box_has_init(b) || e->kind == ERR_UNSUPPORTED)
        return;
    j->failures++;
    loop_timer_set(b->g->loop, &j->retry, ms < JOURNAL_RETRY_MAX_MS ? ms : JOURNAL_RETRY_MAX_MS,
                   on_retry);
}

static void begin(struct journal *j)
{
    static const struct talk_ops ops = {.on_msg = on_msg, .on_fail = on_fail};
    struct init_journal ask = {.since = j->next};

    talk_begin(&j->talk, &box_of_journal(j)->peer, &kind, &ask, 0, &ops);
}

void journal_start(struct box *b)
{
    struct journal *j = &b->journal;

    if (!b->pub.log_output)
        return;
    if (strcmp(j->boot, b->boot_id) != 0) {
        str_fmt(j->boot, sizeof(j->boot), "%s", b->boot_id);
        j->next = 0;
    }
    begin(j);
}

void journal_stop(struct box *b)
{
    loop_timer_stop(b->g->loop, &b->journal.retry);
    talk_end(&b->journal.talk);
    list_del(&b->journal.waiting);
}
