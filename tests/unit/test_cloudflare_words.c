#include "unit.h"

#include "front/planes/cloudflare/internal.h"

static struct err e;
static struct buf out = BUF_INIT(64u << 10);

static const char *path(const char *given)
{
    buf_clear(&out);
    return cloudflare_path("path", given, &out, &e) == 0 ? buf_cstr(&out) : err_code(e.kind);
}

static const char *quote(const char *word)
{
    buf_clear(&out);
    cloudflare_quote(&out, word);
    return buf_cstr(&out);
}

TEST(a_path_is_resolved_before_it_is_judged)
{
    CHECK_STR(path("/workspace"), "/workspace");
    CHECK_STR(path("/workspace/"), "/workspace");
    CHECK_STR(path("a/./b//c/"), "/workspace/a/b/c");
    CHECK_STR(path("a/../../workspace/b"), "/workspace/b");
    CHECK_STR(path("/../../workspace/x"), "/workspace/x");
    CHECK_STR(path("..."), "/workspace/...");
    CHECK_STR(path(""), "/workspace");
}

TEST(a_path_that_leads_out_of_the_workspace_is_refused)
{
    static const char *const bad[] = {"/",           "..",        "/etc",          "a/../..",
                                      "/workspaces", "/worksp",   "/workspace/..", "../workspacex",
                                      "//",          "/./..//..", "../../etc"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_STR(path(bad[i]), "denied");
}

TEST(a_path_past_its_bound_is_refused)
{
    char longest[ENGINE_PATH_MAX + 2];

    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    CHECK_STR(path(longest), "invalid");
    longest[ENGINE_PATH_MAX] = '\0';
    CHECK_INT(strlen(path(longest)), ENGINE_PATH_MAX + strlen("/workspace/"));
}

TEST(bash_reads_quoted_words_back_unchanged)
{
    CHECK_STR(quote("plain-1.2/x@y:z,%+=w"), "plain-1.2/x@y:z,%+=w");
    CHECK_STR(quote(""), "$''");
    CHECK_STR(quote("a b"), "$'a b'");
    CHECK_STR(quote("it's"), "$'it\\'s'");
    CHECK_STR(quote("\\n"), "$'\\\\n'");
    CHECK_STR(quote("a\nb\rc\td"), "$'a\\nb\\rc\\td'");
    CHECK_STR(quote("~"), "$'~'");
    CHECK_STR(quote("$(id)`id`"), "$'$(id)`id`'");
    CHECK_STR(quote("\xc3\xa9"), "$'\xc3\xa9'");
}
