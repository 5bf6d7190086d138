#include "unit.h"

#include "cli/cmd.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {'f', "follow", NULL,  "a flag"},
    {'w', "dir",    "DIR", "a value"},
    {0,   "meta",   "K=V", "a value"},
    {0},
};
/* clang-format on */
static const struct cmd plain = {
    .name = "plain", .usage = "plain [-f] FIRST [SECOND]", .opts = opts, .min = 1, .max = 2};
static const struct cmd runner = {.name = "runner",
                                  .usage = "runner SANDBOX -- COMMAND...",
                                  .opts = opts,
                                  .min = 2,
                                  .max = CMD_ANY,
                                  .command_at = 2};
static const struct cmd raw = {.name = "raw", .raw = true};

static struct args a;
static struct err e;
static bool help;

/* argv is never written through, only its pointers are moved. */
#define PARSE(c, ...)                                                                              \
    ({                                                                                             \
        static const char *argv_[] = {__VA_ARGS__};                                                \
        args_parse(&a, c, (int)ARRAY_LEN(argv_), (char **)argv_, &help, &e);                       \
    })

TEST(options_are_accepted_before_and_after_operands_in_all_forms)
{
    CHECK_INT(PARSE(&plain, "-f", "one", "--dir", "d", "--meta=a=b", "two", "--meta", "c"), 0);
    CHECK_INT(a.noperands, 2);
    CHECK_STR(a.operands[0], "one");
    CHECK_STR(a.operands[1], "two");
    CHECK(args_flag(&a, "follow"));
    CHECK_STR(args_value(&a, "dir"), "d");
    CHECK_STR(args_value(&a, "meta"), "c");
    CHECK_INT(PARSE(&plain, "-fwd", "x"), 0);
    CHECK_STR(args_value(&a, "dir"), "d");
}

TEST(values_of_a_repeated_option_come_in_order)
{
    size_t at = 0;

    CHECK_INT(PARSE(&plain, "--meta", "1", "x", "--meta", "2"), 0);
    CHECK_STR(args_next(&a, "meta", &at), "1");
    CHECK_STR(args_next(&a, "meta", &at), "2");
    CHECK(args_next(&a, "meta", &at) == NULL);
}

TEST(options_of_the_command_to_run_are_not_parsed)
{
    CHECK_INT(PARSE(&runner, "box", "-f", "ls", "-f", "--dir", "--help", "--"), 0);
    CHECK_INT(a.noperands, 6);
    CHECK(!help);
    CHECK(args_flag(&a, "follow"));
    CHECK(args_value(&a, "dir") == NULL);
    CHECK_STR(a.operands[5], "--");
    CHECK_INT(PARSE(&runner, "box", "--", "-f", "x"), 0);
    CHECK_INT(a.noperands, 3);
    CHECK(!args_flag(&a, "follow"));
}

TEST(two_dashes_end_the_options)
{
    CHECK_INT(PARSE(&plain, "--", "-f"), 0);
    CHECK_STR(a.operands[0], "-f");
    CHECK_INT(PARSE(&plain, "-"), 0);
    CHECK_STR(a.operands[0], "-");
}

TEST(usage_errors_name_the_option_or_argument)
{
    CHECK_INT(PARSE(&plain, "x", "--nope"), -1);
    CHECK_HAS(e.msg, "--nope");
    CHECK_INT(PARSE(&plain, "x", "-z"), -1);
    CHECK_HAS(e.msg, "-z");
    CHECK_INT(PARSE(&plain, "x", "--dir"), -1);
    CHECK_HAS(e.msg, "DIR");
    CHECK_INT(PARSE(&plain, "x", "-w"), -1);
    CHECK_INT(PARSE(&plain, "x", "--follow=1"), -1);
    CHECK_INT(PARSE(&plain, "x", "y", "z"), -1);
    CHECK_HAS(e.msg, "'z'");
    CHECK_INT(PARSE(&plain, "-f"), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    CHECK_STR(e.msg, "FIRST is missing");
    CHECK_INT(PARSE(&runner, "-f"), -1);
    CHECK_HAS(e.msg, "SANDBOX is missing; `cove list`");
    CHECK_INT(PARSE(&runner, "box"), -1);
    CHECK_STR(e.msg, "COMMAND is missing");
}

TEST(help_is_shown_even_if_operands_are_missing)
{
    CHECK_INT(PARSE(&runner, "--help"), 0);
    CHECK(help);
    CHECK_INT(PARSE(&raw, "--state", "x", "-h"), 0);
    CHECK(help);
}

TEST(a_raw_command_gets_all_arguments_unparsed)
{
    CHECK_INT(PARSE(&raw, "--state", "x", "--", "y"), 0);
    CHECK(!help);
    CHECK_INT(a.argc, 4);
}

TEST(too_many_options_are_refused)
{
    static char *many[ARGS_OPTS_MAX + 2], flag[] = "-f";

    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = flag;
    CHECK_INT(args_parse(&a, &plain, (int)ARRAY_LEN(many), many, &help, &e), -1);
}
