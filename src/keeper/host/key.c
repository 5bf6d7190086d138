/* key.c - see key.h. */
#include "keeper/host/key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

#define KEY_PREFIX "e2b_" /* front/auth/auth.h says why */
#define KEY_RANDOM 20     /* bytes, shown as hexadecimal digits */

static int make_key(struct keeper *k, struct err *e)
{
    char text[sizeof(KEY_PREFIX) + 2 * KEY_RANDOM + 2] = KEY_PREFIX;
    unsigned char random[KEY_RANDOM];
    autofd int fd =
        openat(k->dir_fd, "api-key.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t n;

    id_bytes(random, sizeof(random));
    str_hex(text + strlen(KEY_PREFIX), random, sizeof(random));
    strcat(text, "\n");
    n = strlen(text);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n || fsync(fd) < 0 ||
        renameat(k->dir_fd, "api-key.new", k->dir_fd, "api-key") < 0)
        return err_sys(e, "write DIR/api-key");
    return 0;
}

int key_open(struct keeper *k, struct err *e)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    autofd int fd = -1;
    char text[256];
    ssize_t n;

    if (faccessat(k->dir_fd, "api-key", F_OK, 0) < 0 && make_key(k, e) < 0)
        return -1;
    fd = openat(k->dir_fd, "api-key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return err_sys(e, "read DIR/api-key");
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (strlen(text) < 16)
        return err_set(e, ERR_INVALID, "DIR/api-key does not hold a key of at least 16 characters");
    if (EVP_Digest(text, strlen(text), sum, NULL, EVP_sha256(), NULL) != 1)
        return err_set(e, ERR_INTERNAL, "hash the api key");
    str_hex(k->key_hash, sum, 32);
    explicit_bzero(text, sizeof(text));
    return 0;
}

const char *key_hash(const struct keeper *k)
{
    return k->key_hash;
}
