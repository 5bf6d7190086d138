/* main.c - cove-helper: works on files inside a sandbox, one process per call.
 *
 * EXTEND  Another call: a row here, and a file in the folder of its kind. */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/own.h"
#include "helper/archive/layer.h"
#include "helper/archive/pack.h"
#include "helper/archive/put.h"
#include "helper/call/call.h"
#include "helper/call/names.h"
#include "helper/call/record.h"
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

/* The arguments are those after the name. */
static const struct {
    const char *name;
    int (*answer)(const struct args *a, struct file_done *done, struct err *e); /* in records */
    int (*run)(int argc, char **argv); /* or in its own way; returns the exit status */
} calls[] = {
    /* clang-format off */
    {"chmod",   file_chmod,   NULL},
    {"chown",   file_chown,   NULL},
    {"copy",    file_copy,    NULL},
    {"export",  NULL,         export_main},
    {"import",  NULL,         run_import},
    {"layer-list", NULL,      layer_list_main},
    {"layer-pack", NULL,      layer_pack_main},
    {"layer-put", NULL,       layer_put_main},
    {"list",    file_list,    NULL},
    {"mkdir",   file_mkdir,   NULL},
    {"move",    file_move,    NULL},
    {"pack",    NULL,         pack_main},
    {"read",    NULL,         read_main},
    {"remove",  file_remove,  NULL},
    {"search",  file_search,  NULL},
    {"stat",    file_stat,    NULL},
    {"symlink", file_symlink, NULL},
    {"unpack",  NULL,         put_main},
    {"watch",   NULL,         watch_main},
    {"write",   file_write,   NULL},
    {"xattrs",  file_xattrs,  NULL},
    /* clang-format on */
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
            return calls[i].run != NULL ? calls[i].run(argc - 2, argv + 2)
                                        : record_run(calls[i].answer, argc - 2, argv + 2);
    fputs("cove-helper is only called by cove-init\n", stderr);
    return 64;
}
