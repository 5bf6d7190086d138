/* entry.c - see entry.h. */
#include "front/planes/e2b/entry.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/internal.h"

#define NS 1000000000u
#define DIRECTORY_SIZE 4096u /* what clients expect to be more than nothing */

/* ---- words ---- */

/* clang-format off */
static const struct {
    uint32_t mask, value;
    const char *letters;
} letters[] = { /* in the order of Go's */
    {S_IFMT, S_IFDIR,  "d"},
    {S_IFMT, S_IFLNK,  "L"},
    {S_IFMT, S_IFBLK,  "D"},
    {S_IFMT, S_IFCHR,  "Dc"},
    {S_IFMT, S_IFIFO,  "p"},
    {S_IFMT, S_IFSOCK, "S"},
    {S_ISUID, S_ISUID, "u"},
    {S_ISGID, S_ISGID, "g"},
    {S_ISVTX, S_ISVTX, "t"},
};
/* clang-format on */

const char *entry_mode(uint32_t mode, char out[ENTRY_MODE_MAX])
{
    static const char rwx[] = "rwxrwxrwx";
    char *p = out;

    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        if ((mode & letters[i].mask) == letters[i].value)
            p = stpcpy(p, letters[i].letters);
    if (p == out)
        *p++ = '-';
    for (unsigned i = 0; i < 9; i++)
        *p++ = (mode & (0400u >> i)) != 0 ? rwx[i] : '-';
    *p = '\0';
    return out;
}

const char *entry_time(uint64_t ns, char out[ENTRY_TIME_MAX])
{
    time_t s = (time_t)(ns / NS);
    unsigned part = (unsigned)(ns % NS);
    struct tm tm;
    size_t n;

    gmtime_r(&s, &tm);
    n = strftime(out, ENTRY_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    if (part % 1000 != 0)
        n += (size_t)snprintf(out + n, ENTRY_TIME_MAX - n, ".%09u", part);
    else if (part % 1000000 != 0)
        n += (size_t)snprintf(out + n, ENTRY_TIME_MAX - n, ".%06u", part / 1000);
    else if (part != 0)
        n += (size_t)snprintf(out + n, ENTRY_TIME_MAX - n, ".%03u", part / 1000000);
    str_fmt(out + n, ENTRY_TIME_MAX - n, "Z");
    return out;
}

const char *entry_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static const char *type_name(uint32_t mode)
{
    if (S_ISREG(mode))
        return "FILE_TYPE_FILE";
    if (S_ISDIR(mode))
        return "FILE_TYPE_DIRECTORY";
    return S_ISLNK(mode) ? "FILE_TYPE_SYMLINK" : NULL; /* else unspecified, the default */
}

/* ---- the object ---- */

static void put_size(struct json_w *w, const struct file_info *f)
{
    uint64_t size = f->size == 0 && S_ISDIR(f->mode) ? DIRECTORY_SIZE : f->size;
    char text[STR_DEC_MAX + 1];

    if (size == 0)
        return;
    text[str_dec(text, size)] = '\0';
    jw_kstr(w, "size", text);
}

/* A user without a name is its number. */
static void put_who(struct json_w *w, const char *key, const char *name, uint32_t id)
{
    char text[STR_DEC_MAX + 1];

    text[str_dec(text, id)] = '\0';
    jw_kstr(w, key, *name != '\0' ? name : text);
}

static void put_kind(struct json_w *w, uint32_t mode)
{
    const char *type = type_name(mode);

    if (type != NULL)
        jw_kstr(w, "type", type);
    if ((mode & 0777) != 0)
        jw_ku64(w, "mode", mode & 0777);
}

/* What began above a home, or in one that is the root, is not clean yet. */
static const char *shown(const char *path, char out[E2B_PATH_MAX + 1])
{
    if (strlen(path) > E2B_PATH_MAX)
        return path;
    e2b_clean(path, out);
    return out;
}

static void open_entry(struct entry_writer *e, const struct file_info *f)
{
    char mode[ENTRY_MODE_MAX], when[ENTRY_TIME_MAX], room[E2B_PATH_MAX + 1];
    const char *path = shown(f->path, room);
    struct json_w *w = e->w;

    jw_open(w);
    jw_kstr(w, "name", entry_name(path));
    jw_kstr(w, "path", path);
    put_size(w, f);
    jw_kstr(w, "permissions", entry_mode(f->mode, mode));
    put_who(w, "owner", f->owner, f->uid);
    put_who(w, "group", f->group, f->gid);
    jw_kstr(w, "modifiedTime", entry_time(f->mtime_ns, when));
    e->state = S_ISLNK(f->mode) ? ENTRY_LINK : ENTRY_OPEN;
    if (e->state == ENTRY_OPEN)
        put_kind(w, f->mode);
}

void entry_add(struct entry_writer *e, const struct file_info *f)
{
    char room[E2B_PATH_MAX + 1];

    if (e->state != ENTRY_LINK) {
        entry_end(e);
        open_entry(e, f);
        return;
    }
    put_kind(e->w, f->mode);
    jw_kstr(e->w, "symlinkTarget", shown(f->path, room));
    e->state = ENTRY_OPEN;
}

void entry_add_xattr(struct entry_writer *e, const struct file_attr_info *x)
{
    size_t prefix = sizeof(ENTRY_XATTR) - 1;

    if (e->state != ENTRY_OPEN && e->state != ENTRY_METADATA)
        return;
    if (strncmp(x->name, ENTRY_XATTR, prefix) != 0)
        return;
    if (e->state == ENTRY_OPEN) {
        jw_key(e->w, "metadata");
        jw_open(e->w);
        e->state = ENTRY_METADATA;
    }
    jw_key(e->w, x->name + prefix);
    jw_strn(e->w, x->value.p, x->value.len);
}

void entry_end(struct entry_writer *e)
{
    if (e->state == ENTRY_METADATA)
        jw_close(e->w);
    if (e->state != ENTRY_CLOSED)
        jw_close(e->w);
    e->state = ENTRY_CLOSED;
}
