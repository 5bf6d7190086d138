#include "unit.h"

#include "cli/screen.h"

/* What must be printed after `text`, given in pieces of `piece` bytes. */
static const char *undo(const char *text, size_t piece)
{
    static struct buf out = BUF_INIT(1024);
    struct modes m = {0};
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i += piece)
        modes_watch(&m, text + i, n - i < piece ? n - i : piece);
    buf_clear(&out);
    modes_undo(&m, &out);
    return buf_cstr(&out);
}

#define SAME(text, want)                                                                           \
    do {                                                                                           \
        CHECK_STR(undo(text, 1), want);                                                            \
        CHECK_STR(undo(text, 3), want);                                                            \
        CHECK_STR(undo(text, 1000), want);                                                         \
    } while (0)

TEST(what_was_not_touched_needs_nothing)
{
    SAME("hello\033[31m world\033[0m\033[2J\033[1;1H", "");
    SAME("\033[?1049h\033[?25lvi\033[?25h\033[?1049l", "");
    SAME("\033]0;title\007\033(B\033=", "");
}

TEST(what_was_switched_on_is_switched_off_the_last_first)
{
    SAME("\033[?1049h\033[?25l", "\033[?25h\033[?1049l\033[0m\033>");
    SAME("\033[?1000;1006;2004h", "\033[?2004l\033[?1006l\033[?1000l\033[0m\033>");
    SAME("\033[?7l", "\033[?7h\033[0m\033>");
    SAME("\033[?1049h\033[?1049h", "\033[?1049l\033[0m\033>");
}

TEST(a_reset_undoes_it_all)
{
    SAME("\033[?1049h\033[?25l\033c", "");
}

TEST(modes_that_mean_nothing_to_us_are_left_alone)
{
    SAME("\033[?12h\033[?2026h\033[4h\033[25l", "");
}

TEST(a_sequence_without_end_is_forgotten)
{
    char text[300] = "\033[?";

    memset(text + 3, '1', 200);
    strcpy(text + 203, ";1049h\033[?1000h");
    SAME(text, "\033[?1000l\033[0m\033>");
}
