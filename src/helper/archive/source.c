/* source.c - see source.h. */
#include "helper/archive/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/own.h"

#define SOURCE_IN (128u << 10)
#define SOURCE_MAGIC 4u       /* bytes needed to recognize the compression */
#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, gzip format only */

struct source {
    int fd;
    const volatile sig_atomic_t *stop;
    const struct way *way;
    unsigned char in[SOURCE_IN];
    size_t at, end; /* the unused bytes of `in` */
    bool eof;       /* of the fd */
    bool unhashed;
    bool eats;
    unsigned long long eaten;
    void (*on_read)(void *arg); /* or NULL */
    void *arg;
    bool whole; /* between two members (gzip) or frames (zstd) */
    unsigned long long done;
    size_t zeros;
    z_stream gzip;
    ZSTD_DStream *zstd;
    struct sha256 stored, plain;
};

/* One kind of compression. `step` consumes bytes of `in` and fills `to`. */
struct way {
    const char *name;
    unsigned char magic[SOURCE_MAGIC];
    size_t nmagic;
    int (*open)(struct source *s, struct err *e);
    ssize_t (*step)(struct source *s, void *to, size_t n, struct err *e);
};

/* The offset of the fd is `done`: a file that is eaten is read from its start. */
static void eat(struct source *s)
{
    if (s->done - s->eaten < SOURCE_PIECE && !s->eof)
        return;
    fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->eaten,
              (off_t)(s->done - s->eaten));
    s->eaten = s->done;
}

/* Reads until `want` bytes are there, or end of file. */
static int fill(struct source *s, size_t want, struct err *e)
{
    while (!s->eof && s->end - s->at < want) {
        ssize_t n;

        memmove(s->in, s->in + s->at, s->end - s->at);
        s->end -= s->at;
        s->at = 0;
        n = read(s->fd, s->in + s->end, sizeof(s->in) - s->end);
        if (s->stop != NULL && *s->stop != 0)
            return err_set(e, ERR_GONE, "the client went away");
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read the archive");
        if (!s->unhashed)
            sha256_add(&s->stored, s->in + s->end, (size_t)n);
        s->end += (size_t)n;
        s->eof = n == 0;
        s->done += (size_t)n;
        if (s->eats)
            eat(s);
        if (s->on_read != NULL)
            s->on_read(s->arg);
    }
    return 0;
}

/* ---- plain ---- */

static int plain_open(struct source *s, struct err *e)
{
    (void)e;
    s->whole = true;
    return 0;
}

static ssize_t plain_step(struct source *s, void *to, size_t n, struct err *e)
{
    size_t have = s->end - s->at;

    (void)e;
    n = n < have ? n : have;
    memcpy(to, s->in + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

/* ---- gzip ---- */

static int gzip_open(struct source *s, struct err *e)
{
    if (inflateInit2(&s->gzip, GZIP_WINDOW) != Z_OK)
        return err_set(e, ERR_INTERNAL, "gzip: out of memory");
    return 0;
}

static ssize_t gzip_step(struct source *s, void *to, size_t n, struct err *e)
{
    int r;

    if (s->whole)
        inflateReset(&s->gzip);
    s->gzip.next_in = s->in + s->at;
    s->gzip.avail_in = (uInt)(s->end - s->at);
    s->gzip.next_out = to;
    s->gzip.avail_out = (uInt)n;
    r = inflate(&s->gzip, Z_NO_FLUSH);
    s->at = s->end - s->gzip.avail_in;
    s->whole = r == Z_STREAM_END;
    if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR)
        return (ssize_t)(n - s->gzip.avail_out);
    if (r == Z_MEM_ERROR)
        return err_set(e, ERR_INTERNAL, "gzip: out of memory");
    return err_set(e, ERR_INVALID, "gzip: the data is damaged");
}

/* ---- zstd ---- */

static int zstd_open(struct source *s, struct err *e)
{
    s->zstd = ZSTD_createDStream();
    return s->zstd == NULL ? err_set(e, ERR_INTERNAL, "zstd: out of memory") : 0;
}

static ssize_t zstd_step(struct source *s, void *to, size_t n, struct err *e)
{
    ZSTD_inBuffer in = {s->in, s->end, s->at};
    ZSTD_outBuffer out = {to, n, 0};
    size_t r = ZSTD_decompressStream(s->zstd, &out, &in);

    s->at = in.pos;
    if (ZSTD_isError(r))
        return err_set(e, ERR_INVALID, "zstd: %s", ZSTD_getErrorName(r));
    s->whole = r == 0;
    return (ssize_t)out.pos;
}

/* The last one matches everything. */
/* clang-format off */
static const struct way ways[] = {
    {"gzip",  {0x1f, 0x8b},             2, gzip_open,  gzip_step},
    {"zstd",  {0x28, 0xb5, 0x2f, 0xfd}, 4, zstd_open,  zstd_step},
    {"plain", {0},                      0, plain_open, plain_step},
};
/* clang-format on */

static const struct way *way_of(const struct source *s)
{
    const struct way *w = ways;

    while (s->end - s->at < w->nmagic || memcmp(s->in + s->at, w->magic, w->nmagic) != 0)
        w++;
    return w;
}

struct source *source_open(int fd, const volatile sig_atomic_t *stop, struct err *e)
{
    struct source *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    s->fd = fd;
    s->stop = stop;
    sha256_init(&s->stored);
    sha256_init(&s->plain);
    if (fill(s, SOURCE_MAGIC, e) == 0) {
        s->way = way_of(s);
        if (s->way->open(s, e) == 0)
            return s;
    }
    free(s);
    return NULL;
}

void source_no_digests(struct source *s)
{
    s->unhashed = true;
}

void source_eat(struct source *s)
{
    s->eats = true;
}

void source_watch(struct source *s, void (*on_read)(void *arg), void *arg)
{
    s->on_read = on_read;
    s->arg = arg;
}

void source_close(struct source *s)
{
    if (s == NULL)
        return;
    if (s->way->open == gzip_open)
        inflateEnd(&s->gzip);
    ZSTD_freeDStream(s->zstd);
    free(s);
}

void source_drop(struct source **s)
{
    source_close(*s);
}

static void count_zeros(struct source *s, const char *p, size_t n)
{
    size_t zeros = 0;

    while (zeros < n && p[n - 1 - zeros] == '\0')
        zeros++;
    s->zeros = zeros == n ? s->zeros + n : zeros;
}

ssize_t source_read(struct source *s, void *to, size_t n, struct err *e)
{
    ssize_t got = 0;

    while (got == 0 && n > 0) {
        if (fill(s, s->whole ? SOURCE_MAGIC : 1, e) < 0)
            return -1;
        if (s->eof && s->at == s->end && s->whole)
            return 0;
        if (s->whole && s->way->nmagic > 0 && way_of(s) != s->way)
            return err_set(e, ERR_INVALID, "%s: there are bytes after its end", s->way->name);
        got = s->way->step(s, to, n, e);
        if (got < 0)
            return -1;
        if (got == 0 && s->eof && s->at == s->end && !s->whole)
            return err_set(e, ERR_INVALID, "%s: it ends too early", s->way->name);
    }
    if (!s->unhashed)
        sha256_add(&s->plain, to, (size_t)got);
    count_zeros(s, to, (size_t)got);
    return got;
}

int source_finish(struct source *s, struct err *e)
{
    char rest[16384];
    ssize_t n;

    while ((n = source_read(s, rest, sizeof(rest), e)) > 0)
        continue;
    return n < 0 ? -1 : 0;
}

void source_digests(struct source *s, char stored[SHA256_HEX], char plain[SHA256_HEX])
{
    sha256_hex(&s->stored, stored);
    sha256_hex(&s->plain, plain);
}

unsigned long long source_done(const struct source *s)
{
    return s->done;
}

size_t source_zeros(const struct source *s)
{
    return s->zeros;
}
