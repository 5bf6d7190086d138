#include "unit.h"

#include "init/script.h"

static struct buf out = BUF_INIT(65536);

TEST(names_that_bash_would_not_take_are_no_variables)
{
    CHECK(script_is_variable("A="));
    CHECK(script_is_variable("_a9=x=y"));
    CHECK(!script_is_variable("9a=x"));
    CHECK(!script_is_variable("a-b=x"));
    CHECK(!script_is_variable("=x"));
    CHECK(!script_is_variable("a[$(id)]=x"));
    CHECK(!script_is_variable("a"));
}

TEST(a_word_in_quotes_cannot_end_early)
{
    buf_clear(&out);
    script_quote(&out, "it's $(x) `y` \\", 15);
    CHECK_STR(buf_cstr(&out), "'it'\\''s $(x) `y` \\'");
}

TEST(variables_of_a_call_are_words_in_quotes)
{
    static const char env[] = "A=it's\0B=\0C=x=y";
    static const char want[] = "A='it'\\''s'\0B=''\0C='x=y'";
    struct wire_strv v = {env, sizeof(env), 3};

    buf_clear(&out);
    script_env(&out, &v);
    CHECK_INT(out.len, sizeof(want));
    CHECK(memcmp(buf_data(&out), want, sizeof(want)) == 0);
}

TEST(a_shell_is_told_its_directory)
{
    buf_clear(&out);
    script_begin(&out, "/dev/cove/12");
    CHECK_HAS(buf_cstr(&out), "cove_session /dev/cove/12\n");
}
