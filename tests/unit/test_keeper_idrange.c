#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "keeper/host.h"
#include "keeper/stages.h"

#define TAG "tagofus1"
#define OTHER "tagofyou"
#define BOOT "00000000-1111-4222-8333-444444444444"

struct rig {
    struct keeper k;
    char dir[32], file[48];
};

/* What the kernel would report: links by name; a sandbox whose id begins with r has processes. */
static char link_there[32];

int __wrap_cgroup_own(struct sandbox *sb, struct err *e);
bool __wrap_cgroup_is_empty(struct sandbox *sb);
void __wrap_cgroup_kill(struct sandbox *sb);
unsigned __wrap_if_nametoindex(const char *name);

int __wrap_cgroup_own(struct sandbox *sb, struct err *e)
{
    (void)sb;
    (void)e;
    return 0;
}

bool __wrap_cgroup_is_empty(struct sandbox *sb)
{
    return sb->rec.id[0] != 'r';
}

static unsigned kills;

void __wrap_cgroup_kill(struct sandbox *sb)
{
    (void)sb;
    kills++;
}

unsigned __wrap_if_nametoindex(const char *name)
{
    return strcmp(name, link_there) == 0;
}

static void begin(struct rig *r)
{
    struct err e;

    link_there[0] = '\0';
    strcpy(r->dir, "/tmp/cove-ids-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    snprintf(r->file, sizeof(r->file), "%s/idranges", r->dir);
    r->k = (struct keeper){.tag = TAG, .host_boot = BOOT, .ids.fd = -1, .records.fd = -1};
    strcpy(r->k.ids.dir, r->dir);
    map_init(&r->k.sandboxes);
    CHECK_INT(loop_new(&r->k.loop, &e), 0);
    r->k.dir_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(records_open(&r->k, &e), 0);
    CHECK_INT(ids_open(&r->k, &e), 0);
}

static void done(struct rig *r)
{
    struct map *all = &r->k.sandboxes;

    for (size_t i = 0; i < all->nslots; i++)
        while (all->slots[i] != NULL)
            sandbox_free(CONTAINER_OF(all->slots[i], struct sandbox, by_id));
    map_free(all);
    loop_free(r->k.loop);
    free(r->k.records.free);
    close(r->k.records.fd);
    close(r->k.ids.fd);
    close(r->k.dir_fd);
    unlink(r->file);
    snprintf(r->file, sizeof(r->file), "%s/sandboxes", r->dir);
    unlink(r->file);
    snprintf(r->file, sizeof(r->file), "%s/records", r->dir);
    CHECK_INT(rmdir(r->file), 0);
    CHECK_INT(rmdir(r->dir), 0);
}

/* With its record, as before each stage. */
static struct sandbox *one(struct rig *r, const char *id, uint32_t range)
{
    struct err e;
    struct sandbox *sb = sandbox_new(&r->k, id, &e);

    CHECK(sb != NULL);
    sb->rec.stage = 7;
    sb->rec.range = range;
    CHECK_INT(record_save(sb, false, &e), 0);
    return sb;
}

static struct sandbox *leased(struct rig *r, const char *id)
{
    struct sandbox *sb = one(r, id, RANGE_NONE);
    struct err e;

    CHECK_INT(idrange_up(sb, &e), 0);
    CHECK_INT(record_save(sb, false, &e), 0);
    return sb;
}

static void tag_of(struct rig *r, uint32_t range, char out[TAG_LEN + 1])
{
    autofd int fd = open(r->file, O_RDONLY | O_CLOEXEC);

    memset(out, 0, TAG_LEN + 1);
    CHECK_INT(pread(fd, out, TAG_LEN, (off_t)range * TAG_LEN), TAG_LEN);
}

static void check_tag(struct rig *r, uint32_t range, const char *tag)
{
    char found[TAG_LEN + 1];

    tag_of(r, range, found);
    CHECK_STR(found, tag);
}

static struct record on_disk;
static int read_record(struct keeper *k, const struct record *rec, uint32_t place, bool whole,
                       struct err *e)
{
    (void)k;
    (void)place;
    (void)e;
    CHECK(whole);
    on_disk = *rec;
    return 0;
}

TEST(a_lease_belongs_to_this_boot_and_one_sandbox)
{
    struct rig r;
    struct sandbox *a, *b;

    begin(&r);
    a = leased(&r, "a");
    b = leased(&r, "b");
    CHECK(a->rec.range != b->rec.range);
    CHECK_STR(a->rec.host_boot, BOOT);
    check_tag(&r, a->rec.range, TAG);
    done(&r);
}

TEST(a_range_is_given_back_after_the_record_no_longer_names_it)
{
    struct keeper later = {.records.fd = -1};
    struct rig r;
    struct sandbox *a;
    struct err e;
    uint32_t range;

    begin(&r);
    a = leased(&r, "a");
    range = a->rec.range;
    CHECK_INT(idrange_down(a), 0);
    check_tag(&r, range, "");
    later.dir_fd = r.k.dir_fd;
    CHECK_INT(records_open(&later, &e), 0);
    on_disk.range = range;
    CHECK_INT(records_each(&later, read_record, &e), 0);
    CHECK_INT(on_disk.range, RANGE_NONE);
    close(later.records.fd);
    free(later.records.free);
    done(&r);
}

TEST(a_range_stays_leased_while_a_process_has_its_ids)
{
    struct rig r;
    struct sandbox *a;
    uint32_t range;

    begin(&r);
    a = leased(&r, "running");
    range = a->rec.range;
    kills = 0;
    CHECK_INT(idrange_down(a), 1);
    CHECK_INT(kills, 1);
    CHECK_INT(a->rec.range, range);
    check_tag(&r, range, TAG);
    done(&r);
}

TEST(a_range_stays_leased_while_its_record_cannot_be_written)
{
    struct rig r;
    struct sandbox *a;
    uint32_t range;
    int fd;

    begin(&r);
    a = leased(&r, "a");
    range = a->rec.range;
    fd = r.k.records.fd;
    r.k.records.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_INT(idrange_down(a), 0);
    check_tag(&r, range, TAG);
    close(r.k.records.fd);
    r.k.records.fd = fd;
    done(&r);
}

TEST(a_range_in_use_by_a_sandbox_or_a_link_is_not_leased)
{
    struct rig r;
    struct sandbox *a, *b;
    uint32_t range;

    begin(&r);
    a = leased(&r, "a");
    b = leased(&r, "b");
    CHECK_INT(pwrite(r.k.ids.fd, "\0\0\0\0\0\0\0", TAG_LEN, (off_t)a->rec.range * TAG_LEN),
              TAG_LEN);
    CHECK(leased(&r, "c")->rec.range != a->rec.range);
    range = b->rec.range;
    CHECK_INT(idrange_down(b), 0);
    snprintf(link_there, sizeof(link_there), "cv" TAG "%u", range);
    CHECK(leased(&r, "d")->rec.range != range);
    link_there[0] = '\0';
    CHECK_INT(leased(&r, "e")->rec.range, range);
    done(&r);
}

TEST(a_sweep_waits_for_sandboxes_with_unknown_ranges)
{
    struct rig r;
    struct sandbox *a;
    uint32_t range;

    begin(&r);
    a = leased(&r, "a");
    range = a->rec.range;
    a->rec.range = RANGE_NONE; /* its record is lost, its stages are not */
    ids_sweep(&r.k);
    check_tag(&r, range, TAG);
    a->rec.stage = 2; /* those above are down */
    CHECK_INT(idrange_down(a), 0);
    check_tag(&r, range, "");
    done(&r);
}

TEST(a_lost_file_is_made_again_with_the_current_leases)
{
    struct rig r;
    struct sandbox *a, *b;

    begin(&r);
    a = leased(&r, "a");
    CHECK_INT(unlink(r.file), 0);
    b = leased(&r, "b");
    CHECK(a->rec.range != b->rec.range);
    check_tag(&r, a->rec.range, TAG);
    check_tag(&r, b->rec.range, TAG);
    CHECK_INT(unlink(r.file), 0);
    CHECK_INT(idrange_down(b), 0);
    check_tag(&r, a->rec.range, TAG);
    done(&r);
}

TEST(if_two_records_name_a_range_the_sandbox_with_processes_keeps_it)
{
    struct rig r;
    struct sandbox *a, *b;

    begin(&r);
    a = one(&r, "e-mpty", 5);
    b = one(&r, "running", 5);
    a->rec.network = NETWORK_EGRESS | NETWORK_RULED;
    b->rec.network = NETWORK_EGRESS;
    ids_keep(a);
    ids_keep(b);
    CHECK_INT(a->rec.range, RANGE_NONE);
    CHECK_INT(b->rec.range, 5);
    CHECK_INT(b->rec.network, NETWORK_EGRESS); /* the rules of the other one went with it */
    a->rec.range = 5;
    a->rec.network = NETWORK_EGRESS;
    b->rec.network = NETWORK_EGRESS | NETWORK_RULED;
    b->rec.id[0] = 'e'; /* its init has ended */
    ids_keep(b);
    CHECK_INT(a->rec.range, 5);
    CHECK_INT(b->rec.range, RANGE_NONE);
    CHECK_INT(a->rec.network, NETWORK_EGRESS | NETWORK_RULED);
    b->rec.id[0] = 'r';
    done(&r);
}

TEST(a_range_of_another_daemon_is_not_taken)
{
    struct rig r;
    struct sandbox *a;

    begin(&r);
    CHECK_INT(pwrite(r.k.ids.fd, OTHER, TAG_LEN, 5 * TAG_LEN), TAG_LEN);
    a = one(&r, "a", 5);
    ids_keep(a);
    CHECK_INT(idrange_down(a), 0);
    ids_sweep(&r.k);
    check_tag(&r, 5, OTHER);
    done(&r);
}
