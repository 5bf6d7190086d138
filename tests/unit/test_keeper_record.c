#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "keeper/file.h"
#include "keeper/life/record.h"
#include "keeper/stages.h"

#define ID "abcdefghij0123456789"

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

static void begin_empty(struct rig *r)
{
    struct err e;

    strcpy(r->dir, "/tmp/cove-rec-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    map_init(&r->k.sandboxes);
    CHECK_INT(loop_new(&r->k.loop, &e), 0);
    r->k.dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(mkdirat(r->k.dir_fd, "damaged", 0700), 0);
    r->k.damaged_fd = openat(r->k.dir_fd, "damaged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r->k.records.fd = -1;
}

static void begin(struct rig *r)
{
    begin_empty(r);
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
    char command[64];

    map_free(&r->k.sandboxes);
    loop_free(r->k.loop);
    free(r->k.records.free);
    close(r->k.records.fd);
    close(r->k.dir_fd);
    close(r->k.damaged_fd);
    snprintf(command, sizeof(command), "rm -r %s", r->dir);
    CHECK_INT(system(command), 0);
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

static off_t where_of(const struct sandbox *sb)
{
    return (off_t)sb->place * RECORD_PLACE;
}

TEST(a_saved_record_is_read_back_unchanged)
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

TEST(free_places_are_reused_and_new_ones_made)
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

TEST(every_field_of_a_record_reads_back)
{
    struct rig r = {0};
    struct sandbox *sb;
    struct err e;

    begin(&r);
    sb = saved(&r, ID);
    sb->rec = (struct record){.phase = PHASE_STOPPED,
                              .stage = 3,
                              .range = 17,
                              .network = 3,
                              .limits = {1, 2, 3, 4, 5},
                              .created_ms = 6};
    strcpy(sb->rec.id, ID);
    strcpy(sb->rec.boot_id, "boot");
    strcpy(sb->rec.host_boot, "host");
    strcpy(sb->rec.template, "template");
    strcpy(sb->rec.layer, "@layer");
    memset(sb->rec.reason, 'x', sizeof(sb->rec.reason) - 1);
    CHECK_INT(record_save(sb, false, &e), 0);
    look(&r);
    CHECK_INT(nseen, 1);
    CHECK(memcmp(&seen[0], &sb->rec, sizeof(sb->rec)) == 0);
    sandbox_free(sb);
    done(&r);
}

TEST(a_damaged_record_keeps_its_id_and_its_place)
{
    char whole[RECORD_PLACE], now[RECORD_PLACE];
    uint32_t len;
    struct rig r = {0};
    struct sandbox *sb;

    begin(&r);
    sb = saved(&r, ID);
    CHECK_INT(pread(r.k.records.fd, whole, sizeof(whole), where_of(sb)), sizeof(whole));
    memcpy(&len, whole + 8, sizeof(len));
    for (size_t at = 0; at < SEALED_HEAD + len; at++) { /* every byte, but those of the id */
        if (at >= 28 && at < 28 + ID_LEN)
            continue;
        whole[at] ^= 4;
        CHECK_INT(pwrite(r.k.records.fd, whole, sizeof(whole), where_of(sb)), sizeof(whole));
        look(&r);
        CHECK_INT(nseen, 1);
        CHECK(!seen_whole[0]);
        CHECK_STR(seen[0].id, ID);
        CHECK_INT(pread(r.k.records.fd, now, sizeof(now), where_of(sb)), sizeof(now));
        CHECK(memcmp(whole, now, sizeof(now)) == 0);
        CHECK_INT(r.k.records.nfree, r.k.records.n - 1);
        whole[at] ^= 4;
    }
    sandbox_free(sb);
    done(&r);
}

TEST(a_record_that_names_no_sandbox_is_moved_to_damaged)
{
    char kept[RECORD_PLACE], name[32];
    struct rig r = {0};
    struct sandbox *sb;
    struct err e;

    begin(&r);
    sb = saved(&r, ID);
    CHECK_INT(pwrite(r.k.records.fd, "\xff\xff", 2, where_of(sb) + 30), 2);
    look(&r);
    CHECK_INT(nseen, 0);
    CHECK_INT(r.k.records.nfree, r.k.records.n);
    snprintf(name, sizeof(name), "record-%u", sb->place);
    CHECK_INT(file_get(r.k.damaged_fd, name, kept, sizeof(kept), &e), sizeof(kept));
    CHECK_INT(memcmp(kept, "covr", 4), 0);
    sandbox_free(sb);
    done(&r);
}

TEST(a_record_of_a_newer_release_is_refused_before_anything_is_changed)
{
    autobuf struct buf out = BUF_INIT(RECORD_PLACE);
    struct rig r = {0};
    struct sandbox *sb;
    struct err e;
    uint64_t sum = 0;
    uint32_t version = RECORD_VERSION + 1;
    char *p;

    begin(&r);
    sb = saved(&r, ID);
    CHECK_INT(record_encode(&sb->rec, &out, &e), 0);
    p = buf_data(&out);
    memcpy(p + 4, &version, sizeof(version));
    memcpy(p + 16, &sum, sizeof(sum));
    sum = file_sum(p, out.len);
    memcpy(p + 16, &sum, sizeof(sum));
    CHECK_INT(pwrite(r.k.records.fd, p, out.len, where_of(sb)), (ssize_t)out.len);
    free(r.k.records.free);
    close(r.k.records.fd);
    r.k.records = (struct records){.fd = -1};
    CHECK_INT(records_open(&r.k, &e), -1);
    CHECK_HAS(e.msg, "newer release of Cove");
    sandbox_free(sb);
    done(&r);
}

/* ---- records of release 0.1.0 ---- */

struct old_record {
    uint32_t magic, version, phase, stage;
    char id[32], boot_id[40], host_boot[40], template[64], layer[64], reason[256];
    uint32_t range, network;
    uint64_t limits[5], created_ms, sum;
};

static void put_old(struct rig *r, const char *name, unsigned place, const char *id, bool whole)
{
    struct old_record o = {.magic = 0x636f7665,
                           .version = 1,
                           .phase = 2,
                           .stage = 7,
                           .range = 9,
                           .network = 1,
                           .limits = {10, 20, 30, 40, 50},
                           .created_ms = 60};
    int fd = openat(r->k.dir_fd, name, O_RDWR | O_CREAT, 0600);

    strcpy(o.id, id);
    strcpy(o.layer, "base-1");
    o.sum = file_sum(&o, offsetof(struct old_record, sum)) + !whole;
    CHECK_INT(ftruncate(fd, 64 * 1024), 0);
    CHECK_INT(pwrite(fd, &o, sizeof(o), place * 1024), sizeof(o));
    close(fd);
}

static void check_converted(struct rig *r)
{
    struct stat st;

    open_again(r);
    look(r);
    CHECK_INT(nseen, 2);
    CHECK(seen_whole[0] && seen_whole[1]);
    for (int i = 0; i < 2; i++) {
        const struct record *rec = &seen[i];

        if (strcmp(rec->id, ID) != 0) {
            CHECK_STR(rec->id, "zbcdefghij0123456789");
            CHECK_INT(rec->phase, PHASE_DAMAGED);
            continue;
        }
        CHECK_INT(rec->phase, PHASE_GIVEN);
        CHECK_INT(rec->stage, STAGE_COUNT);
        CHECK_STR(rec->layer, "base-1");
        CHECK_INT(rec->range, 9);
        CHECK_INT(rec->limits.nofile, 50);
        CHECK_INT(rec->created_ms, 60);
    }
    CHECK(fstatat(r->k.dir_fd, "records/v1", &st, 0) == 0 && S_ISREG(st.st_mode));
}

TEST(records_of_0_1_0_are_converted_after_an_interruption_at_any_step)
{
    /* What there may be besides `records`: nothing; the directory to exchange it with; after
     * the exchange; half a store; the whole store. */
    for (int cut = 0; cut < 5; cut++) {
        struct rig r = {0};
        struct err e;

        begin_empty(&r);
        put_old(&r, "records", 3, ID, true);
        put_old(&r, "records", 40, "zbcdefghij0123456789", false);
        if (cut == 1)
            CHECK_INT(mkdirat(r.k.dir_fd, "records.v1", 0700), 0);
        if (cut >= 2) {
            CHECK_INT(renameat(r.k.dir_fd, "records", r.k.dir_fd, "records.v1"), 0);
            CHECK_INT(mkdirat(r.k.dir_fd, "records", 0700), 0);
        }
        if (cut == 3)
            CHECK_INT(file_put(r.k.dir_fd, "sandboxes.new", "half", 4, &e), 0);
        if (cut == 4) {
            open_again(&r);
            close(r.k.records.fd);
            CHECK_INT(renameat(r.k.dir_fd, "records/v1", r.k.dir_fd, "records.v1"), 0);
        }
        check_converted(&r);
        done(&r);
    }
}

TEST(release_0_1_0_refuses_a_new_state_directory)
{
    struct rig r = {0};

    begin(&r);
    CHECK_INT(openat(r.k.dir_fd, "records", O_RDWR | O_CREAT, 0600), -1);
    CHECK_INT(errno, EISDIR);
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
    CHECK_HAS(e.msg, "not a file of Cove");
    done(&r);
}

TEST(every_stage_is_found_by_its_name_in_a_record)
{
    for (uint32_t n = 0; n <= STAGE_COUNT; n++)
        CHECK_INT(record_stage(stage_name(n)), n);
    CHECK_INT(record_stage("of a newer release"), -1);
}
