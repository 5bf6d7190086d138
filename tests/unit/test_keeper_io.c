#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"
#include "keeper/cgroup.h"
#include "keeper/io.h"

TEST(the_weight_follows_the_cpu_limit)
{
    CHECK_INT(io_weight(2000), 100);
    CHECK_INT(io_weight(4000), 200);
    CHECK_INT(io_weight(10), 1);
    CHECK_INT(io_weight(1024000), 10000);
}

TEST(a_limit_is_for_both_directions_and_can_be_none)
{
    char line[IO_LINE_MAX];

    io_line(line, 7, 3, 10 << 20);
    CHECK_STR(line, "7:3 rbps=10485760 wbps=10485760");
    io_line(line, 259, 0, 0);
    CHECK_STR(line, "259:0 rbps=max wbps=max");
}

TEST(a_limit_that_the_host_cannot_give_is_refused)
{
    struct keeper k = {0};
    struct err e;

    CHECK_INT(io_check(&k, 0, &e), 0);
    CHECK_INT(io_check(&k, 1, &e), -1);
    CHECK_INT(e.kind, ERR_UNSUPPORTED);
    CHECK_HAS(e.msg, "cove doctor");
    k.cgroups.io = true; /* shared, but not limited */
    CHECK_INT(io_check(&k, 1, &e), -1);
    k.cgroups.io_max = true;
    CHECK_INT(io_check(&k, 1, &e), 0);
}

TEST(words_of_a_list_are_whole)
{
    CHECK(cgroup_has_word("cpuset cpu io memory\n", "io"));
    CHECK(cgroup_has_word("io", "io"));
    CHECK(!cgroup_has_word("cpuset iocost\n", "io"));
    CHECK(!cgroup_has_word("", "io"));
}

/* ---- files in the place of a hierarchy with the io controller, which a host with v1 does not have ---- */

static struct hierarchy {
    char root[40];
    struct keeper k;
    struct sandbox sb;
} h;

static void put(const char *name, const char *text)
{
    char path[128];
    int fd;

    str_fmt(path, sizeof(path), "%s/%s", h.root, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void in(const char *name, const char *want)
{
    char path[128], text[256] = "";
    int fd;

    str_fmt(path, sizeof(path), "%s/%s", h.root, name);
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    CHECK_STR(text, want);
}

static void make_hierarchy(const char *controllers)
{
    char path[128];

    h = (struct hierarchy){.root = "/tmp/cove-test-io-XXXXXX"};
    CHECK(mkdtemp(h.root) != NULL);
    str_fmt(path, sizeof(path), "%s/cove", h.root);
    CHECK_INT(mkdir(path, 0700), 0);
    h.k.cgroups.v2_fd = open(path, O_RDONLY | O_DIRECTORY);
    CHECK_INT(mkdirat(h.k.cgroups.v2_fd, "one", 0700), 0);
    put("cgroup.controllers", controllers);
    put("cgroup.subtree_control", "");
    put("cove/cgroup.subtree_control", "");
    put("cove/io.max", "");
    put("cove/one/io.weight", "");
    put("cove/one/io.bfq.weight", "");
    put("cove/one/io.max", "");
    h.k.disk.device = makedev(7, 250);
    h.sb = (struct sandbox){.k = &h.k, .rec = {.id = "one", .limits = {.cpu_milli = 60000}}};
}

static void remove_hierarchy(void)
{
    static const char *const all[] = {"cove/one/io.max",
                                      "cove/one/io.bfq.weight",
                                      "cove/one/io.weight",
                                      "cove/one",
                                      "cove/io.max",
                                      "cove/cgroup.subtree_control",
                                      "cove",
                                      "cgroup.subtree_control",
                                      "cgroup.controllers",
                                      ""};
    char path[128];

    close(h.k.cgroups.v2_fd);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        str_fmt(path, sizeof(path), "%s/%s", h.root, all[i]);
        CHECK_INT(remove(path), 0);
    }
}

TEST(a_sandbox_has_its_weight_and_its_limit_on_the_device_of_the_disks)
{
    struct err e;

    make_hierarchy("cpu io memory\n");
    CHECK_INT(io_open(&h.k, &e), 0);
    CHECK(h.k.cgroups.io && h.k.cgroups.io_max);
    in("cgroup.subtree_control", "+io");
    in("cove/cgroup.subtree_control", "+io");
    h.sb.rec.limits.disk_io = 50 << 20;
    CHECK_INT(io_limit(&h.sb, &e), 0);
    in("cove/one/io.weight", "3000");
    in("cove/one/io.bfq.weight", "1000");
    in("cove/one/io.max", "7:250 rbps=52428800 wbps=52428800");
    remove_hierarchy();
}

TEST(without_the_controller_nothing_is_written_and_a_limit_is_refused)
{
    struct err e;

    make_hierarchy("cpu memory\n");
    CHECK_INT(io_open(&h.k, &e), 0);
    CHECK(!h.k.cgroups.io && !h.k.cgroups.io_max);
    CHECK_INT(io_limit(&h.sb, &e), 0);
    in("cove/one/io.weight", "");
    h.sb.rec.limits.disk_io = 1;
    CHECK_INT(io_limit(&h.sb, &e), -1);
    CHECK_INT(e.kind, ERR_UNSUPPORTED);
    h.k.config.disk_io = 1; /* a default that no sandbox could have */
    CHECK_INT(io_open(&h.k, &e), -1);
    CHECK_HAS(e.msg, "the setting disk-io");
    remove_hierarchy();
}
