/* init.c - descriptions of the messages in init.h. */
#include "wire/init.h"

#include "base/own.h"

/* clang-format off */
#define X(kind, s, number, fields) static const struct wire_field s##_fields[] = {fields(WIRE_FIELD, s)};
INIT_MSGS(X)
#undef X

#define X(kind, s, number, fields) {#s, number, sizeof(struct s), s##_fields, ARRAY_LEN(s##_fields)},
static const struct wire_msg msgs[] = {INIT_MSGS(X)};
#undef X
/* clang-format on */

const struct wire_msg *init_msg(uint16_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(msgs); i++)
        if (msgs[i].type == type)
            return &msgs[i];
    return NULL;
}
