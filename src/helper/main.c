/* main.c - cove-helper: works on files inside a sandbox, one process per call.
 *
 * EXTEND  Another call: a row here, and a file in the folder of its kind. */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/own.h"
#include "helper/archive/pack.h"
#include "helper/archive/put.h"
#include "helper/call/call.h"
#include "helper/call/names.h"
#include "helper/files/files.h"
#include "helper/image/export.h"
#include "helper/image/import.h"
#include "helper/watch/watch.h"

static int run_import(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return import_main("/");
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* the arguments after the name; returns the exit status */
} calls[] = {
    {"chmod", chmod_main},   {"chown", chown_main},     {"copy", copy_main},
    {"export", export_main}, {"import", run_import},    {"list", list_main},
    {"mkdir", mkdir_main},   {"move", move_main},       {"pack", pack_main},
    {"read", read_main},     {"remove", remove_main},   {"search", search_main},
    {"stat", stat_main},     {"symlink", symlink_main}, {"unpack", put_main},
    {"watch", watch_main},   {"write", write_main},     {"xattrs", xattrs_main},
};

int main(int argc, char **argv)
{
    const char *user = args_get(&(struct args){argc, argv}, "for");
    struct err e;

    prctl(PR_SET_NAME, "cove-helper"); /* executed from an fd, its name would be the fd's */
    /* built into glibc, needs no file; libarchive converts names from UTF-8 to this charset */
    setlocale(LC_ALL, "C.UTF-8");
    /* as root on behalf of a user: "~" is the home of that user */
    if (user != NULL && names_take_home(user, &e) < 0)
        return say_failed(stderr, &e);
    for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].name, argv[1]) == 0)
            return calls[i].run(argc - 2, argv + 2);
    fputs("cove-helper is only called by cove-init\n", stderr);
    return 64;
}
