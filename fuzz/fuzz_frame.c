/* fuzz_frame.c - messages of a terminal's viewer: our protocol and ttyd's. The first byte
 * chooses which, the rest is the message. */
#include "front/engine/process.h"
#include "front/plane/frame.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct frame f;
    struct err e = {0};
    char *p;
    int kind, ret;

    if (n == 0)
        return 0;
    kind = data[0] & 3;
    p = fuzz_copy(data + 1, n - 1);
    ret = kind < 2 ? frame_read(kind == 1, p, n - 1, &f, &e)
                   : frame_read_ttyd(kind == 2, p, n - 1, &f, &e);
    if (ret < 0) {
        FUZZ_MUST((e.kind == ERR_INVALID || e.kind == ERR_TOO_LARGE) && e.msg[0] != '\0');
    } else {
        FUZZ_MUST((unsigned)f.act < FRAME_ACT_COUNT);
        FUZZ_MUST(f.cols <= TERMINAL_SIDE_MAX && f.rows <= TERMINAL_SIDE_MAX);
        FUZZ_MUST(f.act != FRAME_RESIZE || (f.cols > 0 && f.rows > 0));
        FUZZ_MUST(f.act != FRAME_INPUT || (f.p >= p && f.p + f.n == p + n - 1));
    }
    free(p);
    return 0;
}
