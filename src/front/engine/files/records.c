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

static int too_long(const struct buf *in, struct err *e)
{
    struct wire_head head;

    if (in->len < WIRE_HEAD)
        return 0;
    memcpy(&head, buf_data(in), WIRE_HEAD);
    return head.len > RECORD_MAX ? err_set(e, ERR_INVALID, "a record of %u bytes", head.len) : 0;
}

static int one(struct file_records *r, const struct wire_head *head, const char *body,
               int (*each)(void *arg, uint16_t type, const union file_record *m, struct err *e),
               void *arg, struct err *e)
{
    const struct wire_msg *m = file_msg(head->type);
    union file_record rec;

    if (m == NULL || r->ended)
        return err_set(e, ERR_INVALID, "a record of type %u", head->type);
    if (wire_get(m, body, head->len, &rec, e) < 0)
        return -1;
    if (head->type != FILE_DONE)
        return each(arg, head->type, &rec, e);
    r->ended = true;
    r->done = (struct file_result){FILE_DONE_FIELDS(COPY_FIELD, &rec.file_done)};
    strcpy(r->after, rec.file_done.after);
    r->done.after = r->after;
    return 0;
}

int file_records_take(struct file_records *r, const char *p, size_t n,
                      int (*each)(void *arg, uint16_t type, const union file_record *m,
                                  struct err *e),
                      void *arg, struct err *e)
{
    struct wire_head head;
    const char *body;
    int got = 0;

    if (buf_add(&r->in, p, n) < 0)
        return err_set(e, ERR_INVALID, "more than a record");
    while (too_long(&r->in, e) == 0 && (got = wire_peek(&r->in, &head, &body, e)) > 0) {
        if (one(r, &head, body, each, arg, e) < 0)
            return -1;
        buf_consume(&r->in, WIRE_HEAD + head.len);
    }
    return got < 0 || too_long(&r->in, e) < 0 ? -1 : 0;
}
