#include "unit.h"

#include <stdio.h>

#include "config/config.h"

/* Arguments are borrowed as char *; these are never written. */
static int load(struct config *c, struct err *e, const char *a, const char *b, const char *d)
{
    char *argv[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)d, NULL};
    int argc = a == NULL ? 0 : b == NULL ? 1 : d == NULL ? 2 : 3;

    return config_load(c, argc, argv, e);
}

static void refused(const char *a, const char *b, const char *why)
{
    struct config c;
    struct err e;

    CHECK_INT(load(&c, &e, a, b, NULL), -1);
    CHECK_HAS(e.msg, why);
    config_free(&c);
}

TEST(without_arguments_every_setting_has_its_default)
{
    struct config c;
    struct err e;

    CHECK_INT(load(&c, &e, NULL, NULL, NULL), 0);
    CHECK_STR(c.listen, "127.0.0.1:7878");
    CHECK_INT(c.memory, 1ull << 30);
    CHECK_INT(c.pool, 16);
    for (size_t i = 0; i < config_nkeys; i++) {
        const struct config_key *k = &config_keys[i];
        char option[CONFIG_TEXT_MAX + 64], value[CONFIG_TEXT_MAX], want[CONFIG_TEXT_MAX];
        struct config given;

        snprintf(option, sizeof(option), "--%s=%s", k->name, k->def);
        CHECK_INT(load(&given, &e, option, NULL, NULL), 0);
        config_value(&given, k, want);
        config_value(&c, k, value);
        CHECK_STR(value, want);
        config_free(&given);
    }
    config_free(&c);
}

TEST(both_ways_to_write_an_option_mean_the_same)
{
    struct config c;
    struct err e;

    CHECK_INT(load(&c, &e, "--memory=64M", "--timeout", "2h"), 0);
    CHECK_INT(c.memory, 64ull << 20);
    CHECK_INT(c.timeout_ms, 2 * 3600 * 1000);
    config_free(&c);
}

TEST(settings_of_earlier_releases_keep_their_meaning)
{
    struct config c;
    struct err e;

    CHECK_INT(load(&c, &e, "--bridge-idle=3s", "--bridge-template", "bare"), 0);
    CHECK_INT(c.cloudflare_idle_ms, 3000);
    CHECK_STR(c.cloudflare_template, "bare");
    config_free(&c);
}

TEST(an_invalid_setting_is_refused_with_its_name_and_bounds)
{
    refused("--nope", "1", "unknown option '--nope'");
    refused("--memory", NULL, "needs a value");
    refused("--memory", "1", "not between");
    refused("--memory", "1X", "a size such as");
    refused("--pids", "-3", "a number");
    refused("--timeout", "soon", "a duration");
    refused("serve", NULL, "unexpected argument");
    refused("--config", "/nonexistent/x", "No such file");
}

TEST(the_command_line_wins_over_the_file)
{
    char path[] = "/tmp/cove-config-XXXXXX", arg[64];
    autofd int fd = mkstemp(path);
    static const char text[] = "# a comment\n\n  pool = 3 \nmemory=32M\n";
    struct config c;
    struct err e;

    CHECK(write(fd, text, sizeof(text) - 1) > 0);
    snprintf(arg, sizeof(arg), "--config=%s", path);
    CHECK_INT(load(&c, &e, "--memory=64M", arg, NULL), 0);
    unlink(path);
    CHECK_INT(c.pool, 3);
    CHECK_INT(c.memory, 64ull << 20);
    config_free(&c);
}

TEST(a_bad_line_of_the_file_is_named_by_its_number)
{
    char path[] = "/tmp/cove-config-XXXXXX";
    autofd int fd = mkstemp(path);

    CHECK(write(fd, "pool = 1\nnonsense\n", 18) == 18);
    refused("--config", path, "line 2");
    unlink(path);
}

TEST(settings_written_as_arguments_read_back_the_same)
{
    struct config a, b;
    struct err e;
    char **argv;
    int argc = 0;

    CHECK_INT(load(&a, &e, "--disk=77M", "--timeout=90s", "--accept=x,no-disk-limit"), 0);
    argv = config_argv(&a);
    while (argv[argc] != NULL)
        argc++;
    CHECK_INT(config_load(&b, argc, argv, &e), 0);
    CHECK_INT(b.disk, 77ull << 20);
    CHECK_INT(b.timeout_ms, 90000);
    CHECK(config_accepts(&b, "no-disk-limit"));
    CHECK(config_accepts(&b, "x"));
    CHECK(!config_accepts(&b, "no-disk"));
    free(argv);
    config_free(&a);
    config_free(&b);
}
