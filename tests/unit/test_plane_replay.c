/* Replayed output of a terminal: questions become NULs, everything else stays, byte for byte. */
#include <stdio.h>

#include "unit.h"

#include "front/plane/replay.h"

/* Feeds `in` in pieces of `piece` bytes. */
static void replayed(const char *in, size_t n, size_t piece, struct buf *out)
{
    struct replay r = {0};

    buf_clear(out);
    for (size_t at = 0; at < n; at += piece)
        replay_add(&r, in + at, n - at < piece ? n - at : piece, out);
    replay_end(&r, out);
}

static void check(const char *in, size_t n, const char *expect)
{
    autobuf struct buf out = BUF_INIT(65536);

    for (size_t piece = 1; piece <= n; piece++) {
        replayed(in, n, piece, &out);
        CHECK(out.len == n);
        CHECK(memcmp(buf_data(&out), expect, n) == 0);
    }
}

TEST(questions_to_the_terminal_become_nuls)
{
    static const char *const asked[] = {
        "\033[c",
        "\033[0c",
        "\033[>c",
        "\033[=c",
        "\033[5n",
        "\033[6n",
        "\033[?6n",
        "\033[?996n",
        "\033[x",
        "\033[14t",
        "\033[18t",
        "\033[21t",
        "\033[?25$p",
        "\033[4$p",
        "\033[>0q",
        "\033[?u",
        "\033[?4m",
        "\033[?1;1;0S",
        "\033]10;?\033\\",
        "\033]11;?\007",
        "\033]4;1;?\007",
        "\033]52;c;?\007",
        "\033P+q544e\033\\",
        "\033P$qm\033\\",
        "\033_Gi=1,a=q;\033\\",
        "\033Z",
        "\005",
    };
    char in[64], expect[64];

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        size_t n = strlen(asked[i]);

        memset(expect, 0, sizeof(expect));
        expect[0] = 'a';
        expect[n + 1] = 'b';
        snprintf(in, sizeof(in), "a%sb", asked[i]);
        check(in, n + 2, expect);
    }
}

TEST(everything_else_stays_as_it_is)
{
    static const char *const kept[] = {
        "plain text \303\251\r\n",
        "\033[1;31mred\033[0m\033[2J\033[H\033[?1049h\033[?25l",
        "\033[22;0;0t\033[8;24;80t\033[>4;2m\033[>1u\033[<u\033[?1c",
        "\033]0;a title; really?\007\033]8;;http://x/?a=b\033\\link\033]8;;\033\\",
        "\033(B\033)0\033=\033>\0337\0338\033M\033#8\033%G",
        "\033P1;2q#0;2;0;0;0\033\\",
        "\033[12\033[6\030n half a sequence",
        "\033",
        "\033[",
        "\033]0;never ended",
    };

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        check(kept[i], strlen(kept[i]), kept[i]);
}

TEST(a_sequence_longer_than_the_limit_passes_whole)
{
    char in[3 * REPLAY_HELD_MAX];

    memset(in, 'x', sizeof(in));
    memcpy(in, "\033]0;", 4);
    in[sizeof(in) - 1] = '\007';
    check(in, 1, in);
    autobuf struct buf out = BUF_INIT(65536);
    replayed(in, sizeof(in), 100, &out);
    CHECK(out.len == sizeof(in) && memcmp(buf_data(&out), in, sizeof(in)) == 0);
}
