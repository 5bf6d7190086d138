/* chunks.c - see chunks.h. */
#include "helper/archive/chunks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/own.h"

#define LEVEL 3      /* zstd's own default */
#define CUT_SHIFT 42 /* a cut is where the upper 22 bits are 0: after 4 MiB on average */

struct chunks {
    enum archive_frame kind;
    ZSTD_CCtx *zstd;
    uint64_t gear[256], hash;
    size_t len, room;
    char *out;
    char raw[ARCHIVE_CHUNK_MAX];
};

/* splitmix64 from a fixed seed: another table would cut elsewhere, and share no chunk with older
 * archives. */
static void make_gear(uint64_t gear[256])
{
    uint64_t x = 0x636f7665;

    for (int i = 0; i < 256; i++) {
        uint64_t z = x += 0x9e3779b97f4a7c15ull;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        gear[i] = z ^ (z >> 31);
    }
}

struct chunks *chunks_new(enum archive_frame kind, struct err *e)
{
    struct chunks *c = malloc(sizeof(*c));

    if (c == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    c->kind = kind;
    c->len = 0;
    c->hash = 0;
    c->room = ZSTD_compressBound(ARCHIVE_CHUNK_MAX);
    c->out = malloc(c->room);
    c->zstd = ZSTD_createCCtx();
    make_gear(c->gear);
    if (c->out == NULL || c->zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1))) {
        err_set(e, ERR_INTERNAL, "out of memory");
        chunks_free(c);
        return NULL;
    }
    return c;
}

void chunks_free(struct chunks *c)
{
    if (c == NULL)
        return;
    ZSTD_freeCCtx(c->zstd);
    free(c->out);
    free(c);
}

static int write_all(const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t w = write(STDOUT_FILENO, p, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return err_sys(e, "write the archive");
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

int frame_write(enum archive_frame kind, const void *p, size_t n, struct err *e)
{
    char head[ARCHIVE_FRAME_HEAD] = {(char)kind, (char)(n & 0xff), (char)(n >> 8 & 0xff),
                                     (char)(n >> 16 & 0xff), (char)(n >> 24 & 0xff)};

    return write_all(head, sizeof(head), e) < 0 ? -1 : write_all(p, n, e);
}

static int flush(struct chunks *c, struct err *e)
{
    size_t n = ZSTD_compress2(c->zstd, c->out, c->room, c->raw, c->len);

    c->len = 0;
    c->hash = 0;
    if (ZSTD_isError(n))
        return err_set(e, ERR_INTERNAL, "zstd: %s", ZSTD_getErrorName(n));
    return frame_write(c->kind, c->out, n, e);
}

/* How many of these bytes belong to the chunk; *cut: it ends after them. */
static size_t take(struct chunks *c, const unsigned char *p, size_t n, bool *cut)
{
    size_t i = c->len < ARCHIVE_CHUNK_MIN ? ARCHIVE_CHUNK_MIN - c->len : 0;

    n = n < ARCHIVE_CHUNK_MAX - c->len ? n : ARCHIVE_CHUNK_MAX - c->len;
    for (*cut = false; i < n && !*cut; i++) {
        c->hash = (c->hash << 1) + c->gear[p[i]];
        *cut = c->hash >> CUT_SHIFT == 0;
    }
    i = i < n ? i : n;
    *cut = *cut || c->len + i == ARCHIVE_CHUNK_MAX;
    return i;
}

int chunks_add(struct chunks *c, const void *from, size_t n, struct err *e)
{
    const unsigned char *p = from;
    bool cut;

    while (n > 0) {
        size_t some = take(c, p, n, &cut);

        memcpy(c->raw + c->len, p, some);
        c->len += some;
        p += some;
        n -= some;
        if (cut && flush(c, e) < 0)
            return -1;
    }
    return 0;
}

int chunks_end(struct chunks *c, struct err *e)
{
    return c->len > 0 ? flush(c, e) : 0;
}
