/* fuzz_wire_init.c - frames of wire/init.h, all types. */
#include "fuzz_wire.h"
#include "wire/init.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_frames(data, n, init_msg);
    return 0;
}
