#include "unit.h"

#include <fcntl.h>
#include <stdio.h>

#include "keeper/host.h"

struct rig {
    struct keeper k;
    char dir[32];
};

static struct sandbox *saved(struct rig *r, const char *id)
{
    struct sandbox *sb;
    struct err e;

    strcpy(r->dir, "/tmp/cove-rec-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    map_init(&r->k.sandboxes);
    CHECK_INT(loop_new(&r->k.loop, &e), 0);
    r->k.records_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sb = sandbox_new(&r->k, id, &e);
    CHECK(sb != NULL);
    sb->rec.phase = PHASE_GIVEN;
    sb->rec.limits.memory = 4711;
    CHECK_INT(record_save(sb, true, &e), 0);
    return sb;
}

static void done(struct rig *r, struct sandbox *sb)
{
    record_remove(sb);
    sandbox_free(sb);
    map_free(&r->k.sandboxes);
    loop_free(r->k.loop);
    close(r->k.records_fd);
    CHECK_INT(rmdir(r->dir), 0);
}

TEST(a_record_reads_back_as_it_was_saved)
{
    struct rig r = {0};
    struct sandbox *sb = saved(&r, "abc");
    struct record rec;
    struct err e;

    CHECK_INT(record_load(&r.k, "abc", &rec, &e), 0);
    CHECK_INT(rec.phase, PHASE_GIVEN);
    CHECK_INT(rec.limits.memory, 4711);
    CHECK_INT(rec.range, RANGE_NONE);
    done(&r, sb);
}

TEST(a_record_that_was_changed_cut_or_renamed_is_damaged)
{
    struct rig r = {0};
    struct sandbox *sb = saved(&r, "abc");
    autofd int fd = openat(r.k.records_fd, "abc", O_RDWR | O_CLOEXEC);
    struct record rec;
    struct err e;

    CHECK_INT(linkat(r.k.records_fd, "abc", r.k.records_fd, "abd", 0), 0);
    CHECK_INT(record_load(&r.k, "abd", &rec, &e), -1);
    unlinkat(r.k.records_fd, "abd", 0);
    CHECK_INT(pwrite(fd, "x", 1, offsetof(struct record, layer)), 1);
    CHECK_INT(record_load(&r.k, "abc", &rec, &e), -1);
    CHECK_HAS(e.msg, "damaged");
    CHECK_INT(ftruncate(fd, 10), 0);
    CHECK_INT(record_load(&r.k, "abc", &rec, &e), -1);
    done(&r, sb);
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
