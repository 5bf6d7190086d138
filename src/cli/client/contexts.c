/* contexts.c - see contexts.h. */
#include "cli/client/contexts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "json/read.h"

#define FILE_BYTES_MAX (1u << 20)
#define PLACE_MAX 4096

/* The directory, made if `make`; then the file in it. */
static int place(char out[PLACE_MAX], bool make, struct err *e)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool own = config == NULL || *config != '/';
    int n;

    if (own && (home == NULL || *home != '/'))
        return err_set(e, ERR_INVALID, "contexts: HOME is not set; set HOME or XDG_CONFIG_HOME");
    n = snprintf(out, PLACE_MAX, "%s%s", own ? home : config, own ? "/.config" : "");
    if (n + 32 >= PLACE_MAX)
        return err_set(e, ERR_INVALID, "contexts: the path of the configuration is too long");
    if (make && mkdir(out, 0700) < 0 && errno != EEXIST)
        return err_path(e, "contexts: make %s", out);
    strcat(out, "/cove");
    if (make && mkdir(out, 0700) < 0 && errno != EEXIST)
        return err_path(e, "contexts: make %s", out);
    strcat(out, "/contexts.json");
    return 0;
}

int contexts_check_name(const char *name, struct err *e)
{
    static const char may[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(name);

    if (n > 0 && n <= CONTEXT_NAME_MAX && strspn(name, may) == n)
        return 0;
    return err_set(e, ERR_INVALID,
                   "context '%.80s': a name has 1 to %d letters, digits, '-', '_' and '.'", name,
                   CONTEXT_NAME_MAX);
}

int contexts_load(json_t **ret, struct err *e)
{
    char path[PLACE_MAX];
    autofd int fd = -1;
    json_error_t why;
    struct stat st;

    if (place(path, false, e) < 0)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        *ret = json_pack("{s:n,s:{}}", "current", "contexts");
        return *ret != NULL ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_path(e, "contexts: open %s", path);
    if ((st.st_mode & 077) != 0)
        return err_set(e, ERR_DENIED,
                       "contexts: others may read the keys in %s; `chmod 600 %s` mends that", path,
                       path);
    if (st.st_size > (off_t)FILE_BYTES_MAX)
        return err_set(e, ERR_TOO_LARGE, "contexts: %s is larger than %u bytes", path,
                       FILE_BYTES_MAX);
    *ret = json_loadfd(fd, 0, &why);
    if (*ret != NULL && json_is_object(json_object_get(*ret, "contexts")))
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return err_set(e, ERR_INVALID, "contexts: %s is damaged (%.80s); remove it and add them again",
                   path, why.text);
}

int contexts_save(json_t *all, struct err *e)
{
    char path[PLACE_MAX], temporary[PLACE_MAX + 16];
    autofd int fd = -1;

    if (json_object_size(json_object_get(all, "contexts")) > CONTEXTS_MAX)
        return err_set(e, ERR_LIMIT, "contexts: more than %d; remove one first", CONTEXTS_MAX);
    if (place(path, true, e) < 0)
        return -1;
    str_fmt(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid());
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_path(e, "contexts: create %s", temporary);
    if (json_dumpfd(all, fd, JSON_INDENT(2)) == 0 && fsync(fd) == 0 && rename(temporary, path) == 0)
        return 0;
    err_path(e, "contexts: write %s", path);
    unlink(temporary);
    return -1;
}
