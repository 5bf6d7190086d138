#include "unit.h"

#include <fcntl.h>
#include <stdio.h>

#include "keeper/host.h"

struct rig {
    struct keeper k;
    char dir[32];
};

static void open_again(struct rig *r)
{
    struct err e;

    free(r->k.records.free);
    r->k.records = (struct records){.fd = -1};
    CHECK_INT(records_open(&r->k, &e), 0);
}

static void begin(struct rig *r)
{
    struct err e;

    strcpy(r->dir, "/tmp/cove-rec-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    map_init(&r->k.sandboxes);
    CHECK_INT(loop_new(&r->k.loop, &e), 0);
    r->k.dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    open_again(r);
}

static struct sandbox *saved(struct rig *r, const char *id)
{
    struct sandbox *sb;
    struct err e;

    sb = sandbox_new(&r->k, id, &e);
    CHECK(sb != NULL);
    sb->rec.phase = PHASE_GIVEN;
    sb->rec.limits.memory = 4711;
    CHECK_INT(record_save(sb, true, &e), 0);
    return sb;
}

static void done(struct rig *r)
{
    map_free(&r->k.sandboxes);
    loop_free(r->k.loop);
    free(r->k.records.free);
    close(r->k.records.fd);
    CHECK_INT(unlinkat(r->k.dir_fd, "records", 0), 0);
    close(r->k.dir_fd);
    CHECK_INT(rmdir(r->dir), 0);
}

static struct record seen[8];
static bool seen_whole[8];
static size_t nseen;

static int see(struct keeper *k, const struct record *rec, uint32_t place, bool whole,
               struct err *e)
{
    (void)k;
    (void)place;
    (void)e;
    CHECK(nseen < ARRAY_LEN(seen));
    seen_whole[nseen] = whole;
    seen[nseen++] = *rec;
    return 0;
}

static void look(struct rig *r)
{
    struct err e;

    close(r->k.records.fd);
    open_again(r);
    nseen = 0;
    CHECK_INT(records_each(&r->k, see, &e), 0);
}

TEST(a_record_reads_back_as_it_was_saved)
{
    struct rig r = {0};
    struct sandbox *sb;

    begin(&r);
    sb = saved(&r, "abc");
    look(&r);
    CHECK_INT(nseen, 1);
    CHECK(seen_whole[0]);
    CHECK_STR(seen[0].id, "abc");
    CHECK_INT(seen[0].phase, PHASE_GIVEN);
    CHECK_INT(seen[0].limits.memory, 4711);
    CHECK_INT(seen[0].range, RANGE_NONE);
    CHECK_INT(r.k.records.nfree, r.k.records.n - 1);
    record_remove(sb);
    sandbox_free(sb);
    look(&r);
    CHECK_INT(nseen, 0);
    done(&r);
}

TEST(a_place_is_used_again_and_others_are_made)
{
    struct rig r = {0};
    struct sandbox *all[100];
    char id[16];

    begin(&r);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            snprintf(id, sizeof(id), "s%zu", i);
            all[i] = saved(&r, id);
            for (size_t j = 0; j < i; j++)
                CHECK(all[j]->place != all[i]->place);
        }
        CHECK_INT(r.k.records.n, 128);
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            record_remove(all[i]);
            sandbox_free(all[i]);
        }
    }
    done(&r);
}

TEST(a_record_that_was_changed_or_cut_is_not_whole)
{
    struct rig r = {0};
    struct sandbox *sb;

    begin(&r);
    sb = saved(&r, "abc");
    CHECK_INT(pwrite(r.k.records.fd, "x", 1, offsetof(struct record, layer)), 1);
    look(&r);
    CHECK_INT(nseen, 1);
    CHECK_STR(seen[0].id, "abc");
    CHECK(!seen_whole[0]);
    CHECK_INT(ftruncate(r.k.records.fd, 100), 0);
    look(&r);
    CHECK_INT(nseen, 1);
    CHECK(!seen_whole[0]);
    CHECK_INT(pwrite(r.k.records.fd, "\xff\xff", 2, offsetof(struct record, id)), 2);
    look(&r);
    CHECK_INT(nseen, 0);
    CHECK_INT(r.k.records.nfree, r.k.records.n); /* nobody's: it is free again */
    sandbox_free(sb);
    done(&r);
}

TEST(a_file_that_is_not_ours_is_refused)
{
    struct rig r = {0};
    struct err e;

    begin(&r);
    CHECK_INT(ftruncate(r.k.records.fd, 1ll << 40), 0);
    close(r.k.records.fd);
    CHECK_INT(records_open(&r.k, &e), -1);
    CHECK_HAS(e.msg, "not one of ours");
    done(&r);
}

TEST(every_stage_has_a_name_and_both_directions)
{
    CHECK(stage_count > 0);
    for (unsigned i = 0; i < stage_count; i++) {
        CHECK(stages[i].name != NULL);
        CHECK(stages[i].up != NULL);
        CHECK(stages[i].down != NULL);
    }
    for (int p = 0; p < PHASE_COUNT; p++)
        CHECK(phase_name((enum phase)p) != NULL);
}
