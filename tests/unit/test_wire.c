#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/init.h"
#include "wire/keeper.h"

static const char *body_of(struct buf *b, struct wire_head *head)
{
    const char *body;
    struct err e;

    CHECK_INT(wire_peek(b, head, &body, &e), 1);
    return body;
}

TEST(a_message_is_decoded_as_it_was_encoded)
{
    autobuf struct buf b = BUF_INIT(1 << 20), argv = BUF_INIT(1 << 10);
    struct init_start in = {.id = "p1",
                            .cwd = "/tmp",
                            .user = NULL,
                            .flags = 5,
                            .timeout_ms = 1ull << 40,
                            .ring = 77},
                      out;
    struct wire_head head;
    struct err e;
    uint32_t at = 0;
    const char *body;

    wire_strv_add(&argv, "echo");
    wire_strv_add(&argv, "");
    wire_strv_add(&argv, "a b");
    in.argv = wire_strv_of(&argv);
    CHECK_INT(wire_put(&b, init_msg(INIT_START), 9, &in, &e), 0);
    body = body_of(&b, &head);
    CHECK_INT(head.type, INIT_START);
    CHECK_INT(head.seq, 9);
    CHECK_INT(wire_get(init_msg(head.type), body, head.len, &out, &e), 0);
    CHECK_STR(out.id, "p1");
    CHECK_STR(out.user, "");
    CHECK_INT(out.timeout_ms, 1ull << 40);
    CHECK_INT(out.argv.count, 3);
    CHECK_STR(wire_strv_next(&out.argv, &at), "echo");
    CHECK_STR(wire_strv_next(&out.argv, &at), "");
    CHECK_STR(wire_strv_next(&out.argv, &at), "a b");
    CHECK(wire_strv_next(&out.argv, &at) == NULL);
}

TEST(missing_fields_at_the_end_are_empty_and_unknown_later_ones_are_skipped)
{
    autobuf struct buf b = BUF_INIT(1 << 16);
    struct init_started in = {.id = "x", .pid = 7, .started_ms = 8}, out;
    struct wire_head head;
    struct err e;
    const char *body;

    CHECK_INT(wire_put(&b, init_msg(INIT_STARTED), 1, &in, &e), 0);
    body = body_of(&b, &head);
    CHECK_INT(wire_get(init_msg(INIT_STARTED), body, 4 + 2 + 4, &out, &e), 0);
    CHECK_INT(out.pid, 7);
    CHECK_INT(out.started_ms, 0);
    CHECK_INT(wire_get(init_msg(INIT_STARTED), body, 0, &out, &e), 0);
    CHECK_STR(out.id, "");
    buf_add(&b, "later", 5);
    CHECK_INT(wire_get(init_msg(INIT_STARTED), buf_data(&b) + WIRE_HEAD, head.len + 5, &out, &e),
              0);
    CHECK_INT(out.started_ms, 8);
}

TEST(a_field_cut_in_the_middle_is_refused_by_name)
{
    autobuf struct buf b = BUF_INIT(1 << 16);
    struct init_started in = {.id = "abc", .pid = 7}, out;
    struct wire_head head;
    struct err e;
    const char *body;

    CHECK_INT(wire_put(&b, init_msg(INIT_STARTED), 1, &in, &e), 0);
    body = body_of(&b, &head);
    CHECK_INT(wire_get(init_msg(INIT_STARTED), body, 6, &out, &e), -1);
    CHECK_HAS(e.msg, "id");
    CHECK_INT(wire_get(init_msg(INIT_STARTED), body, 4 + 4 + 2, &out, &e), -1);
    CHECK_HAS(e.msg, "pid");
}

TEST(a_string_with_a_nul_inside_or_without_its_end_is_refused)
{
    static const char nul[] = "\3\0\0\0a\0\0", endless[] = "\2\0\0\0ab", empty[] = "\0\0\0\0";
    struct init_get out;
    struct err e;

    CHECK_INT(wire_get(init_msg(INIT_GET), nul, 7, &out, &e), -1);
    CHECK_INT(wire_get(init_msg(INIT_GET), endless, 6, &out, &e), -1);
    CHECK_INT(wire_get(init_msg(INIT_GET), empty, 4, &out, &e), -1);
}

TEST(a_list_with_a_wrong_count_is_refused)
{
    autobuf struct buf b = BUF_INIT(1 << 16), argv = BUF_INIT(100);
    struct init_start in = {.id = "x"}, out;
    struct wire_head head;
    struct err e;
    const char *body;

    wire_strv_add(&argv, "one");
    in.argv = wire_strv_of(&argv);
    in.argv.count = 2;
    CHECK_INT(wire_put(&b, init_msg(INIT_START), 1, &in, &e), 0);
    body = body_of(&b, &head);
    CHECK_INT(wire_get(init_msg(INIT_START), body, head.len, &out, &e), -1);
    CHECK_HAS(e.msg, "argv");
}

TEST(a_number_above_its_bound_is_refused)
{
    static const char bad[] = "\1\0\0\0\0\377\377\0\0";
    struct init_signal out;
    struct err e;

    CHECK_INT(wire_get(init_msg(INIT_SIGNAL), bad, 9, &out, &e), -1);
    CHECK_HAS(e.msg, "signal");
}

TEST(a_field_over_its_max_is_not_encoded_and_the_buffer_stays)
{
    autobuf struct buf b = BUF_INIT(1 << 20);
    char id[200];
    struct init_get in = {.id = id};
    struct err e;

    memset(id, 'a', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    CHECK_INT(wire_put(&b, init_msg(INIT_GET), 1, &in, &e), -1);
    CHECK_HAS(e.msg, "id is longer than 129");
    CHECK_INT(b.len, 0);
}

TEST(a_frame_longer_than_the_bound_ends_the_conversation)
{
    autobuf struct buf b = BUF_INIT(1 << 10);
    struct wire_head head = {.len = WIRE_FRAME_MAX + 1, .type = INIT_OK}, got;
    const char *body;
    struct err e;

    CHECK_INT(wire_peek(&b, &got, &body, &e), 0);
    buf_add(&b, &head, WIRE_HEAD);
    CHECK_INT(wire_peek(&b, &got, &body, &e), -1);
}

/* Says what it is told to say of each frame. */
struct script {
    enum wire_next says[4];
    unsigned seen;
    struct buf *free_it; /* with WIRE_GONE */
};

static enum wire_next read_script(void *arg, const struct wire_head *head, const char *body,
                                  struct err *e)
{
    struct script *s = arg;
    enum wire_next next = s->says[s->seen++];

    (void)body;
    CHECK_INT(head->seq, s->seen);
    if (next == WIRE_BROKEN)
        err_set(e, ERR_INVALID, "not this one");
    if (next == WIRE_GONE)
        buf_free(s->free_it);
    return next;
}

/* Three frames and the beginning of a fourth; returns the size of one. */
static size_t fill_frames(struct buf *b)
{
    struct init_ok m = {.value = 7};
    char begin[WIRE_HEAD - 1];
    struct err e;
    size_t one;

    for (uint32_t seq = 1; seq <= 3; seq++)
        CHECK_INT(wire_put(b, init_msg(INIT_OK), seq, &m, &e), 0);
    one = b->len / 3;
    memcpy(begin, buf_data(b), sizeof(begin));
    buf_add(b, begin, sizeof(begin));
    return one;
}

TEST(a_pump_hands_over_every_whole_frame_and_keeps_the_beginning_of_the_next)
{
    autobuf struct buf b = BUF_INIT(1 << 16);
    struct script s = {.says = {WIRE_NEXT, WIRE_NEXT, WIRE_NEXT}};
    struct err e;

    fill_frames(&b);
    CHECK_INT(wire_pump(&b, WIRE_FRAME_MAX, read_script, &s, &e), 0);
    CHECK_INT(s.seen, 3);
    CHECK_INT(b.len, WIRE_HEAD - 1);
}

TEST(a_pump_that_is_stopped_consumes_that_frame_and_keeps_the_ones_after_it)
{
    autobuf struct buf b = BUF_INIT(1 << 16);
    struct script s = {.says = {WIRE_NEXT, WIRE_STOP, WIRE_NEXT}};
    size_t one = fill_frames(&b);
    struct err e;

    CHECK_INT(wire_pump(&b, WIRE_FRAME_MAX, read_script, &s, &e), 1);
    CHECK_INT(b.len, one + WIRE_HEAD - 1);
    CHECK_INT(wire_pump(&b, WIRE_FRAME_MAX, read_script, &s, &e), 0);
    CHECK_INT(s.seen, 3);
}

TEST(a_pump_does_not_touch_a_buffer_that_its_reader_freed)
{
    struct buf b = BUF_INIT(1 << 16);
    struct script s = {.says = {WIRE_GONE}, .free_it = &b};
    struct err e;

    fill_frames(&b);
    CHECK_INT(wire_pump(&b, WIRE_FRAME_MAX, read_script, &s, &e), 1);
    CHECK_INT(b.len, 0);
    CHECK_INT(s.seen, 1);
}

TEST(a_pump_fails_with_the_error_of_its_reader)
{
    autobuf struct buf b = BUF_INIT(1 << 16);
    struct script s = {.says = {WIRE_BROKEN}};
    struct err e;

    fill_frames(&b);
    CHECK_INT(wire_pump(&b, WIRE_FRAME_MAX, read_script, &s, &e), -1);
    CHECK_STR(e.msg, "not this one");
}

TEST(a_pump_refuses_a_frame_above_its_limit_before_all_of_it_has_come)
{
    autobuf struct buf b = BUF_INIT(1 << 16);
    struct script s = {.says = {WIRE_NEXT}};
    size_t one = fill_frames(&b);
    struct err e;

    b.len = WIRE_HEAD;
    CHECK_INT(wire_pump(&b, (uint32_t)(one - WIRE_HEAD), read_script, &s, &e), 0);
    CHECK_INT(wire_pump(&b, (uint32_t)(one - WIRE_HEAD) - 1, read_script, &s, &e), -1);
    CHECK_HAS(e.msg, "the limit is");
    CHECK_INT(s.seen, 0);
}

TEST(every_row_of_both_tables_is_found_by_its_number_and_no_other_is)
{
    size_t found = 0;

    for (unsigned type = 0; type <= UINT16_MAX; type++) {
        const struct wire_msg *i = init_msg((uint16_t)type), *k = keeper_msg((uint16_t)type);

        CHECK(i == NULL || i->type == type);
        CHECK(k == NULL || k->type == type);
        found += (i != NULL) + (k != NULL);
    }
    CHECK(found >= 36);
}

static const struct wire_msg *message(const char *wall, unsigned number)
{
    return strcmp(wall, "init") == 0 ? init_msg((uint16_t)number) : keeper_msg((uint16_t)number);
}

/* A line of a fixture: the wall, the number and name of a message, its fields as name:type. */
static void check_line(char *line)
{
    char *at, *wall = strtok_r(line, " \n", &at), *number = strtok_r(NULL, " \n", &at);
    char *name = strtok_r(NULL, " \n", &at), text[128];
    const struct wire_msg *m = message(wall, (unsigned)atoi(number));
    size_t i = 0;

    CHECK(m != NULL);
    CHECK_STR(m->name, name);
    for (char *field; (field = strtok_r(NULL, " \n", &at)) != NULL; i++) {
        CHECK(i < m->nfields);
        snprintf(text, sizeof(text), "%s:%d", m->fields[i].name, (int)m->fields[i].type);
        CHECK_STR(text, field);
    }
}

/* Inits of that release run on after an upgrade. */
TEST(every_message_of_0_1_0_still_has_its_number_and_its_fields_in_their_order)
{
    FILE *f = fopen(FIXTURES "/wire-0.1.0.txt", "re");
    char line[4096];
    size_t n = 0;

    CHECK(f != NULL);
    for (; fgets(line, sizeof(line), f) != NULL; n++)
        check_line(line);
    fclose(f);
    CHECK_INT(n, 42);
}

TEST(inits_of_the_oldest_release_to_this_one_are_understood_and_no_others)
{
    CHECK(!init_is_understood(INIT_VERSION_OLDEST - 1));
    CHECK(init_is_understood(INIT_VERSION_OLDEST));
    CHECK(init_is_understood(INIT_VERSION));
    CHECK(!init_is_understood(INIT_VERSION + 1));
}
