/* test_engine_snapshot.c - snapshots and forks, between a keeper and an init that the
 * test plays. */
#include "engine_rig.h"

#include "front/engine/snapshot.h"

struct snapped {
    int n;
    struct err e;
    char id[64], name[64];
};

static void told_snapshot(void *arg, const struct snapshot *s, const struct err *e)
{
    struct snapped *t = arg;

    t->n++;
    if (e != NULL)
        t->e = *e;
    snprintf(t->id, sizeof(t->id), "%s", s == NULL ? "" : s->id);
    snprintf(t->name, sizeof(t->name), "%s", s == NULL ? "" : s->name);
}

static int count_row(void *arg, const struct store_snapshot *row, struct err *e)
{
    (void)row;
    (void)e;
    (*(int *)arg)++;
    return 0;
}

static int rows(struct rig *r)
{
    struct err e;
    int n = 0;

    CHECK_INT(store_snapshot_each(r->store, count_row, &n, &e), 0);
    return n;
}

static struct keeper_snap snap_of(const char *id)
{
    return (struct keeper_snap){
        .id = id, .sandbox = "sb1", .template = "base", .bytes = 4096, .created_ms = 1000};
}

struct scene {
    struct rig r;
    int listen_fd;
    struct peer monitor;
    union rig_msg m;
};

static void scene_new(struct scene *s)
{
    rig_new(&s->r);
    rig_join(&s->r, rig_start(&s->r));
    rig_create(&s->r, "sb1", 60000, SANDBOX_END_PAUSE, &s->listen_fd, &s->monitor);
}

static void scene_free(struct scene *s)
{
    peer_close(&s->monitor);
    close(s->listen_fd);
    rig_free(&s->r);
}

TEST(a_snapshot_has_a_row_before_the_answer)
{
    struct snapped a = {0};
    struct told gone = {0};
    struct keeper_snap snap = snap_of("snap1");
    struct scene s;
    uint32_t seq;

    scene_new(&s);
    engine_snapshot((struct ref){s.r.g, KEY, "sb1"}, "first", told_snapshot, &a);
    seq = keeper_hear(&s.r, KEEPER_SNAPSHOT, &s.m);
    CHECK_STR(s.m.keeper_snapshot.id, "sb1");
    CHECK_INT(rows(&s.r), 0);
    keeper_say(&s.r, KEEPER_SNAP, seq, &snap);
    RIG_UNTIL(&s.r, rows(&s.r) == 1);
    RIG_UNTIL(&s.r, a.n == 1);
    CHECK_STR(a.id, "snap1");
    CHECK_STR(engine_snapshot_get((struct ref){s.r.g, KEY, "first"})->id, "snap1");
    CHECK(engine_snapshot_get((struct ref){s.r.g, "other", "first"}) == NULL);
    CHECK(engine_snapshot_get((struct ref){s.r.g, "other", "snap1"}) == NULL);
    engine_snapshot_delete((struct ref){s.r.g, "other", "snap1"}, told_done, &gone);
    RIG_UNTIL(&s.r, gone.n == 1);
    CHECK_INT(gone.e.kind, ERR_NOT_FOUND);
    engine_snapshot_delete((struct ref){s.r.g, KEY, "snap1"}, told_done, &gone);
    CHECK_INT(rows(&s.r), 0);
    keeper_ok_to(&s.r, keeper_hear(&s.r, KEEPER_UNSNAP, &s.m));
    RIG_UNTIL(&s.r, gone.n == 2);
    CHECK_INT(gone.failed, 0);
    scene_free(&s);
}

TEST(the_join_lets_go_of_snapshots_without_a_row_and_forgets_rows_without_a_snapshot)
{
    struct store_snapshot kept = {.id = "kept",
                                  .key = KEY,
                                  .name = "",
                                  .sandbox = "x",
                                  .template = "base"},
                          lost = kept;
    struct keeper_snap snap;
    struct rig r;
    union rig_msg m;
    struct err e;
    uint32_t seq;

    lost.id = "lost";
    rig_new(&r);
    CHECK_INT(store_snapshot_insert(r.store, &kept, &e), 0);
    CHECK_INT(store_snapshot_insert(r.store, &lost, &e), 0);
    seq = rig_start(&r);
    snap = snap_of("kept");
    keeper_say(&r, KEEPER_SNAP, r.snapshots_seq, &snap);
    snap = snap_of("nobody");
    keeper_say(&r, KEEPER_SNAP, r.snapshots_seq, &snap);
    rig_join(&r, seq);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_UNSNAP, &m));
    CHECK_STR(m.keeper_unsnap.id, "nobody");
    CHECK_INT(rows(&r), 1);
    CHECK(engine_snapshot_get((struct ref){r.g, KEY, "kept"}) != NULL);
    CHECK(engine_snapshot_get((struct ref){r.g, KEY, "lost"}) == NULL);
    rig_free(&r);
}

struct forked {
    int each, done;
    struct err e[4], why;
    char ids[4][64];
    bool failed;
};

static void told_fork(void *arg, const struct sandbox *s, const struct err *e)
{
    struct forked *f = arg;

    if (e != NULL)
        f->e[f->each] = *e;
    else
        snprintf(f->ids[f->each], 64, "%s", s->id);
    f->each++;
}

static void told_forks(void *arg, const struct err *e)
{
    struct forked *f = arg;

    f->done++;
    f->failed = e != NULL;
    if (e != NULL)
        f->why = *e;
}

TEST(of_a_fork_each_works_or_fails_by_itself_and_the_snapshot_is_let_go)
{
    struct fork_opts o = {.count = 3};
    struct keeper_fail full = {.code = "unavailable", .message = "this host is full"};
    struct keeper_snap snap = snap_of("snap1");
    struct keeper_sandbox one = keeper_box("f1", KEEPER_RUNNING),
                          three = keeper_box("f3", KEEPER_RUNNING);
    struct forked f = {0};
    uint32_t seqs[3];
    struct scene s;

    scene_new(&s);
    engine_fork((struct ref){s.r.g, KEY, "sb1"}, &o, told_fork, told_forks, &f);
    keeper_say(&s.r, KEEPER_SNAP, keeper_hear(&s.r, KEEPER_SNAPSHOT, &s.m), &snap);
    for (int i = 0; i < 3; i++) {
        seqs[i] = keeper_hear(&s.r, KEEPER_CREATE, &s.m);
        CHECK_STR(s.m.keeper_create.snapshot, "snap1");
    }
    keeper_say(&s.r, KEEPER_SANDBOX, seqs[2], &three);
    keeper_say(&s.r, KEEPER_FAIL, seqs[1], &full);
    rig_settle(&s.r);
    CHECK_INT(f.done, 0);
    keeper_say(&s.r, KEEPER_SANDBOX, seqs[0], &one);
    RIG_UNTIL(&s.r, f.done == 1);
    CHECK_INT(f.each, 3);
    CHECK(!f.failed);
    CHECK_STR(f.ids[0], "f1");
    CHECK_INT(f.e[1].kind, ERR_UNAVAILABLE);
    CHECK_STR(f.ids[2], "f3");
    CHECK_INT(engine_get((struct ref){s.r.g, KEY, "f1"})->on_timeout, SANDBOX_END_PAUSE);
    CHECK_INT(engine_get((struct ref){s.r.g, KEY, "f1"})->timeout_ms, 60000);
    keeper_ok_to(&s.r, keeper_hear(&s.r, KEEPER_UNSNAP, &s.m));
    CHECK_STR(s.m.keeper_unsnap.id, "snap1");
    CHECK_INT(rows(&s.r), 0);
    scene_free(&s);
}

TEST(a_fork_whose_snapshot_fails_makes_no_sandbox)
{
    struct fork_opts o = {.count = 2}, none = {.count = 0}, many = {.count = FORK_MAX + 1};
    struct keeper_fail no = {.code = "disk_full", .message = "no room"};
    struct forked f = {0};
    struct scene s;

    scene_new(&s);
    engine_fork((struct ref){s.r.g, KEY, "sb1"}, &none, told_fork, told_forks, &f);
    engine_fork((struct ref){s.r.g, KEY, "sb1"}, &many, told_fork, told_forks, &f);
    RIG_UNTIL(&s.r, f.done == 2);
    CHECK_INT(f.why.kind, ERR_INVALID);
    engine_fork((struct ref){s.r.g, KEY, "sb1"}, &o, told_fork, told_forks, &f);
    keeper_say(&s.r, KEEPER_FAIL, keeper_hear(&s.r, KEEPER_SNAPSHOT, &s.m), &no);
    RIG_UNTIL(&s.r, f.done == 3);
    CHECK_INT(f.why.kind, ERR_DISK_FULL);
    CHECK_INT(f.each, 0);
    scene_free(&s);
}

TEST(a_template_of_no_such_name_may_be_a_snapshot_and_is_asked_for_once)
{
    struct create_opts o = {.key = KEY, .template = "mine"};
    struct keeper_fail no = {.code = "not_found", .message = "no template 'mine'"};
    struct keeper_snap snap = snap_of("snap1");
    struct snapped a = {0};
    struct told t = {0};
    struct scene s;

    scene_new(&s);
    engine_snapshot((struct ref){s.r.g, KEY, "sb1"}, "mine", told_snapshot, &a);
    keeper_say(&s.r, KEEPER_SNAP, keeper_hear(&s.r, KEEPER_SNAPSHOT, &s.m), &snap);
    RIG_UNTIL(&s.r, a.n == 1);
    engine_create(s.r.g, &o, told_sandbox, &t);
    keeper_say(&s.r, KEEPER_FAIL, keeper_hear(&s.r, KEEPER_CREATE, &s.m), &no);
    keeper_say(&s.r, KEEPER_FAIL, keeper_hear(&s.r, KEEPER_CREATE, &s.m), &no);
    CHECK_STR(s.m.keeper_create.snapshot, "snap1");
    RIG_UNTIL(&s.r, t.n == 1);
    CHECK_INT(t.e.kind, ERR_NOT_FOUND);
    scene_free(&s);
}
