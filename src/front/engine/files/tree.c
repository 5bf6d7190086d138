/* tree.c - see file.h: the kinds of work, from a caller's options to the words that
 * cove-helper takes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/command.h"
#include "front/engine/files/internal.h"
#include "mem/mem.h"

struct words {
    const char *list[FILE_WORK_ARGS_MAX + 1]; /* each is ours */
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    text = mem_vformat(fmt, ap);
    va_end(ap);
    if (w->n < FILE_WORK_ARGS_MAX)
        w->list[w->n++] = text;
    else
        free(text); /* callers bound what they give */
}

static void say_if(struct words *w, bool said, const char *word)
{
    if (said)
        say(w, "%s", word);
}

static struct file_call *go(const struct file_at *at, const char *kind, struct words *w,
                            const struct file_work_ops *ops, void *arg)
{
    struct file_call *c = file_work(at, kind, w->list, ops, arg);

    while (w->n > 0)
        free((char *)(uintptr_t)w->list[--w->n]);
    return c;
}

struct file_call *file_list(const struct file_at *at, const struct file_list_opts *o,
                            const struct file_work_ops *ops, void *arg)
{
    static const char *const sorts[] = {"name", "size", "modified"};
    struct words w = {0};

    say(&w, "depth=%u", o->depth);
    say(&w, "limit=%llu", (unsigned long long)o->limit);
    say(&w, "sort=%s", sorts[o->sort]);
    say_if(&w, o->hidden, "hidden");
    say_if(&w, o->reverse, "reverse");
    if (o->after != NULL)
        say(&w, "after=%s", o->after);
    return go(at, "list", &w, ops, arg);
}

struct file_call *file_search(const struct file_at *at, const struct file_search_opts *o,
                              const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say(&w, "limit=%llu", (unsigned long long)o->limit);
    say(&w, "timeout=%u", o->timeout_s);
    say(&w, "depth=%u", o->depth);
    say(&w, "context=%u", o->context);
    say_if(&w, o->nocase, "nocase");
    say_if(&w, o->hidden, "hidden");
    if (o->name != NULL)
        say(&w, "name=%s", o->name);
    if (o->text != NULL)
        say(&w, "text=%s", o->text);
    if (o->regex != NULL)
        say(&w, "regex=%s", o->regex);
    return go(at, "search", &w, ops, arg);
}

struct file_call *file_mkdir(const struct file_at *at, bool parents, uint32_t mode,
                             const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say_if(&w, parents, "parents");
    if (mode != FILE_MODE_NONE)
        say(&w, "mode=%u", mode);
    return go(at, "mkdir", &w, ops, arg);
}

struct file_call *file_symlink(const struct file_at *at, const char *target, bool parents,
                               bool overwrite, const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say(&w, "target=%s", target);
    say_if(&w, parents, "parents");
    say_if(&w, overwrite, "overwrite");
    return go(at, "symlink", &w, ops, arg);
}

/* The second path is made absolute as the first one is. */
static struct file_call *to_another(const struct file_at *at, const char *kind,
                                    const struct file_to *to, const struct file_work_ops *ops,
                                    void *arg)
{
    struct file_at second = *at;
    struct file_kept kept;
    struct words w = {0};
    struct err e;

    second.path = to->path;
    if (file_keep(&second, &kept, &e) == NULL)
        return file_work_failed(at->ref.engine, &e, ops, arg);
    say(&w, "to=%s", kept.path);
    say_if(&w, to->overwrite, "overwrite");
    say_if(&w, to->parents, "parents");
    return go(at, kind, &w, ops, arg);
}

struct file_call *file_move(const struct file_at *at, const struct file_to *to,
                            const struct file_work_ops *ops, void *arg)
{
    return to_another(at, "move", to, ops, arg);
}

struct file_call *file_copy(const struct file_at *at, const struct file_to *to,
                            const struct file_work_ops *ops, void *arg)
{
    return to_another(at, "copy", to, ops, arg);
}

struct file_call *file_chmod(const struct file_at *at, uint32_t mode, bool recursive,
                             const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say(&w, "mode=%u", mode);
    say_if(&w, recursive, "recursive");
    return go(at, "chmod", &w, ops, arg);
}

struct file_call *file_chown(const struct file_at *at, const char *owner, bool recursive,
                             const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say(&w, "owner=%s", owner);
    say_if(&w, recursive, "recursive");
    return go(at, "chown", &w, ops, arg);
}

struct file_call *file_remove(const struct file_at *at, bool recursive,
                              const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say_if(&w, recursive, "recursive");
    return go(at, "remove", &w, ops, arg);
}

struct file_call *file_xattrs(const struct file_at *at, const char *prefix,
                              const struct file_attr *set, size_t nset,
                              const struct file_work_ops *ops, void *arg)
{
    struct words w = {0};

    say(&w, "prefix=%s", prefix);
    for (size_t i = 0; i < nset; i++) {
        if (set[i].value != NULL)
            say(&w, "set.%s=%s", set[i].name, set[i].value);
        else
            say(&w, "remove.%s", set[i].name);
    }
    return go(at, "xattrs", &w, ops, arg);
}
