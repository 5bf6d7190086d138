/* tar_of.h - makes archives in memory, for tests. */
#ifndef TAR_OF_H
#define TAR_OF_H

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/archive/source.h"

#define TAR_ROOM (4u << 20)

static struct {
    struct archive *a;
    struct archive_entry *en;
    char *mem;
    size_t len;
} tar_new;

static void tar_begin_as(int (*format)(struct archive *a))
{
    tar_new.a = archive_write_new();
    tar_new.en = archive_entry_new();
    tar_new.mem = malloc(TAR_ROOM);
    CHECK_INT(format(tar_new.a), ARCHIVE_OK);
    archive_write_set_options(tar_new.a, "xattrheader=SCHILY"); /* of those that have any */
    CHECK_INT(archive_write_open_memory(tar_new.a, tar_new.mem, TAR_ROOM, &tar_new.len),
              ARCHIVE_OK);
}

static void tar_begin(void)
{
    tar_begin_as(archive_write_set_format_pax_restricted);
}

/* Starts an entry: an empty file that belongs to root. Set more before tar_put(). */
static struct archive_entry *tar_file(const char *name)
{
    archive_entry_clear(tar_new.en);
    archive_entry_set_pathname(tar_new.en, name);
    archive_entry_set_filetype(tar_new.en, AE_IFREG);
    archive_entry_set_perm(tar_new.en, 0644);
    archive_entry_set_size(tar_new.en, 0);
    return tar_new.en;
}

static void tar_put(void)
{
    CHECK_INT(archive_write_header(tar_new.a, tar_new.en), ARCHIVE_OK);
}

/* The archive as a file to read; the caller closes it. */
static int tar_end(void)
{
    int fd = memfd_create("tar", MFD_CLOEXEC);

    CHECK_INT(archive_write_close(tar_new.a), ARCHIVE_OK);
    CHECK(write(fd, tar_new.mem, tar_new.len) == (ssize_t)tar_new.len);
    CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
    archive_write_free(tar_new.a);
    archive_entry_free(tar_new.en);
    free(tar_new.mem);
    return fd;
}

/* ---- where it goes ---- */

static char tar_top[32];

static int tar_dir(void)
{
    strcpy(tar_top, "/tmp/cove-unit-XXXXXX");
    CHECK(mkdtemp(tar_top) != NULL);
    return open(tar_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int tar_gone(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void tar_clean(int dir)
{
    close(dir);
    CHECK_INT(nftw(tar_top, tar_gone, 64, FTW_DEPTH | FTW_PHYS), 0);
}

static bool tar_has(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

#endif
