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

struct file_call *file_stat(struct engine *g, const struct file_at *at, bool follow,
                            file_entry_cb *cb, void *arg)
{
    (void)g, (void)at, (void)follow, (void)cb, (void)arg;
    return NULL;
}

struct file_call *file_read(struct engine *g, const struct file_at *at,
                            const struct file_read_ops *ops, void *arg)
{
    (void)g, (void)at, (void)ops, (void)arg;
    return NULL;
}

struct file_call *file_work(struct engine *g, const struct file_at *at, const char *kind,
                            const char *const *args, const struct file_work_ops *ops, void *arg)
{
    (void)g, (void)at, (void)kind, (void)args, (void)ops, (void)arg;
    return NULL;
}

struct file_write *file_write(struct engine *g, const struct file_at *at,
                              const struct file_write_opts *o, const struct file_write_ops *ops,
                              void *arg)
{
    (void)g, (void)at, (void)o, (void)ops, (void)arg;
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

void fd_close(struct engine *g, int fd)
{
    (void)g, (void)fd;
}

#endif
