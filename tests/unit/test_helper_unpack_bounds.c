/* The limits of unpack.h. The archive comes from a fake source that hashes nothing: with
 * digests, half a million entries would take seconds. */
#include "unit.h"

#include <sys/xattr.h>

#include "helper/archive/unpack.h"
#include "helper/tree/path.h"
#include "tar_of.h"

/* ---- a source: the file, or `repeat` times one entry and the end ---- */

struct source {
    int fd;
    size_t repeat;
};

static char entry[10240]; /* as an archive has it */
static size_t nentry;

struct source *source_open(int fd, const volatile sig_atomic_t *stop, struct err *e)
{
    struct source *s = calloc(1, sizeof(*s));

    (void)stop, (void)e;
    s->fd = fd;
    return s;
}

void source_close(struct source *s)
{
    free(s);
}

void source_drop(struct source **s)
{
    source_close(*s);
}

ssize_t source_read(struct source *s, void *to, size_t n, struct err *e)
{
    size_t at = 0;

    (void)e;
    for (; s->repeat > 0 && at + nentry <= n; s->repeat--, at += nentry)
        memcpy((char *)to + at, entry, nentry);
    return at > 0 ? (ssize_t)at : read(s->fd, to, n);
}

int source_finish(struct source *s, struct err *e)
{
    (void)s, (void)e;
    return 0;
}

void source_digests(struct source *s, char stored[SHA256_HEX], char plain[SHA256_HEX])
{
    (void)s;
    stored[0] = plain[0] = '\0';
}

unsigned long long source_done(const struct source *s)
{
    (void)s;
    return 0;
}

size_t source_zeros(const struct source *s)
{
    (void)s;
    return 1024;
}

/* ---- unpacking ---- */

static struct err e;
static struct unpack_count count;

static int step(void *arg, struct err *err)
{
    (void)arg, (void)err;
    return 0;
}

/* What was put into the archive, and `repeat` times the entry before it. */
static int unpack_to(int dir, unsigned flags, size_t repeat)
{
    struct unpack_opts o = {.fd = dir, .flags = flags, .count = &count, .step = step};
    int fd = tar_end(), r;
    struct source *s = source_open(fd, NULL, &e);

    s->repeat = repeat;
    r = unpack(s, &o, &e);
    source_close(s);
    close(fd);
    return r;
}

TEST(an_image_with_too_many_entries_is_refused)
{
    int dir = tar_dir();

    count = (struct unpack_count){.entries = UNPACK_ENTRIES_MAX - 1};
    tar_begin();
    tar_file("last");
    tar_put();
    CHECK_INT(unpack_to(dir, 0, 0), 0);
    CHECK_INT(count.entries, UNPACK_ENTRIES_MAX);
    CHECK(tar_has(dir, "last"));

    tar_begin();
    tar_file("beyond");
    tar_put();
    CHECK_INT(unpack_to(dir, 0, 0), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    CHECK_STR(e.msg, "the archive has more than 2000000 entries");
    CHECK(!tar_has(dir, "beyond"));
    tar_clean(dir);
}

/* ---- removals ---- */

/* An empty file, without the two blocks that end its archive; with GNU's long names,
 * which are read faster than those of pax. */
static void entry_of(const char *name)
{
    int fd;

    tar_begin_as(archive_write_set_format_gnutar);
    tar_file(name);
    tar_put();
    fd = tar_end();
    nentry = (size_t)read(fd, entry, sizeof(entry)) - 1024;
    CHECK(nentry >= 512 && nentry < sizeof(entry) - 1024);
    close(fd);
}

TEST(a_layer_with_too_many_removals_is_refused)
{
    int dir = tar_dir();

    count = (struct unpack_count){0};
    entry_of("dir/.wh.gone");
    tar_begin();
    CHECK_INT(unpack_to(dir, UNPACK_MARKS, UNPACK_MARKS_MAX + 1), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    CHECK_HAS(e.msg, "more than 500000 removals in one layer");
    CHECK_INT(count.entries, UNPACK_MARKS_MAX + 1); /* the last one exceeded the limit */
    CHECK(!tar_has(dir, "dir"));
    tar_clean(dir);
}

TEST(memory_for_the_names_of_removals_is_limited)
{
    char name[PATH_ROOM] = "";
    int dir = tar_dir();
    size_t each;

    count = (struct unpack_count){0};
    for (int i = 0; i < 20; i++)
        strcat(name, "a-directory-of-many-in-each-other-with-a-name-of-nearly-two-hundred-bytes-"
                     "which-is-more-than-most-directories-have-or-will-ever-have-but-as-much-as-"
                     "an-archive-may-say/");
    strcat(name, ".wh.gone");
    each = strlen(name) - strlen(".wh.") + 2; /* the kind and the NUL */
    entry_of(name);
    tar_begin();
    CHECK_INT(unpack_to(dir, UNPACK_MARKS, UNPACK_MARKS_MAX), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    CHECK_HAS(e.msg, "or their names are too long");
    CHECK_INT(count.entries, UNPACK_MARKS_BYTES / each + 1);
    tar_clean(dir);
}

/* ---- attributes and owners ---- */

static void put_with_xattrs(const char *name, unsigned n)
{
    char attr[32];

    tar_file(name);
    for (unsigned i = 0; i < n; i++) {
        snprintf(attr, sizeof(attr), "user.t%u", i);
        archive_entry_xattr_add_entry(tar_new.en, attr, "v", 1);
    }
    tar_put();
}

TEST(a_file_with_too_many_extended_attributes_is_not_created)
{
    int dir = tar_dir();
    char path[64], v[8];

    count = (struct unpack_count){0};
    tar_begin();
    put_with_xattrs("most", UNPACK_XATTRS_MAX);
    CHECK_INT(unpack_to(dir, 0, 0), 0);
    snprintf(path, sizeof(path), "%s/most", tar_top);
    CHECK(lgetxattr(path, "user.t63", v, sizeof(v)) == 1 || errno == ENOTSUP);

    tar_begin();
    put_with_xattrs("more", UNPACK_XATTRS_MAX + 1);
    CHECK_INT(unpack_to(dir, 0, 0), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    CHECK_STR(e.msg, "'more' has 65 extended attributes, more than 64");
    CHECK(tar_has(dir, "most") && !tar_has(dir, "more"));
    tar_clean(dir);
}

static int unpack_owned(int dir, const char *name, int64_t uid, int64_t gid)
{
    tar_begin();
    archive_entry_set_uid(tar_file(name), uid);
    archive_entry_set_gid(tar_new.en, gid);
    tar_put();
    return unpack_to(dir, UNPACK_OWNERS, 0);
}

TEST(a_file_with_an_owner_above_the_limit_is_not_created)
{
    int dir = tar_dir();

    count = (struct unpack_count){0};
    CHECK_INT(unpack_owned(dir, "user", UNPACK_ID_MAX + 1, 0), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    CHECK_STR(e.msg, "'user' belongs to 65536:0; the largest id in a sandbox is 65535");
    CHECK_INT(unpack_owned(dir, "group", 0, UNPACK_ID_MAX + 1), -1);
    CHECK_STR(e.msg, "'group' belongs to 0:65536; the largest id in a sandbox is 65535");
    CHECK(!tar_has(dir, "user") && !tar_has(dir, "group"));
    tar_clean(dir);
}

TEST(the_largest_owner_id_is_accepted)
{
    struct stat st;
    int dir;

    if (geteuid() != 0)
        skip();
    dir = tar_dir();
    CHECK_INT(unpack_owned(dir, "file", UNPACK_ID_MAX, UNPACK_ID_MAX), 0);
    CHECK_INT(fstatat(dir, "file", &st, AT_SYMLINK_NOFOLLOW), 0);
    CHECK(st.st_uid == UNPACK_ID_MAX && st.st_gid == UNPACK_ID_MAX);
    tar_clean(dir);
}
