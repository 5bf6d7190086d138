/* image.c - see image.h. */
#include "wire/image.h"

#include <string.h>

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

int image_check_name(const char *name, struct err *e)
{
    size_t n = strspn(name, NAME_CHARS);

    if (n == 0 || name[n] != '\0' || n >= IMAGE_NAME || strchr("._-", name[0]) != NULL)
        return err_set(
            e, ERR_INVALID,
            "a template's name has 1 to %u letters, digits, '.', '_' and '-', and begins "
            "with a letter or digit",
            IMAGE_NAME - 1);
    if (strcmp(name, "base") == 0)
        return err_set(e, ERR_CONFLICT, "'base' is made from this host; it can only be refreshed");
    return 0;
}
