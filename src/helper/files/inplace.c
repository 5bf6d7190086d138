/* inplace.c - see inplace.h. */
#include "helper/files/inplace.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

#define BLOCK 4096u /* the unit in which extents are shared */
#define PIECE (256u << 10)
#define PIECE_KERNEL (1u << 30) /* one copy_file_range */

static int put_at(int fd, const char *p, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t w = pwrite(fd, p, n, at);

        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            errno = w == 0 ? ENOSPC : errno;
            return -1;
        }
        p += w;
        n -= (size_t)w;
        at += w;
    }
    return 0;
}

/* Copies [0, end): in the kernel, or where it cannot between these two files, through memory. */
static int copy(int from, int to, off_t end)
{
    static char piece[PIECE];
    off_t at = 0, out = 0;

    while (at < end) {
        size_t want = end - at < (off_t)PIECE_KERNEL ? (size_t)(end - at) : PIECE_KERNEL;
        ssize_t n = copy_file_range(from, &at, to, &out, want, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            return -1;
        if (n <= 0)
            break;
    }
    while (at < end) {
        size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
        ssize_t n = pread(from, piece, want, at);

        if (n <= 0 || put_at(to, piece, (size_t)n, at) < 0)
            return -1;
        at += n;
    }
    return 0;
}

/* The target is longer: the last, partial block cannot be shared. It is written first, which
 * is all or nothing, and restored if sharing the rest fails. */
static int share_over_longer(int from, int to, off_t size)
{
    size_t tail = (size_t)(size % (off_t)BLOCK);
    struct file_clone_range r = {.src_fd = from, .src_length = (uint64_t)size - tail};
    char was[BLOCK], is[BLOCK];
    off_t at = size - (off_t)tail;
    int saved;

    if (tail > 0 &&
        (pread(to, was, tail, at) != (ssize_t)tail || pread(from, is, tail, at) != (ssize_t)tail))
        return -1;
    if (put_at(to, is, tail, at) < 0)
        return -1;
    if (r.src_length == 0 || ioctl(to, FICLONERANGE, &r) == 0)
        return ftruncate(to, size);
    saved = errno;
    put_at(to, was, tail, at);
    errno = saved;
    return -1;
}

static int reserve(int to, off_t at, off_t size)
{
    if (fallocate(to, FALLOC_FL_KEEP_SIZE, at, size) == 0)
        return 0;
    return errno == ENOSPC || errno == EDQUOT ? -1 : 0;
}

int inplace_replace(int from, int to)
{
    struct stat is, was;

    if (fstat(from, &is) < 0 || fstat(to, &was) < 0)
        return -1;
    if ((is.st_size == 0             ? ftruncate(to, 0)
         : was.st_size <= is.st_size ? ioctl(to, FICLONE, from)
                                     : share_over_longer(from, to, is.st_size)) == 0)
        return 0;
    if (errno == ENOSPC || errno == EDQUOT || reserve(to, 0, is.st_size) < 0)
        return -1;
    return copy(from, to, is.st_size) < 0 ? -1 : ftruncate(to, is.st_size);
}

/* One write with O_APPEND is atomic against other appending processes (up to 2 GiB). Space is
 * reserved first: on a full disk a partial write could not be undone, since truncating a
 * shared block needs a new one. */
int inplace_append(int from, int to)
{
    struct stat is, was;
    size_t size, done = 0;
    ssize_t n = 0;
    char *all;
    off_t end;
    int saved;

    if (fstat(from, &is) < 0 || fstat(to, &was) < 0 || fcntl(to, F_SETFL, O_APPEND) < 0)
        return -1;
    size = (size_t)is.st_size;
    if (size == 0)
        return 0;
    if (reserve(to, was.st_size, is.st_size) < 0)
        return -1;
    all = mmap(NULL, size, PROT_READ, MAP_SHARED, from, 0);
    if (all == MAP_FAILED)
        return -1;
    while (done < size && ((n = write(to, all + done, size - done)) > 0 || errno == EINTR))
        done += n > 0 ? (size_t)n : 0;
    saved = n == 0 ? ENOSPC : errno;
    munmap(all, size);
    if (done == size)
        return 0;
    /* take back the appended bytes, unless another process appended after them */
    end = lseek(to, 0, SEEK_CUR);
    if (done > 0 && end >= (off_t)done && fstat(to, &was) == 0 && was.st_size == end &&
        ftruncate(to, end - (off_t)done) < 0)
        saved = errno;
    errno = saved;
    return -1;
}
