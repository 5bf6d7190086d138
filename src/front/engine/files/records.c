/* records.c - see files/internal.h. */
#include <string.h>

#include "base/own.h"
#include "front/engine/files/internal.h"

#define RECORD_MAX (FILE_XATTR_MAX + 1024u) /* bytes after the head */

void file_records_init(struct file_records *r)
{
    *r = (struct file_records){.in = BUF_INIT(WIRE_HEAD + RECORD_MAX + INIT_CHUNK_MAX)};
}

void file_records_free(struct file_records *r)
{
    buf_free(&r->in);
}

struct taking {
    struct file_records *r;
    int (*each)(void *arg, uint16_t type, const union file_record *m, struct err *e);
    void *arg;
};

static enum wire_next one(void *arg, const struct wire_head *head, const char *body, struct err *e)
{
    const struct wire_msg *m = file_msg(head->type);
    const struct taking *t = arg;
    struct file_records *r = t->r;
    union file_record rec;

    if (m == NULL || r->ended) {
        err_set(e, ERR_INVALID, "a record of type %u", head->type);
        return WIRE_BROKEN;
    }
    if (wire_get(m, body, head->len, &rec, e) < 0)
        return WIRE_BROKEN;
    if (head->type != FILE_DONE)
        return t->each(t->arg, head->type, &rec, e) < 0 ? WIRE_BROKEN : WIRE_NEXT;
    r->ended = true;
    r->done = (struct file_result){FILE_DONE_FIELDS(COPY_FIELD, &rec.file_done)};
    strcpy(r->after, rec.file_done.after);
    r->done.after = r->after;
    return WIRE_NEXT;
}

int file_records_take(struct file_records *r, const char *p, size_t n,
                      int (*each)(void *arg, uint16_t type, const union file_record *m,
                                  struct err *e),
                      void *arg, struct err *e)
{
    struct taking t = {r, each, arg};

    if (buf_add(&r->in, p, n) < 0)
        return err_set(e, ERR_INVALID, "more than a record");
    return wire_pump(&r->in, RECORD_MAX, one, &t, e);
}
