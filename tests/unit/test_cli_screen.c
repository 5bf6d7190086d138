#include "unit.h"

#include "cli/terminal/screen.h"

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

TEST(nothing_is_reset_if_no_mode_differs)
{
    SAME("hello\033[31m world\033[0m\033[2J\033[1;1H", "");
    SAME("\033[?1049h\033[?25lvi\033[?25h\033[?1049l", "");
    SAME("\033]0;title\007\033(B\033=", "");
}

TEST(modes_are_reset_in_reverse_order)
{
    SAME("\033[?1049h\033[?25l", "\033[?25h\033[?1049l\033[0m\033>");
    SAME("\033[?1000;1006;2004h", "\033[?2004l\033[?1006l\033[?1000l\033[0m\033>");
    SAME("\033[?7l", "\033[?7h\033[0m\033>");
    SAME("\033[?1049h\033[?1049h", "\033[?1049l\033[0m\033>");
}

TEST(a_terminal_reset_clears_all_modes)
{
    SAME("\033[?1049h\033[?25l\033c", "");
}

TEST(other_modes_are_not_tracked)
{
    SAME("\033[?12h\033[?2026h\033[4h\033[25l", "");
}

TEST(a_sequence_that_is_too_long_is_dropped)
{
    char text[300] = "\033[?1002;"; /* it would be set if the sequence was only cut */

    memset(text + strlen(text), '1', 200);
    strcat(text, ";1049h\033[?1000h");
    SAME(text, "\033[?1000l\033[0m\033>");
}
