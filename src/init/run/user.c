/* user.c - see user.h. */
#include "init/run/user.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "init/run/policy.h"

#define ID_MAX 4294967294u /* -1 means "leave as it is" to the kernel */
#define FIELDS_MAX 7

struct text {
    char *p; /* belongs to the caller of read_text() */
    size_t len;
};

/* A file that cannot be read counts as empty. */
static void read_text(int root, const char *path, struct text *ret)
{
    struct open_how how = {
        .flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | init_policy.mounts,
    };
    autofd int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    struct stat st;
    size_t size;
    ssize_t n;

    *ret = (struct text){0};
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return;
    size = st.st_size < (off_t)USER_FILE_MAX ? (size_t)st.st_size : USER_FILE_MAX;
    ret->p = malloc(size + 1);
    if (ret->p == NULL)
        return;
    while (ret->len < size && (n = read(fd, ret->p + ret->len, size - ret->len)) > 0)
        ret->len += (size_t)n;
    ret->p[ret->len] = '\0';
}

/* The next line without its newline, or NULL. A line with a NUL is returned empty: none of its
 * fields can be trusted. */
static char *next_line(struct text *t, size_t *at)
{
    char *line = t->p + *at, *end;
    size_t left = t->len - *at;

    if (left == 0)
        return NULL;
    end = memchr(line, '\n', left);
    *at += end != NULL ? (size_t)(end - line) + 1 : left;
    if (end == NULL)
        end = line + left;
    *end = '\0';
    if (strlen(line) != (size_t)(end - line))
        *line = '\0';
    return line;
}

static size_t split(char *line, char *fields[], size_t max)
{
    size_t n = 0;

    while (n < max && line != NULL)
        fields[n++] = strsep(&line, ":");
    return n;
}

static int parse_id(const char *s, unsigned *ret)
{
    uint64_t v;

    if (str_u64(s, ID_MAX, &v) < 0)
        return -1;
    *ret = (unsigned)v;
    return 0;
}

static bool take_entry(char *f[], size_t n, struct user *u)
{
    if (n != FIELDS_MAX || parse_id(f[2], &u->uid) < 0 || parse_id(f[3], &u->gid) < 0)
        return false;
    if (*f[0] == '\0' || strlen(f[0]) > INIT_USER_MAX || strlen(f[5]) >= USER_TEXT_MAX ||
        strlen(f[6]) >= USER_TEXT_MAX)
        return false;
    strcpy(u->name, f[0]);
    strcpy(u->home, *f[5] != '\0' ? f[5] : "/");
    strcpy(u->shell, f[6]);
    return true;
}

/* The first entry of `name`, or of uid when name is NULL. */
static bool find_entry(struct text *t, const char *name, uid_t uid, struct user *ret)
{
    char *fields[FIELDS_MAX], *line;
    size_t at = 0;

    while ((line = next_line(t, &at)) != NULL) {
        struct user u = {0};

        if (!take_entry(fields, split(line, fields, FIELDS_MAX), &u))
            continue;
        if (name != NULL ? strcmp(name, u.name) != 0 : u.uid != uid)
            continue;
        *ret = u;
        return true;
    }
    return false;
}

static bool has_member(char *members, const char *name)
{
    char *m;

    while ((m = strsep(&members, ",")) != NULL)
        if (strcmp(m, name) == 0)
            return true;
    return false;
}

static void add_group(struct user *u, gid_t gid)
{
    for (size_t i = 0; i < u->ngroups; i++)
        if (u->groups[i] == gid)
            return;
    if (u->ngroups < USER_GROUPS_MAX)
        u->groups[u->ngroups++] = gid;
}

static void add_groups(int root, struct user *u)
{
    struct text t;
    char *f[4], *line;
    size_t at = 0;
    gid_t gid;

    add_group(u, u->gid);
    read_text(root, "etc/group", &t);
    while ((line = next_line(&t, &at)) != NULL)
        if (split(line, f, 4) == 4 && parse_id(f[2], &gid) == 0 && has_member(f[3], u->name))
            add_group(u, gid);
    free(t.p);
}

/* "uid" or "uid:gid". */
static bool numeric(const char *spec, uid_t *uid, gid_t *gid, bool *has_gid)
{
    char copy[INIT_USER_MAX + 1], *colon;

    if (strlen(spec) > INIT_USER_MAX)
        return false;
    strcpy(copy, spec);
    colon = strchr(copy, ':');
    *has_gid = colon != NULL;
    if (colon != NULL)
        *colon++ = '\0';
    return parse_id(copy, uid) == 0 && (colon == NULL || parse_id(colon, gid) == 0);
}

static int find_user(int root, const char *spec, struct user *ret, struct err *e)
{
    struct text t;
    bool found = true, has_gid;
    uid_t uid;
    gid_t gid;

    read_text(root, "etc/passwd", &t);
    if (numeric(spec, &uid, &gid, &has_gid)) {
        if (!find_entry(&t, NULL, uid, ret))
            *ret = (struct user){.uid = uid, .gid = uid, .home = "/"};
        if (has_gid)
            ret->gid = gid;
    } else if (!find_entry(&t, spec, 0, ret)) {
        found = strcmp(spec, "root") == 0;
        *ret = (struct user){.name = "root", .home = "/root"};
    }
    free(t.p);
    if (!found) /* front/planes/e2b/data.c looks for these words */
        return err_set(e, ERR_CANNOT_START, "user %s: no such user in /etc/passwd", spec);
    if (ret->name[0] != '\0')
        add_groups(root, ret);
    else
        add_group(ret, ret->gid);
    return 0;
}

/* The user that all commands run as, because init cannot take on another identity. root means the
 * most powerful user there is: that one. */
static int find_own(int root, const char *spec, struct user *ret, struct err *e)
{
    char own[16];

    str_fmt(own, sizeof(own), "%u", (unsigned)geteuid());
    if (strcmp(spec, "root") != 0) {
        if (find_user(root, spec, ret, e) < 0)
            return -1;
        if (ret->uid != geteuid())
            return err_set(e, ERR_CANNOT_START,
                           "user %s: this server runs as uid %s and cannot act for other users",
                           spec, own);
    }
    return find_user(root, own, ret, e);
}

int user_find(int root, const char *spec, struct user *ret, struct err *e)
{
    return init_policy.identities ? find_user(root, spec, ret, e) : find_own(root, spec, ret, e);
}

static void find_name(int root, const char *file, unsigned id, char ret[INIT_USER_MAX + 1])
{
    struct text t;
    char *f[3], *line;
    size_t at = 0;
    unsigned v;

    ret[0] = '\0';
    read_text(root, file, &t);
    while (ret[0] == '\0' && (line = next_line(&t, &at)) != NULL)
        if (split(line, f, 3) == 3 && parse_id(strsep(&f[2], ":"), &v) == 0 && v == id &&
            strlen(f[0]) <= INIT_USER_MAX)
            strcpy(ret, f[0]);
    free(t.p);
}

void user_names(int root, uid_t uid, gid_t gid, char owner[INIT_USER_MAX + 1],
                char group[INIT_USER_MAX + 1])
{
    find_name(root, "etc/passwd", uid, owner);
    find_name(root, "etc/group", gid, group);
}
