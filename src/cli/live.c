/* live.c - see live.h. */
#include "cli/live.h"

#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CLEAR "\033[H\033[2J"

unsigned live_lines(void)
{
    struct winsize w;

    return isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_row : 0;
}

/* All of one drawing is buffered and written at once, so that nothing flickers. */
int live_draw(int (*draw)(void *arg, struct err *e), void *arg, struct err *e)
{
    static char all[64 << 10];

    if (live_lines() == 0)
        return draw(arg, e);
    setvbuf(stdout, all, _IOFBF, sizeof(all));
    for (;;) {
        fputs(CLEAR, stdout);
        if (draw(arg, e) < 0)
            return -1;
        if (fflush(stdout) != 0)
            return err_sys(e, "stdout");
        poll(NULL, 0, LIVE_EVERY_MS);
    }
}
