/* Files as E2B's clients read them, and the paths they write. */
#include "unit.h"

#include <sys/stat.h>

#include "front/planes/e2b/entry.h"
#include "front/planes/e2b/internal.h"

static struct err e;
static struct buf out = BUF_INIT(64u << 10);
static struct json_w w;
static struct entry_writer entries;

static void begin(void)
{
    buf_clear(&out);
    jw_init(&w, &out);
    entries = (struct entry_writer){.w = &w};
}

static struct file_info file(const char *path, uint32_t mode)
{
    return (struct file_info){.path = path,
                              .target = "",
                              .owner = "user",
                              .group = "",
                              .mode = mode,
                              .gid = 1000,
                              .mtime_ns = 1767225600123000000u};
}

TEST(a_file_has_its_size_as_text_and_no_empty_fields)
{
    struct file_info f = file("/home/user/a.txt", S_IFREG | 0644);

    begin();
    f.size = 4;
    entry_add(&entries, &f);
    entry_end(&entries);
    CHECK_STR(buf_cstr(&out),
              "{\"name\":\"a.txt\",\"path\":\"/home/user/a.txt\",\"size\":\"4\","
              "\"permissions\":\"-rw-r--r--\",\"owner\":\"user\",\"group\":\"1000\","
              "\"modifiedTime\":\"2026-01-01T00:00:00.123Z\",\"type\":\"FILE_TYPE_FILE\","
              "\"mode\":420}");
    begin();
    f = file("/", S_IFIFO);
    f.mtime_ns = 0;
    entry_add(&entries, &f);
    entry_end(&entries);
    CHECK_STR(buf_cstr(&out), "{\"name\":\"/\",\"path\":\"/\",\"permissions\":\"p---------\","
                              "\"owner\":\"user\",\"group\":\"1000\","
                              "\"modifiedTime\":\"1970-01-01T00:00:00Z\"}");
}

TEST(a_directory_is_never_of_size_zero)
{
    struct file_info f = file("/d", S_IFDIR | 0755);

    begin();
    entry_add(&entries, &f);
    entry_end(&entries);
    CHECK_HAS(buf_cstr(&out), "\"size\":\"4096\"");
}

TEST(a_link_has_the_type_and_mode_of_its_target)
{
    struct file_info link = file("/l", S_IFLNK | 0777), to = file("/d", S_IFDIR | 0750);

    begin();
    entry_add(&entries, &link);
    entry_add(&entries, &to);
    entry_end(&entries);
    CHECK_HAS(buf_cstr(&out), "\"permissions\":\"Lrwxrwxrwx\"");
    CHECK_HAS(buf_cstr(&out),
              "\"type\":\"FILE_TYPE_DIRECTORY\",\"mode\":488,\"symlinkTarget\":\"/d\"}");
}

TEST(metadata_is_an_object_without_the_prefix)
{
    struct file_info f = file("/a", S_IFREG | 0600);
    struct file_attr_info x = {.name = "user.e2b.who", .value = {"me", 2}};

    begin();
    entry_add_xattr(&entries, &x); /* of nothing */
    entry_add(&entries, &f);
    entry_add_xattr(&entries, &x);
    x.name = "user.other";
    entry_add_xattr(&entries, &x);
    x.name = "user.e2b.n";
    entry_add_xattr(&entries, &x);
    entry_end(&entries);
    CHECK_HAS(buf_cstr(&out), "\"mode\":384,\"metadata\":{\"who\":\"me\",\"n\":\"me\"}}");
}

TEST(modes_are_written_as_go_does)
{
    static const struct {
        uint32_t mode;
        const char *text;
    } cases[] = {
        {S_IFREG | 0644, "-rw-r--r--"},   {S_IFDIR | 0755, "drwxr-xr-x"},
        {S_IFLNK | 0777, "Lrwxrwxrwx"},   {S_IFREG | 04755, "urwxr-xr-x"},
        {S_IFDIR | 01777, "dtrwxrwxrwx"}, {S_IFREG | 06755, "ugrwxr-xr-x"},
        {S_IFCHR | 0666, "Dcrw-rw-rw-"},  {S_IFBLK | 0660, "Drw-rw----"},
        {S_IFSOCK | 0700, "Srwx------"},  {S_IFREG, "----------"},
    };
    char text[ENTRY_MODE_MAX];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(entry_mode(cases[i].mode, text), cases[i].text);
}

TEST(times_have_0_3_6_or_9_digits)
{
    char text[ENTRY_TIME_MAX];

    CHECK_STR(entry_time(1000000000000000000u, text), "2001-09-09T01:46:40Z");
    CHECK_STR(entry_time(1000000000500000000u, text), "2001-09-09T01:46:40.500Z");
    CHECK_STR(entry_time(1000000000000001000u, text), "2001-09-09T01:46:40.000001Z");
    CHECK_STR(entry_time(1000000000000000001u, text), "2001-09-09T01:46:40.000000001Z");
    CHECK_STR(entry_time(UINT64_MAX, text), "2554-07-21T23:34:33.709551615Z");
}

TEST(paths_begin_in_the_home_unless_they_are_absolute)
{
    static const struct {
        const char *path, *at;
    } cases[] = {
        {NULL, "~"},      {"", "~"},        {"~", "~"},     {"~/x", "~/x"},
        {"a/b", "~/a/b"}, {"/a/b", "/a/b"}, {"./~", "~/~"}, {"~x", NULL},
    };
    char at[E2B_PATH_MAX + 1], longest[E2B_PATH_MAX + 2];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_INT(e2b_path(cases[i].path, at, &e), cases[i].at != NULL ? 0 : -1);
        if (cases[i].at != NULL)
            CHECK_STR(at, cases[i].at);
    }
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[E2B_PATH_MAX] = '\0';
    CHECK_INT(e2b_path(longest, at, &e), 0);
    longest[0] = 'a';
    CHECK_INT(e2b_path(longest, at, &e), -1);
    CHECK_HAS(e.msg, "longer than");
}

TEST(a_path_is_normalized_as_text_and_may_lead_above_the_home)
{
    static const struct {
        const char *path, *at;
    } cases[] = {
        {".", "~"},
        {"./a", "~/a"},
        {"a/.", "~/a"},
        {"a//b", "~/a/b"},
        {"~/./a", "~/a"},
        {"a/../b", "~/b"},
        {"a/..", "~"},
        {"..", "~/.."},
        {"a/../../b", "~/../b"},
        {"../..", "~/../.."},
        {"../a/../b", "~/../b"},
        {"a../b", "~/a../b"},
        {"/a/./b", "/a/b"},
        {"//a", "/a"},
        {"/a/../..", "/"},
        {"/", "/"},
        {"a/", "~/a/"},
        {"/a//", "/a/"},
        {"~/", "~/"},
        {"./", "~/"},
        {"///", "/"},
    };
    char at[E2B_PATH_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_INT(e2b_path(cases[i].path, at, &e), 0);
        CHECK_STR(at, cases[i].at);
    }
}

TEST(a_path_is_cleaned_to_be_shown)
{
    static const struct {
        const char *path, *clean;
    } cases[] = {
        {"/", "/"},         {"//", "/"},          {"/a", "/a"},           {"/a/", "/a"},
        {"//a//b", "/a/b"}, {"/a/./b/.", "/a/b"}, {"/a/../b", "/b"},      {"/..", "/"},
        {"/../../a", "/a"}, {"/a/..", "/"},       {"/..a/b.", "/..a/b."},
    };
    char out_path[E2B_PATH_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        e2b_clean(cases[i].path, out_path);
        CHECK_STR(out_path, cases[i].clean);
    }
}
