/* proto.c - see proto.h. */
#include "front/planes/e2b/proto.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"

int proto_bytes(json_t *v, struct buf *out, struct err *e)
{
    size_t n = json_string_length(v), pad;
    autobuf struct buf text = BUF_INIT(n + 4);
    const char *s = json_string_value(v);

    while (n > 0 && s[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++)
        buf_addc(&text, s[i] == '-' ? '+' : s[i] == '_' ? '/' : s[i]);
    pad = (4 - n % 4) % 4;
    buf_add(&text, "===", pad);
    if (!json_is_string(v) || pad == 3 || str_unbase64(out, buf_cstr(&text), text.len) < 0)
        return err_set(e, ERR_INVALID, "expected bytes in base64");
    return 0;
}

int proto_enum(const char *field, json_t *v, const struct proto_enum *table, size_t n, int *ret,
               struct err *e)
{
    const char *name = json_string_value(v);

    for (size_t i = 0; i < n; i++) {
        if (name != NULL ? strcmp(name, table[i].name) != 0
                         : !json_is_integer(v) || json_integer_value(v) != table[i].value)
            continue;
        *ret = table[i].value;
        return 0;
    }
    return err_set(e, ERR_INVALID, "%s: unknown value", field);
}
