#include "unit.h"

#include "init/session/script.h"

static struct buf out = BUF_INIT(65536);

TEST(rejects_variable_names_that_bash_rejects)
{
    CHECK(script_is_variable("A="));
    CHECK(script_is_variable("_a9=x=y"));
    CHECK(!script_is_variable("9a=x"));
    CHECK(!script_is_variable("a-b=x"));
    CHECK(!script_is_variable("=x"));
    CHECK(!script_is_variable("a[$(id)]=x"));
    CHECK(!script_is_variable("a"));
}

TEST(a_quote_in_a_word_does_not_end_it)
{
    buf_clear(&out);
    script_quote(&out, "it's $(x) `y` \\", 15);
    CHECK_STR(buf_cstr(&out), "'it'\\''s $(x) `y` \\'");
}

TEST(variables_of_a_call_are_quoted)
{
    static const char env[] = "A=it's\0B=\0C=x=y";
    static const char want[] = "A='it'\\''s'\0B=''\0C='x=y'";
    struct wire_strv v = {env, sizeof(env), 3};

    buf_clear(&out);
    script_env(&out, &v);
    CHECK_INT(out.len, sizeof(want));
    CHECK(memcmp(buf_data(&out), want, sizeof(want)) == 0);
}

TEST(the_script_passes_the_directory_to_the_builtin)
{
    buf_clear(&out);
    script_begin(&out, "/dev/cove/12");
    CHECK_HAS(buf_cstr(&out), "cove_session /dev/cove/12\n");
}
