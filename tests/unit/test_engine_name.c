/* test_engine_name.c - sandboxes that are made at the first use of their name. */
#include "engine_rows.h"

#include "front/engine/internal.h"

static const struct create_opts opts = {.key = KEY};

static const char *id_of(struct rig *r, const char *key, const char *name)
{
    const struct sandbox *s = engine_by_name(r->g, key, name);

    return s == NULL ? "none" : s->id;
}

static void made(struct rig *r, const char *id)
{
    struct keeper_sandbox box = keeper_box(id, KEEPER_RUNNING);
    union rig_msg m;

    keeper_say(r, KEEPER_SANDBOX, keeper_hear(r, KEEPER_CREATE, &m), &box);
}

/* No request of the front is waiting for the keeper. */
static bool keeper_is_idle(struct rig *r)
{
    struct wire_head head;
    const char *body;

    rig_settle(r);
    return !peer_has(&r->keeper, &head, &body);
}

TEST(concurrent_calls_with_one_name_make_one_sandbox)
{
    struct rig r;
    struct told t[50] = {0};

    start(&r);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        engine_named(r.g, "agent", &opts, told_sandbox, &t[i]);
    CHECK_STR(id_of(&r, KEY, "agent"), "none");
    made(&r, "sb1");
    RIG_UNTIL(&r, t[49].n == 1);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        CHECK_INT(t[i].n, 1);
        CHECK_STR(t[i].id, "sb1");
    }
    CHECK(keeper_is_idle(&r));
    CHECK_STR(id_of(&r, KEY, "agent"), "sb1");
    CHECK_STR(id_of(&r, "other", "agent"), "none");
    rig_free(&r);
}

TEST(a_name_means_the_same_sandbox_after_a_restart)
{
    struct rig r;
    struct told t = {0};
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    uint32_t seq;

    start(&r);
    engine_named(r.g, "agent", &opts, told_sandbox, &t);
    made(&r, "sb1");
    RIG_UNTIL(&r, t.n == 1);
    rig_stop(&r);
    seq = rig_start(&r);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    rig_join(&r, seq);
    engine_named(r.g, "agent", &opts, told_sandbox, &t);
    RIG_UNTIL(&r, t.n == 2);
    CHECK_STR(t.id, "sb1");
    rig_free(&r);
}

TEST(a_name_is_free_the_moment_its_sandbox_is_to_be_deleted)
{
    struct rig r;
    struct told t = {0}, gone = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    engine_named(r.g, "agent", &opts, told_sandbox, &t);
    made(&r, "sb1");
    RIG_UNTIL(&r, t.n == 1);
    engine_delete_named(r.g, KEY, "agent", told_done, &gone);
    CHECK_STR(id_of(&r, KEY, "agent"), "none");
    seq = keeper_hear(&r, KEEPER_DESTROY, &m);
    engine_named(r.g, "agent", &opts, told_sandbox, &t);
    made(&r, "sb2");
    RIG_UNTIL(&r, t.n == 2);
    CHECK_STR(t.id, "sb2");
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, gone.n == 1);
    CHECK_INT(gone.failed, 0);
    CHECK_STR(id_of(&r, KEY, "agent"), "sb2");
    rig_free(&r);
}

TEST(a_delete_during_a_create_waits_for_the_create)
{
    struct rig r;
    struct told first = {0}, gone = {0};
    union rig_msg m;

    start(&r);
    engine_named(r.g, "agent", &opts, told_sandbox, &first);
    engine_delete_named(r.g, KEY, "agent", told_done, &gone);
    made(&r, "sb1");
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, gone.n == 1);
    CHECK_INT(first.n, 1);
    CHECK_INT(gone.failed, 0);
    CHECK_STR(id_of(&r, KEY, "agent"), "none");
    rig_free(&r);
}

TEST(a_call_after_a_pending_delete_of_its_name_is_refused)
{
    struct rig r;
    struct told first = {0}, gone = {0}, after = {0};
    union rig_msg m;

    start(&r);
    engine_named(r.g, "agent", &opts, told_sandbox, &first);
    engine_delete_named(r.g, KEY, "agent", told_done, &gone);
    engine_named(r.g, "agent", &opts, told_sandbox, &after);
    made(&r, "sb1");
    RIG_UNTIL(&r, first.n == 1 && after.n == 1);
    CHECK_STR(first.id, "sb1");
    CHECK_INT(after.e.kind, ERR_GONE);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    engine_named(r.g, "agent", &opts, told_sandbox, &after);
    made(&r, "sb2");
    RIG_UNTIL(&r, gone.n == 1 && after.n == 2);
    CHECK_INT(gone.failed, 0);
    CHECK_STR(after.id, "sb2");
    rig_free(&r);
}

static struct {
    int n;
    engine_done_cb *done;
    void *arg;
} preparing;

static void prepare(struct engine *g, const struct sandbox *s, engine_done_cb *done, void *arg)
{
    (void)g;
    CHECK_STR(s->id, "sb1");
    preparing.n++;
    preparing.done = done;
    preparing.arg = arg;
}

TEST(a_new_sandbox_is_not_used_before_it_is_prepared)
{
    static const struct create_opts prepared = {.key = KEY, .prepare = prepare};
    struct rig r;
    struct told t = {0}, late = {0}, gone = {0};
    union rig_msg m;

    start(&r);
    engine_named(r.g, "agent", &prepared, told_sandbox, &t);
    made(&r, "sb1");
    RIG_UNTIL(&r, preparing.n == 1);
    CHECK_STR(id_of(&r, KEY, "agent"), "none");
    engine_named(r.g, "agent", &prepared, told_sandbox, &late);
    engine_delete_named(r.g, KEY, "agent", told_done, &gone);
    rig_settle(&r);
    CHECK_INT(t.n + late.n + gone.n, 0);
    preparing.done(preparing.arg, NULL);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, t.n == 1 && late.n == 1 && gone.n == 1);
    CHECK_STR(late.id, "sb1");
    CHECK_INT(preparing.n, 1);
    rig_free(&r);
}

TEST(deleting_an_unknown_name_makes_no_sandbox)
{
    struct rig r;
    struct told gone = {0};

    start(&r);
    engine_delete_named(r.g, KEY, "agent", told_done, &gone);
    RIG_UNTIL(&r, gone.n == 1);
    CHECK_INT(gone.failed, 0);
    CHECK(keeper_is_idle(&r));
    rig_free(&r);
}

TEST(a_failed_create_fails_all_waiting_calls_and_the_next_call_tries_again)
{
    struct rig r;
    struct told a = {0}, b = {0}, gone = {0};
    union rig_msg m;
    struct keeper_fail full = {.code = "unavailable", .message = "full"};

    start(&r);
    engine_named(r.g, "agent", &opts, told_sandbox, &a);
    engine_named(r.g, "agent", &opts, told_sandbox, &b);
    engine_delete_named(r.g, KEY, "agent", told_done, &gone);
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_CREATE, &m), &full);
    RIG_UNTIL(&r, a.n == 1 && b.n == 1 && gone.n == 1);
    CHECK_INT(a.e.kind, ERR_UNAVAILABLE);
    CHECK_INT(b.e.kind, ERR_UNAVAILABLE);
    CHECK_INT(gone.failed, 0);
    engine_named(r.g, "agent", &opts, told_sandbox, &a);
    made(&r, "sb1");
    RIG_UNTIL(&r, a.n == 2);
    CHECK_STR(a.id, "sb1");
    rig_free(&r);
}

TEST(a_sandbox_deleted_by_id_during_its_create_leaves_no_name)
{
    struct rig r;
    struct told t = {0}, gone = {0};
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    union rig_msg m;
    uint32_t seq;

    start(&r);
    engine_named(r.g, "agent", &opts, told_sandbox, &t);
    seq = keeper_hear(&r, KEEPER_CREATE, &m);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    RIG_UNTIL(&r, engine_get((struct ref){r.g, KEY, "sb1"}) != NULL);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &gone);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, gone.n == 1 && t.n == 1);
    CHECK_STR(id_of(&r, KEY, "agent"), "none");
    engine_named(r.g, "agent", &opts, told_sandbox, &t);
    made(&r, "sb2");
    RIG_UNTIL(&r, t.n == 2);
    CHECK_STR(t.id, "sb2");
    rig_free(&r);
}

TEST(a_name_over_its_bound_is_refused_and_freeing_the_engine_drops_waiting_calls)
{
    struct rig r;
    struct told t = {0}, never = {0};
    char name[ENGINE_NAME_MAX + 2];
    union rig_msg m;

    start(&r);
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    engine_named(r.g, name, &opts, told_sandbox, &t);
    RIG_UNTIL(&r, t.n == 1);
    CHECK_INT(t.e.kind, ERR_INVALID);
    engine_named(r.g, "", &opts, told_sandbox, &t);
    RIG_UNTIL(&r, t.n == 2);
    CHECK_INT(t.e.kind, ERR_INVALID);
    name[ENGINE_NAME_MAX] = '\0';
    engine_named(r.g, name, &opts, told_sandbox, &never);
    engine_delete_named(r.g, KEY, name, told_done, &never);
    keeper_hear(&r, KEEPER_CREATE, &m);
    rig_free(&r);
    CHECK_INT(never.n, 0);
}
