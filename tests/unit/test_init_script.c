#include "unit.h"

#include "init/script.h"

static struct buf out = BUF_INIT(65536);

static const char *with_input(const char *text, const char *cwd, const char *env, size_t env_len,
                              const char *input)
{
    struct wire_bytes t = {text, (uint32_t)strlen(text)};
    struct wire_strv v = {env, (uint32_t)env_len, 0};

    for (size_t i = 0; i < env_len; i++)
        v.count += env[i] == '\0';
    buf_clear(&out);
    script_command(&out, &(struct script_call){&t, cwd, &v, "/d", input});
    return buf_cstr(&out);
}

static const char *command(const char *text, const char *cwd, const char *env, size_t env_len)
{
    return with_input(text, cwd, env, env_len, "");
}

TEST(a_plain_command_is_its_own_text)
{
    CHECK_STR(command("echo 'open", "", "", 0), "echo 'open");
}

TEST(what_comes_before_it_is_a_word_that_cannot_end_early)
{
    static const char env[] = "A=it's\0B=";

    CHECK_HAS(command("echo it's", "", env, sizeof(env)),
              "A='it'\\''s' B='' \\command eval 'echo it'\\''s' >/d/1 2>/d/2; elif ");
    CHECK_HAS(buf_cstr(&out),
              "A='it'\\''s' B='' \\builtin command eval 'echo it'\\''s' >/d/1 2>/d/2; else "
              "A='it'\\''s' B='' \\eval 'echo it'\\''s' >/d/1 2>/d/2; fi");
    CHECK_HAS(command("x", "/a b'c", "", 0), "\\builtin cd -- '/a b'\\''c' 2>/d/2; else ");
    CHECK_HAS(command("x", "/a b'c", "", 0), "\\builtin eval 'x' >/d/1 2>/d/2; else ");
}

TEST(a_stdin_is_read_from_its_file)
{
    CHECK_HAS(with_input("read a", "", "", 0, "i7"),
              "\\builtin eval 'read a' </d/i7 >/d/1 2>/d/2; else "
              "\\command eval 'read a' </d/i7 >/d/1 2>/d/2; fi");
}

TEST(the_status_before_is_said_only_to_who_asks)
{
    struct wire_bytes t = {"echo $?", 7};
    struct wire_strv none = {"", 0, 0};
    struct script_slots slots;

    buf_clear(&out);
    slots = script_command(&out, &(struct script_call){&t, "", &none, "/d", ""});
    CHECK(slots.at[0] != SIZE_MAX && slots.at[1] != SIZE_MAX);
    script_status(&out, &slots, 0);
    CHECK(strstr(buf_cstr(&out), "exit") == NULL);
    script_status(&out, &slots, 255);
    CHECK_HAS(buf_cstr(&out), "then (\\builtin exit 255) || \\builtin eval 'echo $?'");
    CHECK_HAS(buf_cstr(&out), "else (\\command exit 255) || \\command eval 'echo $?'");
}

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

TEST(the_loop_names_its_directory_and_leaves_no_mark_of_ours)
{
    buf_clear(&out);
    script_main(&out, "/dev/cove/12", "/");
    script_first(&out, "/dev/cove/12");
    script_next(&out, "/dev/cove/12");
    script_exit(&out, "/dev/cove/12", SCRIPT_EXIT_ENDS);
    script_exit(&out, "/dev/cove/12", SCRIPT_EXIT_GOES_ON);
    script_exit(&out, "/dev/cove/12", SCRIPT_STOPPED);
    CHECK(!out.failed);
    CHECK_HAS(buf_cstr(&out), "$(</dev/cove/12/c)");
    CHECK(strchr(buf_cstr(&out), '%') == NULL);
}
