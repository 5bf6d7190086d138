/* test_init_write.c - small files that init writes, while directories of the path are moved. */
#include "unit.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/own.h"
#include "init/files/file.h"
#include "wire/file.h"

#define TRIES 5000

static char dir[] = "/tmp/cove-unit-write-XXXXXX";
static int root = -1;
static atomic_bool stop;

static void make(const char *name)
{
    autofd int fd = openat(root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
}

static bool exists(const char *name)
{
    return faccessat(root, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void *swap(void *arg)
{
    (void)arg;
    while (!stop)
        syscall(SYS_renameat2, root, "d", root, "link", RENAME_EXCHANGE);
    return NULL;
}

/* With a label that no filesystem takes, so that it fails when the file is there. */
static int write_in_vain(void)
{
    static char label[300], lines[sizeof(label) + 4];
    static struct file_answer answer;
    struct init_write m = {.path = "/d/f",
                           .user = "0",
                           .flags = INIT_WRITE_ROOT,
                           .mode = FILE_MODE_NONE,
                           .data = {"new", 3},
                           .xattr_prefix = "user.",
                           .xattrs = lines};
    struct err e;

    memset(label, 'n', sizeof(label) - 1);
    snprintf(lines, sizeof(lines), "%s=v\n", label);
    return file_write(root, &m, &answer, &e);
}

TEST(only_the_incomplete_file_is_removed_also_when_directories_are_swapped)
{
    pthread_t t;

    CHECK(mkdtemp(dir) != NULL);
    root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(root >= 0);
    CHECK_INT(mkdirat(root, "d", 0755), 0);
    CHECK_INT(write_in_vain(), -1);
    CHECK(!exists("d/f"));
    CHECK_INT(mkdirat(root, "precious", 0755), 0);
    make("precious/f");
    CHECK_INT(symlinkat("precious", root, "link"), 0);
    CHECK_INT(pthread_create(&t, NULL, swap, NULL), 0);
    for (int i = 0; i < TRIES && exists("precious/f"); i++)
        write_in_vain();
    stop = true;
    pthread_join(t, NULL);
    CHECK(exists("precious/f"));
    if (unlinkat(root, "d", 0) < 0)
        CHECK_INT(unlinkat(root, "link", 0), 0);
    CHECK(!exists("d/f") && !exists("link/f"));
    if (unlinkat(root, "d", AT_REMOVEDIR) < 0)
        CHECK_INT(unlinkat(root, "link", AT_REMOVEDIR), 0);
    unlinkat(root, "precious/f", 0);
    unlinkat(root, "precious", AT_REMOVEDIR);
    drop_fd(&root);
    CHECK_INT(rmdir(dir), 0);
}
