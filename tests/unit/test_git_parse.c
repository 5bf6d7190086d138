#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "front/engine/git.h"

#define OID "0123456789abcdef0123456789abcdef01234567"
#define FEED(tokens, bytes) feed(tokens, bytes, sizeof(bytes) - 1)

static struct err e;
static size_t piece = 3; /* how much is fed at a time */

static int feed(struct git_tokens *t, const char *p, size_t n)
{
    for (size_t at = 0; at < n; at += piece)
        if (git_tokens_feed(t, p + at, n - at < piece ? n - at : piece, &e) < 0)
            return -1;
    return 0;
}

/* ---- status ---- */

static char seen[4096];

static void each_entry(void *arg, const struct git_entry *en)
{
    (void)arg;
    snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s %c%c %s<%s> %u %d%d%d%d;",
             git_kind_name(en->kind), en->index, en->worktree, en->path,
             en->from != NULL ? en->from : "", en->score, en->submodule, en->sub_commit,
             en->sub_modified, en->sub_untracked);
}

static int status(struct git_status *s, const char *p, size_t n)
{
    seen[0] = '\0';
    git_status_init(s, each_entry, NULL);
    if (feed(&s->in, p, n) < 0)
        return -1;
    return git_status_end(s, &e);
}
#define STATUS(s, bytes) status(s, bytes, sizeof(bytes) - 1)

TEST(a_status_of_every_kind_is_read)
{
    struct git_status s;

    CHECK_INT(STATUS(&s, "# branch.oid " OID "\0# branch.head a b\0# branch.upstream o/m\0"
                         "# branch.ab +12 -3\0# newer thing\0"
                         "1 .M N... 100644 100644 100644 " OID " " OID " a b\n\0"
                         "2 R. N... 100644 100644 100644 " OID " " OID " R086 to\0from x\0"
                         "u UU N... 100644 100644 100644 100644 " OID " " OID " " OID " c\0"
                         "1 .M SC.U 160000 160000 160000 " OID " " OID " sub\0"
                         "? un tracked\0! ign\0"),
              0);
    CHECK_STR(s.commit, OID);
    CHECK_STR(s.head, "a b");
    CHECK_STR(s.upstream, "o/m");
    CHECK(s.has_upstream && s.ahead == 12 && s.behind == 3);
    CHECK_STR(seen, "changed .M a b\n<> 0 0000;renamed R. to<from x> 86 0000;"
                    "unmerged UU c<> 0 0000;changed .M sub<> 0 1101;"
                    "untracked .. un tracked<> 0 0000;ignored .. ign<> 0 0000;");
    git_status_free(&s);
    CHECK_INT(STATUS(&s, "# branch.oid (initial)\0# branch.head (detached)\0"), 0);
    CHECK_STR(s.commit, "");
    CHECK_STR(s.head, "");
    git_status_free(&s);
}

TEST(a_status_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *p;
        size_t n;
    } bad[] = {
#define B(x) {x, sizeof(x) - 1}
        B("x\0"),
        B("\0"),
        B("1 .M N...\0"),
        B("1 .X N... 1 2 3 4 5 p\0"),
        B("1 .M N... 1 2 3 4 5 \0"),
        B("2 R. N... 1 2 3 4 5 R101 p\0q\0"),
        B("2 R. N... 1 2 3 4 5 R100 p\0"),
        B("? \0"),
        B("? unended"),
    };
    struct git_status s;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (status(&s, bad[i].p, bad[i].n) == 0)
            fail_msg("'%s' was taken", bad[i].p);
        CHECK_INT(e.kind, ERR_CONFLICT);
        git_status_free(&s);
    }
}

TEST(a_token_over_its_bound_is_an_error)
{
    static char many[GIT_TOKEN_MAX + 10];
    struct git_status s;

    memset(many, 'x', sizeof(many));
    memcpy(many, "? ", 2);
    piece = 1000;
    CHECK_INT(status(&s, many, sizeof(many)), -1);
    git_status_free(&s);
    piece = 3;
}

/* ---- log ---- */

static void each_commit(void *arg, const char *const field[GIT_LOG_FIELDS])
{
    (void)arg;
    for (unsigned i = 0; i < GIT_LOG_FIELDS; i++)
        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%.10s|", field[i]);
}

TEST(commits_are_ten_fields_each)
{
    struct git_log l;

    seen[0] = '\0';
    git_log_init(&l, each_commit, NULL);
    CHECK_INT(FEED(&l.in, OID "\0\0an\0ae\0"
                              "1\0cn\0ce\0"
                              "2\0\0m\n\nb\n\0" OID "\0p q\0"),
              0);
    CHECK_STR(seen, "0123456789||an|ae|1|cn|ce|2||m\n\nb\n|");
    git_log_free(&l);
    git_log_init(&l, each_commit, NULL);
    CHECK_INT(FEED(&l.in, "no hash\0"), -1);
    git_log_free(&l);
}

/* ---- diff ---- */

static int diff(struct git_diff *d, const char *p, size_t n, size_t file_max, size_t total_max)
{
    git_diff_init(d, file_max, total_max);
    if (feed(&d->in, p, n) < 0)
        return -1;
    return git_diff_end(d, &e);
}

static const char example[] = ":100644 100644 aaaaaaa bbbbbbb M\0f\0"
                              ":100644 100644 aaaaaaa bbbbbbb R100\0old\0new\0"
                              ":000000 000000 0000000 0000000 U\0c\0"
                              ":100644 100644 aaaaaaa 0000000 M\0c\0"
                              ":100644 120000 aaaaaaa 0000000 T\0t\0"
                              ":100644 100644 aaaaaaa bbbbbbb M\0b\0"
                              "1\t2\tf\0"
                              "0\t0\t\0old\0new\0"
                              "0\t0\tc\0"
                              "4\t0\tc\0"
                              "1\t1\tt\0"
                              "-\t-\tb\0\0"
                              "diff --git a/f b/f\n+diff --git a/x b/x\n \n"
                              "diff --git a/old b/new\nrename from old\n"
                              "* Unmerged path c\n"
                              "diff --git a/c b/c\n+c\n"
                              "diff --git a/t b/t\n-t\ndiff --git a/t b/t\n+x\n\\ No newline\n"
                              "diff --git a/b b/b\nBinary files differ\n";

TEST(files_numbers_and_patches_find_each_other)
{
    for (piece = 1; piece < 40; piece += 5) {
        struct git_diff d;

        CHECK_INT(diff(&d, example, sizeof(example) - 1, 1000, 10000), 0);
        CHECK_INT(d.n, 5);
        CHECK_STR(d.files[0].path, "f");
        CHECK(d.files[0].added == 1 && d.files[0].deleted == 2);
        CHECK_STR(buf_cstr(&d.files[0].patch), "diff --git a/f b/f\n+diff --git a/x b/x\n \n");
        CHECK_STR(d.files[1].path, "new");
        CHECK_STR(d.files[1].from, "old");
        CHECK_INT(d.files[1].score, 100);
        CHECK_STR(d.files[2].path, "c");
        CHECK(d.files[2].conflict && d.files[2].added == 4);
        CHECK_STR(buf_cstr(&d.files[2].patch), "diff --git a/c b/c\n+c\n");
        CHECK_INT(d.files[3].status, 'T');
        CHECK_HAS(buf_cstr(&d.files[3].patch), "+x\n\\ No newline\n");
        CHECK(d.files[4].binary && !d.full && !d.more);
        git_diff_free(&d);
    }
    piece = 3;
}

TEST(patches_are_cut_at_their_bounds)
{
    struct git_diff d;

    CHECK_INT(diff(&d, example, sizeof(example) - 1, 21, 10000), 0);
    CHECK(d.files[0].truncated && d.files[0].patch.len == 21 && !d.full);
    git_diff_free(&d);
    CHECK_INT(diff(&d, example, sizeof(example) - 1, 1000, 50), 0);
    CHECK(d.full && d.total == 50);
    git_diff_free(&d);
}

TEST(a_diff_that_makes_no_sense_is_refused)
{
    static const char *const bad[] = {":x", ":1 2 3 4 5", "words", "1\tx\tp", "x\ty\tz"};
    struct git_diff d;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(diff(&d, bad[i], strlen(bad[i]) + 1, 10, 10), -1);
        git_diff_free(&d);
    }
    CHECK_INT(diff(&d, ":100644 100644 a b M\0", 21, 10, 10), -1);
    git_diff_free(&d);
}

TEST(more_files_than_are_shown_are_counted_out)
{
    static struct buf many = BUF_INIT(4u << 20);
    struct git_diff d;

    for (unsigned i = 0; i < GIT_FILES_MAX + 5; i++) {
        buf_adds(&many, ":100644 100644 a b M");
        buf_addc(&many, '\0');
        buf_addf(&many, "f%u", i);
        buf_addc(&many, '\0');
    }
    for (unsigned i = 0; i < GIT_FILES_MAX + 5; i++) {
        buf_addf(&many, "1\t1\tf%u", i);
        buf_addc(&many, '\0');
    }
    piece = 4096;
    CHECK_INT(diff(&d, buf_data(&many), many.len, 10, 10), 0);
    CHECK(d.more && d.n == GIT_FILES_MAX && d.files[GIT_FILES_MAX - 1].added == 1);
    git_diff_free(&d);
    buf_free(&many);
    piece = 3;
}

/* ---- words ---- */

TEST(progress_is_a_text_and_two_numbers)
{
    char line[] = "remote: Receiving objects:  45% (450/1000), 1.2 MiB | 3 MiB/s";
    char other[] = "remote: Enumerating objects: 15, done.";
    const char *text;
    uint64_t done, total;

    CHECK(git_progress(line, &text, &done, &total));
    CHECK_STR(text, "Receiving objects");
    CHECK(done == 450 && total == 1000);
    CHECK(!git_progress(other, &text, &done, &total));
}

TEST(why_it_failed_is_the_last_fatal_line_without_the_secret)
{
    static const char said[] = "Cloning into 'x'...\rremote: your password pa55 is bad\n"
                               "fatal: Authentication failed for 'http://u:pa55@h/'\nhint: x\n";

    git_words(said, strlen(said), "pa55", &e);
    CHECK_INT(e.kind, ERR_DENIED);
    CHECK_STR(e.msg, "git: Authentication failed for 'http://u:****@h/'");
    git_words("", 0, NULL, &e);
    CHECK_INT(e.kind, ERR_CONFLICT);
    CHECK_HAS(e.msg, "without an error message");
    git_words("fatal: \xff\x1b[31m", 13, NULL, &e);
    CHECK_STR(e.msg, "git: ??[31m");
}

/* ---- URLs ---- */

TEST(credentials_are_taken_out_of_a_url)
{
    char out[GIT_URL_MAX + 1], user[GIT_SECRET_MAX + 1] = "", pass[GIT_SECRET_MAX + 1] = "";

    CHECK_INT(git_url("https://a%40b:p%2Fw@h:8/r.git?x=@", out, user, pass, &e), 0);
    CHECK_STR(out, "https://h:8/r.git?x=@");
    CHECK_STR(user, "a@b");
    CHECK_STR(pass, "p/w");
    user[0] = pass[0] = '\0';
    CHECK_INT(git_url("git@github.com:x/y.git", out, user, pass, &e), 0);
    CHECK_STR(out, "git@github.com:x/y.git");
    CHECK_STR(user, "");
    CHECK_INT(git_url("https://u:%zz@h/", out, user, pass, &e), -1);
    CHECK_INT(git_url("--upload-pack=x", out, user, pass, &e), -1);
    CHECK_INT(git_url("a b", out, user, pass, &e), -1);
    CHECK_INT(git_url("", out, user, pass, &e), -1);
    strcpy(pass, "x");
    CHECK_INT(git_url("git://h/x", out, user, pass, &e), -1);
}

TEST(a_repository_is_called_after_its_url)
{
    static const char *const names[][2] = {
        {"https://h/a/b.git", "b"},  {"git@h:b.git", "b"},     {"/x/y/", "y"},
        {"https://h/a/b.git/", "b"}, {"/", "repository"},      {"https://h/..", "repository"},
        {"h:-x", "repository"},      {"https://h/x/.git", "x"}};
    char out[64];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        git_url_name(names[i][0], out, sizeof(out));
        CHECK_STR(out, names[i][1]);
    }
}
