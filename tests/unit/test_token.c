/* test_token.c - what the server hands out. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/auth/token.h"

#define NOW_MS 1800000000000ull
#define NOW_S (NOW_MS / 1000)
#define DAY_MS 86400000ull

/* Of 0.1.0, for the secret of 32 bytes 's': HMAC-SHA256 of "envd:abc", calculated with Python. */
#define V1_SECRET "ssssssssssssssssssssssssssssssss"
#define V1_ENVD "76801e1e4ad71c1fd19e74e533a10f2ac04472a14022ee4f2e87be7a71adbc44"
#define V1_TRAFFIC "c0dceec96a8d778b12172a4ba8ed8c9105d9b9b4286d1ec19cff7feea905f63c"

static char dir[64];
static int dir_fd;
static struct token_mint *m;
static struct err e;

static void enter(void)
{
    strcpy(dir, "/tmp/cove-token-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir_fd >= 0);
    clock_hold(1, NOW_MS);
}

static void leave(void)
{
    token_free(m);
    m = NULL;
    clock_release();
    unlinkat(dir_fd, TOKEN_FILE, 0);
    unlinkat(dir_fd, TOKEN_FILE_V1, 0);
    drop_fd(&dir_fd);
    CHECK_INT(rmdir(dir), 0);
}

static void open_mint(void)
{
    token_free(m);
    CHECK_INT(token_open(dir_fd, &m, &e), 0);
}

static void put(const char *name, const char *text)
{
    autofd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
}

static const char *make(struct token_claims c)
{
    static char out[TOKEN_SIZE];

    CHECK_INT(token_make(m, &c, out, &e), 0);
    return strdup(out);
}

static struct token_claims of_sandbox(const char *id)
{
    struct token_claims c = {.kind = TOKEN_SANDBOX, .key = "key1"};

    strcpy(c.subject, id);
    return c;
}

static struct token_claims of_stream(void)
{
    return (struct token_claims){.kind = TOKEN_STREAM,
                                 .key = "key1",
                                 .subject = "abc/terminal",
                                 .id = "v1",
                                 .mode = TOKEN_CONTROL,
                                 .port = 7681,
                                 .expires_s = NOW_S + TOKEN_STREAM_S};
}

TEST(a_token_says_what_was_granted)
{
    autofree const char *t = NULL;
    struct token_claims c;

    enter();
    open_mint();
    t = make(of_stream());
    CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), 0);
    CHECK_STR(c.key, "key1");
    CHECK_STR(c.subject, "abc/terminal");
    CHECK_STR(c.id, "v1");
    CHECK_INT(c.mode, TOKEN_CONTROL);
    CHECK_INT(c.port, 7681);
    CHECK_INT(c.expires_s, NOW_S + TOKEN_STREAM_S);
    leave();
}

TEST(a_token_of_one_kind_is_no_token_of_another)
{
    autofree const char *t = NULL;
    struct token_claims c;

    enter();
    open_mint();
    t = make(of_stream());
    for (enum token_kind k = 0; k < TOKEN_KIND_COUNT; k++) {
        char copy[TOKEN_SIZE];

        strcpy(copy, t);
        CHECK_INT(token_check(m, k, copy, &c, &e), k == TOKEN_STREAM ? 0 : -1);
        copy[2] = 'r'; /* the prefix of a relay token: the claims still say stream */
        CHECK_INT(token_check(m, k, copy, &c, &e), -1);
        CHECK_INT(e.kind, ERR_UNAUTHORIZED);
    }
    leave();
}

TEST(a_token_with_any_character_changed_is_refused)
{
    autofree char *t = NULL;
    struct token_claims c;

    enter();
    open_mint();
    t = (char *)(uintptr_t)make(of_stream());
    for (size_t i = 0; t[i] != '\0'; i++) {
        char was = t[i];

        t[i] = was == 'A' ? 'B' : 'A';
        CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), -1);
        t[i] = '\0';
        CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), -1);
        t[i] = was;
    }
    CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), 0);
    CHECK_INT(token_check(m, TOKEN_STREAM, NULL, &c, &e), -1);
    CHECK_INT(token_check(m, TOKEN_STREAM, "", &c, &e), -1);
    CHECK_INT(token_check(m, TOKEN_STREAM, "cvs_.", &c, &e), -1);
    leave();
}

TEST(a_token_is_refused_when_its_time_is_over)
{
    autofree const char *t = NULL;
    struct token_claims c;

    enter();
    open_mint();
    t = make(of_stream());
    clock_hold(1, NOW_MS + TOKEN_STREAM_S * 1000);
    CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), 0);
    clock_hold(1, NOW_MS + (TOKEN_STREAM_S + 1) * 1000);
    CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), -1);
    CHECK_HAS(e.msg, "expired");
    leave();
}

TEST(no_token_lasts_longer_than_its_kind_allows)
{
    struct token_claims c = of_stream();
    char out[TOKEN_SIZE];

    enter();
    open_mint();
    c.expires_s = NOW_S + TOKEN_HOUR + 1;
    CHECK_INT(token_make(m, &c, out, &e), -1);
    c.expires_s = 0;
    CHECK_INT(token_make(m, &c, out, &e), -1);
    c = of_sandbox("abc");
    c.expires_s = NOW_S + 1;
    CHECK_INT(token_make(m, &c, out, &e), -1);
    leave();
}

TEST(the_longest_claims_fit_and_no_others_than_plain_text_are_taken)
{
    struct token_claims c = of_stream();
    autofree const char *t = NULL;
    char out[TOKEN_SIZE];

    enter();
    open_mint();
    memset(c.key, 'k', TOKEN_KEY_MAX);
    memset(c.subject, 's', TOKEN_SUBJECT_MAX);
    memset(c.id, 'i', TOKEN_ID_MAX);
    t = make(c);
    CHECK_INT(token_check(m, TOKEN_STREAM, t, &c, &e), 0);
    c.subject[3] = '"';
    CHECK_INT(token_make(m, &c, out, &e), -1);
    c.subject[3] = '\n';
    CHECK_INT(token_make(m, &c, out, &e), -1);
    leave();
}

TEST(a_token_without_expiry_is_the_same_after_a_restart)
{
    autofree const char *first = NULL, *again = NULL, *other = NULL;
    struct stat st;

    enter();
    open_mint();
    first = make(of_sandbox("abc"));
    open_mint();
    again = make(of_sandbox("abc"));
    other = make(of_sandbox("abd"));
    CHECK_STR(first, again);
    CHECK(strcmp(first, other) != 0);
    CHECK(token_opens(m, TOKEN_SANDBOX, "abc", first));
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abd", first));
    CHECK(!token_opens(m, TOKEN_PORT, "abc", first));
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", NULL));
    CHECK_INT(fstatat(dir_fd, TOKEN_FILE, &st, 0), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    leave();
}

TEST(two_servers_have_different_secrets)
{
    autofree const char *a = NULL;

    enter();
    open_mint();
    a = make(of_sandbox("abc"));
    leave();
    enter();
    open_mint();
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", a));
    leave();
}

TEST(tokens_of_the_last_secret_are_valid_for_the_grace_time_and_no_longer)
{
    autofree const char *before = NULL, *after = NULL;
    struct token_secret list[TOKEN_SECRETS_MAX];

    enter();
    open_mint();
    before = make(of_sandbox("abc"));
    CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    after = make(of_sandbox("abc"));
    CHECK(strcmp(before, after) != 0);
    for (int restarted = 0; restarted < 2; restarted++, open_mint()) {
        clock_hold(1, NOW_MS);
        CHECK_INT(token_secrets(m, list), 2);
        CHECK_INT(list[0].retires_ms, 0);
        CHECK_INT(list[1].retires_ms, NOW_MS + DAY_MS);
        CHECK(token_opens(m, TOKEN_SANDBOX, "abc", before));
        CHECK(token_opens(m, TOKEN_SANDBOX, "abc", after));
        clock_hold(1, NOW_MS + DAY_MS);
        CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", before));
        CHECK(token_opens(m, TOKEN_SANDBOX, "abc", after));
        CHECK_INT(token_secrets(m, list), 1);
    }
    leave();
}

TEST(a_rotation_without_grace_refuses_every_earlier_token)
{
    autofree const char *before = NULL, *between = NULL;

    enter();
    open_mint();
    before = make(of_sandbox("abc"));
    CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    between = make(of_sandbox("abc"));
    CHECK_INT(token_rotate(m, 0, &e), 0);
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", before));
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", between));
    open_mint();
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", between));
    leave();
}

TEST(a_later_rotation_does_not_lengthen_a_grace_time)
{
    autofree const char *before = NULL;

    enter();
    open_mint();
    before = make(of_sandbox("abc"));
    CHECK_INT(token_rotate(m, 1000, &e), 0);
    CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    clock_hold(1, NOW_MS + 1000);
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", before));
    leave();
}

TEST(a_rotation_with_all_secrets_in_use_is_refused_and_changes_nothing)
{
    autofree const char *first = NULL, *last = NULL;

    enter();
    open_mint();
    first = make(of_sandbox("abc"));
    for (int i = 1; i < TOKEN_SECRETS_MAX; i++)
        CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    last = make(of_sandbox("abc"));
    CHECK_INT(token_rotate(m, DAY_MS, &e), -1);
    CHECK_INT(e.kind, ERR_LIMIT);
    CHECK(token_opens(m, TOKEN_SANDBOX, "abc", first));
    CHECK(token_opens(m, TOKEN_SANDBOX, "abc", last));
    clock_hold(1, NOW_MS + DAY_MS);
    CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    leave();
}

TEST(tokens_of_0_1_0_are_valid_until_their_secret_is_rotated_out)
{
    enter();
    put(TOKEN_FILE_V1, V1_SECRET);
    for (int restarted = 0; restarted < 2; restarted++) {
        open_mint();
        CHECK(token_opens(m, TOKEN_SANDBOX, "abc", V1_ENVD));
        CHECK(token_opens(m, TOKEN_PORT, "abc", V1_TRAFFIC));
        CHECK(!token_opens(m, TOKEN_PORT, "abc", V1_ENVD));
        CHECK(!token_opens(m, TOKEN_SANDBOX, "abd", V1_ENVD));
        CHECK(!token_opens(m, TOKEN_STREAM, "abc", V1_ENVD));
    }
    CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    CHECK(token_opens(m, TOKEN_SANDBOX, "abc", V1_ENVD));
    clock_hold(1, NOW_MS + DAY_MS);
    CHECK(!token_opens(m, TOKEN_SANDBOX, "abc", V1_ENVD));
    leave();
}

TEST(a_new_server_has_no_tokens_in_the_form_of_0_1_0)
{
    char texts[TOKEN_TEXTS_MAX][TOKEN_SIZE];
    struct token_claims c = of_sandbox("abc");

    enter();
    open_mint();
    CHECK_INT(token_texts(m, &c, texts), 1);
    leave();
    enter();
    put(TOKEN_FILE_V1, V1_SECRET);
    open_mint();
    for (int i = 1; i < TOKEN_SECRETS_MAX; i++)
        CHECK_INT(token_rotate(m, DAY_MS, &e), 0);
    CHECK_INT(token_texts(m, &c, texts), TOKEN_TEXTS_MAX);
    for (size_t i = 0; i < TOKEN_TEXTS_MAX; i++)
        CHECK(token_opens(m, TOKEN_SANDBOX, "abc", texts[i]));
    leave();
}

TEST(a_damaged_file_of_secrets_is_reported_and_not_replaced)
{
    static const char *const bad[] = {
        "",
        "short",
        "cove tokens 1\n",
        "cove tokens 2\n",
        "cove tokens 1\nx y z w\n",
        "cove tokens 1\n7373737373737373737373737373737373737373737373737373737373737373 0 0 0",
        "cove tokens 1\n7373737373737373737373737373737373737373737373737373737373737373 0 9 0\n",
        "cove tokens 1\n737373737373737373737373737373737373737373737373737373737373737 0 0 0\n"};

    enter();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(TOKEN_FILE, bad[i]);
        CHECK_INT(token_open(dir_fd, &m, &e), -1);
        CHECK_HAS(e.msg, TOKEN_FILE);
    }
    unlinkat(dir_fd, TOKEN_FILE, 0);
    put(TOKEN_FILE_V1, "short");
    CHECK_INT(token_open(dir_fd, &m, &e), -1);
    CHECK_HAS(e.msg, TOKEN_FILE_V1);
    leave();
}

/* Calculated with Python's hmac and base64. */
TEST(the_envelope_is_that_of_other_servers)
{
    char sealed[TOKEN_SIZE], json[TOKEN_SIZE];

    CHECK_INT(token_seal("ogs_", "secret", 6, "{\"exp\":1}", sealed, &e), 0);
    CHECK_STR(sealed, "ogs_eyJleHAiOjF9.CEQWPOyvOe1WVV5jzJA38YbP2k9_vq9eGnT9PlIThJU");
    CHECK_INT(token_unseal("ogs_", "secret", 6, sealed, json), 0);
    CHECK_STR(json, "{\"exp\":1}");
    CHECK_INT(token_unseal("ogs_", "Secret", 6, sealed, json), -1);
    CHECK_INT(token_unseal("ogr_", "secret", 6, sealed, json), -1);
}
