/* backend.c - the table of backends. */
#include "front/workspace/backend.h"

#include "base/own.h"

const struct backend_kind *const backend_kinds[] = {&backend_cove};
const size_t backend_kinds_count = ARRAY_LEN(backend_kinds);
