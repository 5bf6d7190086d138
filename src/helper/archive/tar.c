/* tar.c - see tar.h. */
#include "helper/archive/tar.h"

#include <errno.h>
#include <string.h>

#define TAR_END 1024u /* two blocks of zeros end an archive */

static la_ssize_t give(struct archive *a, void *arg, const void **ret)
{
    struct tar *t = arg;
    ssize_t n = source_read(t->from, t->piece, sizeof(t->piece), &t->e);

    if (n < 0) {
        t->failed = true;
        archive_set_error(a, EIO, "source");
        return ARCHIVE_FATAL;
    }
    *ret = t->piece;
    return n;
}

static int fail(struct tar *t, struct err *e)
{
    const char *text = archive_error_string(t->a);

    if (t->failed) {
        *e = t->e;
        return -1;
    }
    if (text != NULL && strstr(text, "Can't allocate") != NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    return err_set(e, ERR_INVALID, "not a tar archive, or damaged: %.200s",
                   text != NULL ? text : "unknown");
}

int tar_open(struct tar *t, struct source *from, struct err *e)
{
    t->from = from;
    t->failed = false;
    t->a = archive_read_new();
    if (t->a == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (archive_read_support_format_tar(t->a) != ARCHIVE_OK ||
        archive_read_open(t->a, t, NULL, give, NULL) != ARCHIVE_OK) {
        fail(t, e);
        tar_close(t);
        return -1;
    }
    return 0;
}

void tar_close(struct tar *t)
{
    archive_read_free(t->a);
    t->a = NULL;
}

/* If a tar is cut between two entries, only the end mark is missing. */
static int end(struct tar *t, struct err *e)
{
    if (source_finish(t->from, e) < 0)
        return -1;
    if (source_zeros(t->from) < TAR_END)
        return err_set(e, ERR_INVALID, "the tar archive ends too early: its end mark is missing");
    return 0;
}

int tar_next(struct tar *t, struct archive_entry **ret, struct err *e)
{
    int r = archive_read_next_header(t->a, ret);

    if (r == ARCHIVE_EOF)
        return end(t, e);
    /* a warning means a name that is not UTF-8; its bytes are unchanged */
    if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
        return fail(t, e);
    if (archive_entry_pathname(*ret) == NULL)
        return err_set(e, ERR_INVALID, "an entry of the tar archive has no name");
    return 1;
}

int tar_data(struct tar *t, const void **ret, size_t *ret_n, int64_t *ret_off, struct err *e)
{
    int r = archive_read_data_block(t->a, ret, ret_n, ret_off);

    if (r == ARCHIVE_EOF)
        return 0;
    return r == ARCHIVE_OK ? 1 : fail(t, e);
}
