/* token.c - see token.h. */
#include "front/auth/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

#define TOKEN_FILE_NEW TOKEN_FILE ".new"
#define TOKEN_TEXT_MAX 128

struct token_mint {
    unsigned char secret[TOKEN_SECRET];
};

static const char *const kinds[TOKEN_KIND_COUNT] = {
    [TOKEN_ENVD] = "envd", [TOKEN_TRAFFIC] = "traffic"};

static int make(int dir_fd, struct err *e)
{
    unsigned char secret[TOKEN_SECRET];
    autofd int fd =
        openat(dir_fd, TOKEN_FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t n;

    id_bytes(secret, sizeof(secret));
    n = fd < 0 ? -1 : write(fd, secret, sizeof(secret));
    OPENSSL_cleanse(secret, sizeof(secret));
    if (n != (ssize_t)sizeof(secret) || fsync(fd) < 0 ||
        renameat(dir_fd, TOKEN_FILE_NEW, dir_fd, TOKEN_FILE) < 0 || fsync(dir_fd) < 0)
        return err_sys(e, "make " TOKEN_FILE);
    return 0;
}

/* One byte more than wanted, so that a longer file is seen. */
static int take(int fd, struct token_mint *m, struct err *e)
{
    unsigned char bytes[TOKEN_SECRET + 1];
    ssize_t n = read(fd, bytes, sizeof(bytes));

    if (n < 0)
        return err_sys(e, "read " TOKEN_FILE);
    if (n != TOKEN_SECRET)
        return err_set(e, ERR_INTERNAL, TOKEN_FILE " does not hold %d bytes", TOKEN_SECRET);
    memcpy(m->secret, bytes, TOKEN_SECRET);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return 0;
}

int token_open(int dir_fd, struct token_mint **ret, struct err *e)
{
    autofree struct token_mint *m = mem_zeroed(1, sizeof(*m));
    autofd int fd = -1;

    if (faccessat(dir_fd, TOKEN_FILE, F_OK, 0) < 0 && make(dir_fd, e) < 0)
        return err_wrap(e, "tokens");
    fd = openat(dir_fd, TOKEN_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        err_sys(e, "open " TOKEN_FILE);
    if (fd < 0 || take(fd, m, e) < 0)
        return err_wrap(e, "tokens");
    *ret = take_ptr(&m);
    return 0;
}

void token_free(struct token_mint *m)
{
    if (m != NULL)
        OPENSSL_cleanse(m, sizeof(*m));
    free(m);
}

void token_make(const struct token_mint *m, enum token_kind kind, const char *sandbox,
                char out[TOKEN_SIZE])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    char text[TOKEN_TEXT_MAX];

    str_fmt(text, sizeof(text), "%s:%s", kinds[kind], sandbox);
    if (HMAC(EVP_sha256(), m->secret, TOKEN_SECRET, (const unsigned char *)text, strlen(text), mac,
             NULL) == NULL)
        abort(); /* no SHA-256: nothing here is safe any more */
    str_hex(out, mac, (TOKEN_SIZE - 1) / 2);
}

bool token_is(const struct token_mint *m, enum token_kind kind, const char *sandbox,
              const char *presented)
{
    char want[TOKEN_SIZE];

    if (presented == NULL || strlen(presented) != TOKEN_SIZE - 1)
        return false;
    token_make(m, kind, sandbox, want);
    return CRYPTO_memcmp(want, presented, TOKEN_SIZE - 1) == 0;
}
