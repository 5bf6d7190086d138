/* What clients are told is on the disk, and the loop does not wait for that. The disk is
 * in the test's hand: every flush of the program comes through here. */
#include "engine_rig.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool held;
static int flushes, to_fail;

int fdatasync(int fd)
{
    bool fail;

    pthread_mutex_lock(&lock);
    flushes++;
    while (held)
        pthread_cond_wait(&wake, &lock);
    fail = to_fail > 0 && to_fail-- > 0;
    pthread_mutex_unlock(&lock);
    if (!fail)
        return (int)syscall(SYS_fdatasync, fd);
    errno = EIO;
    return -1;
}

static int count(void)
{
    int n;

    pthread_mutex_lock(&lock);
    n = flushes;
    pthread_mutex_unlock(&lock);
    return n;
}

static void disk(bool hold, int fail)
{
    pthread_mutex_lock(&lock);
    held = hold;
    to_fail = fail;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
}

static void start(struct rig *r)
{
    disk(false, 0); /* a test that failed may have left it held */
    rig_new(r);
    rig_join(r, rig_start(r));
    /* the writes of the start are over */
    rig_settle(r);
}

static void create(struct rig *r, const char *id, struct told *t)
{
    struct create_opts o = {.key = KEY};
    struct keeper_sandbox box = keeper_box(id, KEEPER_RUNNING);
    union rig_msg m;

    engine_create(r->g, &o, told_sandbox, t);
    keeper_say(r, KEEPER_SANDBOX, keeper_hear(r, KEEPER_CREATE, &m), &box);
}

static bool keeper_was_asked(struct rig *r)
{
    struct wire_head head;
    const char *body;

    return peer_has(&r->keeper, &head, &body);
}

TEST(a_create_is_answered_after_the_flush_and_the_loop_does_not_wait_for_it)
{
    struct rig r;
    struct told t = {0}, other = {0};
    int before;

    start(&r);
    disk(true, 0);
    before = count();
    create(&r, "sb1", &t);
    RIG_UNTIL(&r, count() > before);
    engine_delete((struct ref){r.g, KEY, "nobody"}, told_done, &other);
    RIG_UNTIL(&r, other.n == 1);
    rig_settle(&r);
    CHECK_INT(t.n, 0);
    disk(false, 0);
    RIG_UNTIL(&r, t.n == 1);
    CHECK(!t.failed);
    CHECK_STR(t.id, "sb1");
    rig_free(&r);
}

TEST(a_sandbox_is_destroyed_only_after_its_delete_is_on_the_disk)
{
    struct rig r;
    struct told t = {0}, gone = {0};
    union rig_msg m;
    int before;

    start(&r);
    create(&r, "sb1", &t);
    RIG_UNTIL(&r, t.n == 1);
    disk(true, 0);
    before = count();
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &gone);
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"}) == NULL);
    RIG_UNTIL(&r, count() > before);
    rig_settle(&r);
    CHECK(!keeper_was_asked(&r));
    disk(false, 0);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, gone.n == 1);
    CHECK(!gone.failed);
    rig_free(&r);
}

TEST(rows_that_come_during_a_flush_share_the_next_one)
{
    struct rig r;
    struct told t[8] = {0};
    int before, told = 0;

    start(&r);
    disk(true, 0);
    before = count();
    for (int i = 0; i < 8; i++) {
        char id[8];

        snprintf(id, sizeof(id), "sb%d", i);
        create(&r, id, &t[i]);
        rig_settle(&r);
    }
    CHECK_INT(count(), before + 1);
    disk(false, 0);
    for (int i = 0; i < 8; i++) {
        RIG_UNTIL(&r, t[i].n == 1);
        told += !t[i].failed;
    }
    CHECK_INT(told, 8);
    CHECK_INT(count(), before + 2);
    rig_free(&r);
}

TEST(a_sandbox_whose_row_cannot_be_flushed_is_destroyed_and_its_create_fails)
{
    struct rig r;
    struct told t = {0};
    union rig_msg m;

    start(&r);
    disk(false, 1);
    create(&r, "sb1", &t);
    RIG_UNTIL(&r, t.n == 1);
    CHECK(t.failed);
    CHECK_HAS(t.e.msg, "flush");
    keeper_hear(&r, KEEPER_DESTROY, &m);
    CHECK_STR(m.keeper_destroy.id, "sb1");
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"}) == NULL);
    rig_free(&r);
}

TEST(a_create_also_flushes_the_keepers_record)
{
    struct rig r;
    struct told t = {0}, gone = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    r.no_flushes = true;
    create(&r, "sb1", &t);
    seq = keeper_hear(&r, KEEPER_FLUSH, &m);
    rig_settle(&r);
    CHECK_INT(t.n, 0);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, t.n == 1);
    CHECK(!t.failed);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &gone);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m)); /* and for nothing before */
    RIG_UNTIL(&r, gone.n == 1);
    rig_free(&r);
}

TEST(a_sandbox_whose_record_cannot_be_flushed_is_destroyed_and_its_create_fails)
{
    struct rig r;
    struct keeper_fail fail = {.code = "internal", .message = "flush records: bad"};
    struct told t = {0};
    union rig_msg m;

    start(&r);
    r.no_flushes = true;
    create(&r, "sb1", &t);
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_FLUSH, &m), &fail);
    RIG_UNTIL(&r, t.n == 1);
    CHECK(t.failed);
    CHECK_HAS(t.e.msg, "flush records");
    keeper_hear(&r, KEEPER_DESTROY, &m);
    CHECK_STR(m.keeper_destroy.id, "sb1");
    rig_free(&r);
}

TEST(a_delete_that_cannot_be_flushed_fails_and_can_be_repeated)
{
    struct rig r;
    struct told t = {0}, bad = {0}, good = {0};
    union rig_msg m;

    start(&r);
    create(&r, "sb1", &t);
    RIG_UNTIL(&r, t.n == 1);
    disk(false, 1);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &bad);
    RIG_UNTIL(&r, bad.n == 1);
    CHECK(bad.failed);
    CHECK(!keeper_was_asked(&r));
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"}) != NULL);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &good);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, good.n == 1);
    CHECK(!good.failed);
    rig_free(&r);
}

TEST(freeing_the_engine_drops_calls_that_wait_for_the_disk)
{
    struct rig r;
    struct told t[2] = {0};
    int before;

    start(&r);
    disk(true, 0);
    before = count();
    create(&r, "sb1", &t[0]);
    RIG_UNTIL(&r, count() > before);
    create(&r, "sb2", &t[1]);
    rig_settle(&r);
    disk(false, 0);
    rig_free(&r);
    CHECK_INT(t[0].n + t[1].n, 0);
}
