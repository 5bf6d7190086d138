/* names.c - see names.h. */
#include "helper/call/names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

#define ID_MAX 4294967294u

struct named {
    const char *name, *home;
    unsigned id, gid;
};

struct names {
    const char *file;
    bool read;
    struct named *list;
    size_t n, cap;
};

static struct names users = {.file = "/etc/passwd"}, groups = {.file = "/etc/group"};

static char *read_text(const char *path)
{
    autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    char *text = malloc(NAMES_FILE_MAX + 1);
    size_t len = 0;
    ssize_t n;

    if (text == NULL)
        return NULL;
    while (fd >= 0 && len < NAMES_FILE_MAX && (n = read(fd, text + len, NAMES_FILE_MAX - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

static void take_line(struct names *t, char *line)
{
    char *name = strsep(&line, ":"), *id, *gid;
    uint64_t v, g = 0;

    strsep(&line, ":");
    id = strsep(&line, ":");
    gid = strsep(&line, ":");
    if (id == NULL || str_u64(id, ID_MAX, &v) < 0 || *name == '\0')
        return;
    if (t == &users && (gid == NULL || str_u64(gid, ID_MAX, &g) < 0))
        return;
    strsep(&line, ":");
    if (t->n == t->cap) {
        size_t cap = t->cap == 0 ? 64 : 2 * t->cap;
        struct named *list = realloc(t->list, cap * sizeof(*list));

        if (list == NULL)
            return;
        t->list = list;
        t->cap = cap;
    }
    t->list[t->n++] = (struct named){name, strsep(&line, ":"), (unsigned)v, (unsigned)g};
}

/* root always exists, as in init: an image may come without these files. */
static const struct named *find(struct names *t, const char *name, unsigned id)
{
    static const struct named root = {.name = "root", .home = "/root"};

    if (!t->read) {
        char *rest = read_text(t->file), *line; /* never freed: the names point into it */

        t->read = true;
        while ((line = strsep(&rest, "\n")) != NULL)
            take_line(t, line);
    }
    for (size_t i = 0; i < t->n; i++)
        if (name != NULL ? strcmp(t->list[i].name, name) == 0 : t->list[i].id == id)
            return &t->list[i];
    return name != NULL && strcmp(name, root.name) == 0 ? &root : NULL;
}

const char *names_user(uid_t uid)
{
    const struct named *f = find(&users, NULL, uid);

    return f != NULL ? f->name : "";
}

const char *names_group(gid_t gid)
{
    const struct named *f = find(&groups, NULL, gid);

    return f != NULL ? f->name : "";
}

/* A numeric user without an entry gets "/". */
int names_take_home(const char *user, struct err *e)
{
    char name[256];
    const struct named *f;
    uint64_t id;
    bool number;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(user, ":"), user);
    number = str_u64(name, ID_MAX, &id) == 0;
    f = number ? find(&users, NULL, (unsigned)id) : find(&users, name, 0);
    if (f == NULL && !number) /* the E2B plane looks for ": no such user" */
        return err_set(e, ERR_INVALID, "user %.60s: no such user in /etc/passwd", name);
    setenv("HOME", f != NULL && f->home != NULL && f->home[0] == '/' ? f->home : "/", 1);
    return 0;
}

static int id_of(struct names *t, const char *text, const char *what, unsigned *ret, struct err *e)
{
    const struct named *f;
    uint64_t v;

    if (*text == '\0')
        return 0;
    if (str_u64(text, ID_MAX, &v) == 0) {
        *ret = (unsigned)v;
        return 0;
    }
    f = find(t, text, 0);
    if (f == NULL)
        return err_set(e, ERR_INVALID, "%s %.60s does not exist in the sandbox", what, text);
    *ret = f->id;
    return 0;
}

int names_parse(const char *spec, uid_t *ret_uid, gid_t *ret_gid, struct err *e)
{
    char copy[256], *rest = copy, *user;

    *ret_uid = *ret_gid = (unsigned)-1;
    if (spec == NULL)
        return 0;
    if (strlen(spec) >= sizeof(copy) || *spec == '\0')
        return err_set(e, ERR_INVALID, "owner: expected USER, USER:GROUP or :GROUP");
    strcpy(copy, spec);
    user = strsep(&rest, ":");
    if (id_of(&users, user, "user", ret_uid, e) < 0)
        return -1;
    return rest == NULL ? 0 : id_of(&groups, rest, "group", ret_gid, e);
}

int names_parse_new(const char *spec, uid_t *ret_uid, gid_t *ret_gid, struct err *e)
{
    const struct named *f;

    if (names_parse(spec, ret_uid, ret_gid, e) < 0)
        return -1;
    if (*ret_uid != (uid_t)-1 && *ret_gid == (gid_t)-1) {
        f = find(&users, NULL, *ret_uid);
        *ret_gid = f != NULL ? f->gid : *ret_uid;
    }
    return 0;
}
