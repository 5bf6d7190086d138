/* main.c - cove-helper: work on trees inside a sandbox, one call per process.
 *
 * EXTEND  Another kind of work: a row here and a file that does it. */
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/own.h"
#include "helper/args.h"
#include "helper/export.h"
#include "helper/files.h"
#include "helper/import.h"
#include "helper/names.h"
#include "helper/pack.h"
#include "helper/place.h"
#include "helper/say.h"
#include "helper/watch.h"

static int run_import(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return import_main("/");
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* what follows the name; the exit status */
} works[] = {
    {"chmod", chmod_main},   {"chown", chown_main},     {"copy", copy_main},
    {"export", export_main}, {"import", run_import},    {"list", list_main},
    {"mkdir", mkdir_main},   {"move", move_main},       {"pack", pack_main},
    {"read", read_main},     {"remove", remove_main},   {"search", search_main},
    {"stat", stat_main},     {"symlink", symlink_main}, {"unpack", place_main},
    {"watch", watch_main},   {"write", write_main},     {"xattrs", xattrs_main},
};

/* With root's power, for somebody else: whose home "~" is. */
static int look_for(int argc, char **argv)
{
    const char *user = args_get(&(struct args){argc, argv}, "for");
    struct err e;

    return user == NULL || names_take_home(user, &e) == 0 ? 0 : say_failed(stderr, &e);
}

static int run(int (*work)(int argc, char **argv), int argc, char **argv)
{
    int status = look_for(argc, argv);

    return status != 0 ? status : work(argc, argv);
}

int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, "cove-helper"); /* executed from an fd it would be named after that */
    /* glibc's own, needs no file: libarchive converts names from UTF-8 to this. */
    setlocale(LC_ALL, "C.UTF-8");
    for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(works); i++)
        if (strcmp(works[i].name, argv[1]) == 0)
            return run(works[i].run, argc - 2, argv + 2);
    fputs("cove-helper: called by cove-init only\n", stderr);
    return 64;
}
