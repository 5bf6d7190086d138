/* stat.c - the entry of one path, for paths that init does not stat itself. */
#include <fcntl.h>
#include <stdio.h>

#include "base/own.h"
#include "helper/call/call.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/tree/where.h"

static int look(const struct args *a, struct err *e)
{
    char path[PATH_ROOM];
    autofd int fd = -1;

    record_also(a);
    if (where_path(args_get(a, "path"), path, e) < 0)
        return -1;
    if (!args_has(a, "follow"))
        return record_entry_at(AT_FDCWD, path, path, e);
    fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? err_path(e, "%.200s", path) : record_entry_of(fd, path, e);
}

int stat_main(int argc, char **argv)
{
    struct args a = {argc, argv};
    struct err e;

    if (look(&a, &e) < 0)
        return say_failed(stderr, &e);
    return record_done(&(struct file_done){.count = 1});
}
