/* test_init_journal.c - output becomes numbered lines; dropped ones are counted. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "init/run/journal.h"
#include "init/run/proc.h"

static struct {
    struct loop *loop;
    struct journal j;
    struct proc *p;
    struct journal_part out, err;
    unsigned told;
} rig;

static void on_lines(struct journal *j)
{
    (void)j;
    rig.told++;
}

static void begin(void)
{
    struct err e;

    memset(&rig, 0, sizeof(rig));
    CHECK_INT(loop_new(&rig.loop, &e), 0);
    rig.p = calloc(1, sizeof(*rig.p) + 16);
    rig.p->record.id = strcpy(rig.p->text, "job");
    rig.p->record.pid = 7;
    buf_init(&rig.out.text, INIT_LINE_MAX);
    buf_init(&rig.err.text, INIT_LINE_MAX);
    journal_init(&rig.j, rig.loop, on_lines);
}

static void end(void)
{
    struct journal_line *l;

    LIST_EACH (&rig.j.lines, l, struct journal_line, link) {
        list_del(&l->link);
        free(l);
    }
    buf_free(&rig.out.text);
    buf_free(&rig.err.text);
    free(rig.p);
    loop_free(rig.loop);
}

static void print(const char *text, size_t n)
{
    journal_take(&rig.j, rig.p, &rig.out, INIT_STDOUT, text, n);
}

static void prints(const char *text)
{
    print(text, strlen(text));
}

/* All lines as "seq stream text|". */
static const char *all(uint64_t since)
{
    static char text[64 << 10];
    size_t n = 0;

    text[0] = '\0';
    for (const struct journal_line *l = journal_from(&rig.j, since); l != NULL;
         l = journal_after(&rig.j, l))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%d %d %.*s|", (int)l->m.seq,
                              (int)l->m.stream, (int)l->m.data.len, (const char *)l->m.data.p);
    return text;
}

static void turn_until(unsigned told)
{
    struct err e;

    while (rig.told < told)
        CHECK_INT(loop_turn(rig.loop, 2000, &e), 0);
}

TEST(lines_are_joined_from_pieces_for_each_stream_separately)
{
    begin();
    prints("one\ntw");
    journal_take(&rig.j, rig.p, &rig.err, INIT_STDERR, "bad\r\n", 5);
    prints("o\n\nthr");
    prints("ee");
    CHECK_STR(all(0), "0 1 one|1 2 bad|2 1 two|3 1 |");
    CHECK_STR(all(3), "3 1 |");
    CHECK_STR(all(4), "");
    journal_end(&rig.j, rig.p, &rig.out, INIT_STDOUT);
    journal_end(&rig.j, rig.p, &rig.out, INIT_STDOUT);
    CHECK_STR(all(4), "4 1 three|");
    CHECK_STR(journal_from(&rig.j, 0)->m.id, "job");
    CHECK_INT(journal_from(&rig.j, 0)->m.pid, 7);
    turn_until(1); /* told once, for all of them */
    CHECK_INT(rig.told, 1);
    end();
}

TEST(a_long_line_is_split_between_characters)
{
    char *text = malloc(3 * INIT_LINE_MAX);

    begin();
    memset(text, 'x', 3 * INIT_LINE_MAX);
    memcpy(text + INIT_LINE_MAX - 1, "\xc3\xa4", 2);
    print(text, INIT_LINE_MAX);
    CHECK_INT(journal_from(&rig.j, 0)->m.data.len, INIT_LINE_MAX - 1);
    print(text + INIT_LINE_MAX, 10);
    prints("\n");
    CHECK_INT(journal_from(&rig.j, 1)->m.data.len, 11);
    CHECK(memcmp(journal_from(&rig.j, 1)->m.data.p, "\xc3\xa4xxx", 5) == 0);
    memset(text, 0xff, 2 * INIT_LINE_MAX);
    print(text, 2 * INIT_LINE_MAX);
    CHECK_INT(journal_from(&rig.j, 2)->m.data.len, INIT_LINE_MAX); /* no text at all */
    free(text);
    end();
}

TEST(a_flood_is_dropped_and_counted_and_later_lines_are_kept)
{
    char line[64 + 1];
    uint64_t kept;

    begin();
    memset(line, 'y', 64);
    line[63] = '\n';
    for (int i = 0; i < 20000; i++)
        print(line, 64);
    prints("half a ");
    CHECK_INT(rig.j.next, 20000);
    CHECK(rig.j.muted);
    CHECK(rig.j.kept <= JOURNAL_KEPT_MAX);
    kept = journal_from(&rig.j, 0)->m.seq;
    CHECK(kept < 100); /* the burst fits; a little may come on top while we print */
    while (rig.j.muted)
        CHECK_INT(loop_turn(rig.loop, 2000, &(struct err){0}), 0);
    CHECK_STR(all(20000), "20000 0 |");
    prints("line\nwhole\n"); /* what begins in the middle is none */
    CHECK_STR(all(20000), "20000 0 |20002 1 whole|");
    end();
}

TEST(unread_lines_are_dropped_the_oldest_first)
{
    char line[1024];

    begin();
    memset(line, 'y', sizeof(line));
    line[1023] = '\n';
    for (int i = 0; i < 2000; i++) {
        rig.j.left = JOURNAL_BURST; /* not too fast, but too many */
        print(line, sizeof(line));
    }
    CHECK(!rig.j.muted);
    CHECK(rig.j.kept <= JOURNAL_KEPT_MAX);
    CHECK_INT(journal_from(&rig.j, 0)->m.seq, 2000 - JOURNAL_KEPT_MAX / (1023 + JOURNAL_LINE_COST));
    CHECK_INT(journal_from(&rig.j, 1999)->m.seq, 1999);
    end();
}
