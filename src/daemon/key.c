/* key.c - see key.h. */
#include "daemon/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"

#define KEY_PREFIX "e2b_" /* front/auth/auth.h says why */
#define KEY_RANDOM 20     /* bytes, shown as hexadecimal digits */

static int make_key(int dir, struct err *e)
{
    char text[sizeof(KEY_PREFIX) + 2 * KEY_RANDOM + 2] = KEY_PREFIX;
    unsigned char random[KEY_RANDOM];
    autofd int fd = openat(dir, "api-key.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t n;

    id_bytes(random, sizeof(random));
    str_hex(text + strlen(KEY_PREFIX), random, sizeof(random));
    strcat(text, "\n");
    n = strlen(text);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n || fsync(fd) < 0 ||
        renameat(dir, "api-key.new", dir, "api-key") < 0)
        return err_sys(e, "write DIR/api-key");
    return 0;
}

int key_open(int dir, char hash[KEY_HASH], struct err *e)
{
    struct sha256 sum;
    autofd int fd = -1;
    char text[256];
    ssize_t n;

    if (faccessat(dir, "api-key", F_OK, 0) < 0 && make_key(dir, e) < 0)
        return -1;
    fd = openat(dir, "api-key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return err_sys(e, "read DIR/api-key");
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (strlen(text) < 16)
        return err_set(e, ERR_INVALID, "DIR/api-key does not hold a key of at least 16 characters");
    sha256_init(&sum);
    sha256_add(&sum, text, strlen(text));
    sha256_hex(&sum, hash);
    explicit_bzero(text, sizeof(text));
    return 0;
}
