#include "unit.h"

#include "helper/image/members.h"
#include "tar_of.h"

static struct err e;
static struct members m;

static int extract(int dir)
{
    int fd = tar_end();
    struct source *s = source_open(fd, NULL, &e);
    int r = members_extract(&m, dir, s, &e);

    source_close(s);
    close(fd);
    return r;
}

static void put_files(unsigned n)
{
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "member%u", i);
        tar_file(name);
        tar_put();
    }
}

TEST(an_image_archive_with_too_many_files_is_refused)
{
    int dir = tar_dir(), fd;

    tar_begin();
    archive_entry_set_filetype(tar_file("blobs"), AE_IFDIR);
    tar_put();
    put_files(MEMBERS_MAX);
    CHECK_INT(extract(dir), 0);
    CHECK_INT(m.n, MEMBERS_MAX);
    fd = members_open(&m, "member2047", &e);
    CHECK(fd >= 0 && tar_has(dir, "2047"));
    close(fd);
    members_free(&m);
    tar_clean(dir);

    dir = tar_dir();
    tar_begin();
    put_files(MEMBERS_MAX + 1);
    CHECK_INT(extract(dir), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    CHECK_HAS(e.msg, "more than 2048 files");
    CHECK_INT(m.n, MEMBERS_MAX);
    CHECK(!tar_has(dir, "2048"));
    members_free(&m);
    tar_clean(dir);
}

/* Of directories in each other, since a single name ends at 255. */
static const char *name_of(char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        name[i] = i % 100 == 99 ? '/' : 'n';
    name[n - 1] = 'e';
    name[n] = '\0';
    return name;
}

static int extract_one(int dir, const char *name, const char *link)
{
    tar_begin();
    tar_file(name);
    if (link != NULL)
        archive_entry_set_hardlink(tar_new.en, link);
    tar_put();
    return extract(dir);
}

TEST(names_and_link_targets_that_are_too_long_are_refused)
{
    char longest[MEMBERS_NAME_MAX + 1], longer[MEMBERS_NAME_MAX + 1];
    int dir = tar_dir();

    name_of(longest, MEMBERS_NAME_MAX - 1);
    name_of(longer, MEMBERS_NAME_MAX);
    CHECK_INT(extract_one(dir, longest, NULL), 0);
    CHECK_INT(unlinkat(dir, "0", 0), 0);
    members_free(&m);
    CHECK_INT(extract_one(dir, longer, NULL), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    CHECK_HAS(e.msg, "names that are too long");
    CHECK(!tar_has(dir, "0"));
    members_free(&m);
    CHECK_INT(extract_one(dir, "link", longest), 0);
    members_free(&m);
    CHECK_INT(extract_one(dir, "link", longer), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    CHECK_HAS(e.msg, "the target of the link is too long");
    members_free(&m);
    tar_clean(dir);
}
