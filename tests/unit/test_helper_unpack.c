#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "helper/archive/dirs.h"
#include "helper/archive/source.h"
#include "helper/archive/tar.h"

/* ---- sources ---- */

static int file_of(const void *p, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    CHECK(write(fd, p, n) == (ssize_t)n);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static size_t gzip_of(const void *p, size_t n, unsigned char *out, size_t room)
{
    z_stream z = {0};

    CHECK(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)p;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)room;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static ssize_t read_all(int fd, char *to, size_t room, struct err *e)
{
    struct source *s = source_open(fd, NULL, e);
    size_t len = 0;
    ssize_t n = 0;

    CHECK(s != NULL);
    while (len < room && (n = source_read(s, to + len, room - len, e)) > 0)
        len += (size_t)n;
    source_close(s);
    close(fd);
    return n < 0 ? -1 : (ssize_t)len;
}

TEST(uncompressed_bytes_are_unchanged)
{
    char got[64];
    struct err e;

    CHECK_INT(read_all(file_of("hello", 5), got, sizeof(got), &e), 5);
    CHECK(memcmp(got, "hello", 5) == 0);
    CHECK_INT(read_all(file_of("", 0), got, sizeof(got), &e), 0);
    CHECK_INT(read_all(file_of("\x1f", 1), got, sizeof(got), &e), 1);
}

TEST(gzip_with_several_members_is_decompressed)
{
    unsigned char packed[256];
    size_t n = gzip_of("hello ", 6, packed, sizeof(packed));
    char got[64];
    struct err e;

    CHECK_INT(read_all(file_of(packed, n), got, sizeof(got), &e), 6);
    n += gzip_of("world", 5, packed + n, sizeof(packed) - n);
    CHECK_INT(read_all(file_of(packed, n), got, sizeof(got), &e), 11);
    CHECK(memcmp(got, "hello world", 11) == 0);
}

TEST(truncated_input_and_trailing_bytes_are_errors)
{
    unsigned char packed[256];
    size_t n = gzip_of("hello", 5, packed, sizeof(packed));
    char got[64];
    struct err e;

    CHECK_INT(read_all(file_of(packed, n - 3), got, sizeof(got), &e), -1);
    CHECK_HAS(e.msg, "ends too early");
    packed[n] = 'x';
    CHECK_INT(read_all(file_of(packed, n + 1), got, sizeof(got), &e), -1);
    CHECK_HAS(e.msg, "bytes after its end");
    packed[n / 2] ^= 0xff;
    CHECK_INT(read_all(file_of(packed, n), got, sizeof(got), &e), -1);
}

TEST(both_digests_cover_all_bytes)
{
    unsigned char packed[256];
    size_t n = gzip_of("abc", 3, packed, sizeof(packed));
    char stored[SHA256_HEX], plain[SHA256_HEX], want[SHA256_HEX];
    int fd = file_of(packed, n);
    struct sha256 h;
    struct err e;
    struct source *s = source_open(fd, NULL, &e);

    CHECK_INT(source_finish(s, &e), 0);
    source_digests(s, stored, plain);
    CHECK_STR(plain, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_init(&h);
    sha256_add(&h, packed, n);
    sha256_hex(&h, want);
    CHECK_STR(stored, want);
    CHECK_INT(source_done(s), n);
    source_close(s);
    close(fd);
}

/* ---- tar ---- */

TEST(a_tar_without_end_mark_is_refused)
{
    static char block[1024];
    static struct tar t;
    struct archive_entry *en;
    struct err e;
    int fd = file_of(block, 512);
    struct source *s = source_open(fd, NULL, &e);

    if (tar_open(&t, s, &e) == 0) {
        CHECK_INT(tar_next(&t, &en, &e), -1);
        tar_close(&t);
    }
    source_close(s);
    close(fd);
    fd = file_of(block, 1024);
    s = source_open(fd, NULL, &e);
    CHECK_INT(tar_open(&t, s, &e), 0);
    CHECK_INT(tar_next(&t, &en, &e), 0);
    tar_close(&t);
    source_close(s);
    close(fd);
}

/* ---- directories ---- */

TEST(memory_for_directories_is_limited)
{
    struct timespec then = {0};
    struct dirs d;
    struct err e;
    int r = 0;

    dirs_init(&d, 4096);
    for (int i = 0; i < 4096 && r == 0; i++)
        r = dirs_note(&d, "a/directory", 0755, &then, &e);
    CHECK_INT(r, -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    dirs_free(&d);
}
