/* script.c - see script.h. */
#include "init/session/script.h"

#include <string.h>

#include "shell/call.h"

/* A bash that cannot load the builtin comes to the end of the script, and exits. */
void script_begin(struct buf *out, const char *dir)
{
    buf_adds(out, "\\builtin shopt -s expand_aliases; "
                  "\\builtin enable -f " SHELL_OBJECT " " SHELL_BUILTIN "; "
                  "\\builtin " SHELL_BUILTIN " ");
    buf_adds(out, dir);
    buf_addc(out, '\n');
}

void script_quote(struct buf *out, const char *p, size_t n)
{
    buf_addc(out, '\'');
    while (n > 0) {
        const char *q = memchr(p, '\'', n);
        size_t len = q != NULL ? (size_t)(q - p) : n;

        buf_add(out, p, len);
        if (q == NULL)
            break;
        buf_adds(out, "'\\''");
        p = q + 1;
        n -= len + 1;
    }
    buf_addc(out, '\'');
}

bool script_is_variable(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strspn(s, letters);

    return n > 0 && (s[0] < '0' || s[0] > '9') && s[n] == '=';
}

void script_env(struct buf *out, const struct wire_strv *env)
{
    uint32_t at = 0;
    const char *s;

    while ((s = wire_strv_next(env, &at)) != NULL) {
        const char *eq = strchr(s, '=') + 1;

        buf_add(out, s, (size_t)(eq - s));
        script_quote(out, eq, strlen(eq));
        buf_addc(out, '\0');
    }
}
