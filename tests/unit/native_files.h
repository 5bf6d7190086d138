/* native_files.h - the engine's files for tests of planes: asked and never answered. */
#ifndef NATIVE_FILES_H
#define NATIVE_FILES_H

#include <stdlib.h>

#include "front/engine/fdpass.h"
#include "front/engine/file.h"

void file_cancel(struct file_call *c)
{
    (void)c;
}

void file_pause(struct file_call *c, bool paused)
{
    (void)c, (void)paused;
}

struct file_call *file_stat(const struct file_at *at, bool follow, file_entry_cb *cb, void *arg)
{
    (void)at->ref.engine, (void)at, (void)follow, (void)cb, (void)arg;
    return NULL;
}

struct file_call *file_read(const struct file_at *at, const struct file_read_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_work(const struct file_at *at, const char *kind, const char *const *args,
                            const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)kind, (void)args, (void)ops, (void)arg;
    return NULL;
}

struct file_write *file_write(const struct file_at *at, const struct file_write_opts *o,
                              const struct file_write_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)o, (void)ops, (void)arg;
    return NULL;
}

size_t file_feed(struct file_write *w, const void *p, size_t n, bool last)
{
    (void)w, (void)p, (void)n, (void)last;
    return 0;
}

void file_write_cancel(struct file_write *w)
{
    (void)w;
}

void fd_close(struct engine *g, int fd, const char *key)
{
    (void)g, (void)fd, (void)key;
}

struct file_call *file_list(const struct file_at *at, const struct file_list_opts *o,
                            const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)o, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_search(const struct file_at *at, const struct file_search_opts *o,
                              const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)o, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_mkdir(const struct file_at *at, bool parents, uint32_t mode,
                             const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)parents, (void)mode, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_symlink(const struct file_at *at, const char *target, bool parents,
                               bool overwrite, const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)target, (void)parents, (void)overwrite, (void)ops,
        (void)arg;
    return NULL;
}

struct file_call *file_move(const struct file_at *at, const struct file_to *to,
                            const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)to, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_copy(const struct file_at *at, const struct file_to *to,
                            const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)to, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_chmod(const struct file_at *at, uint32_t mode, bool recursive,
                             const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)mode, (void)recursive, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_chown(const struct file_at *at, const char *owner, bool recursive,
                             const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)owner, (void)recursive, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_remove(const struct file_at *at, bool recursive,
                              const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)recursive, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_xattrs(const struct file_at *at, const char *prefix,
                              const struct file_attr *set, size_t nset,
                              const struct file_work_ops *ops, void *arg)
{
    (void)at->ref.engine, (void)at, (void)prefix, (void)set, (void)nset, (void)ops, (void)arg;
    return NULL;
}

#endif
