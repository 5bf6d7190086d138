/* fuzz_wire_keeper.c - frames of wire/keeper.h, all types. */
#include "fuzz_wire.h"
#include "wire/keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_frames(data, n, keeper_msg);
    return 0;
}
