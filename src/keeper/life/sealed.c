/* sealed.c - see sealed.h. */
#include "keeper/sealed.h"

#include <string.h>

#include "keeper/file.h"

struct head {
    uint32_t magic, version, len, zero;
    uint64_t sum; /* of the head, with 0 here, and of the fields */
};

_Static_assert(sizeof(struct head) == SEALED_HEAD, "the head is part of the format");

static uint64_t sum_of(const struct head *h, const char *fields)
{
    struct head blank = *h;

    blank.sum = 0;
    return file_sum_more(file_sum(&blank, sizeof(blank)), fields, h->len);
}

int sealed_put(struct buf *out, const struct sealed_kind *kind, const void *msg, struct err *e)
{
    autobuf struct buf frame = BUF_INIT(WIRE_FRAME_MAX);
    struct head h = {.magic = kind->magic, .version = kind->version};
    const char *fields;

    if (wire_put(&frame, kind->fields, 0, msg, e) < 0)
        return -1;
    fields = buf_data(&frame) + WIRE_HEAD;
    h.len = (uint32_t)(frame.len - WIRE_HEAD);
    h.sum = sum_of(&h, fields);
    if (buf_add(out, &h, sizeof(h)) < 0 || buf_add(out, fields, h.len) < 0)
        return err_set(e, ERR_INTERNAL, "%s: a record of %u bytes does not fit", kind->fields->name,
                       h.len);
    return 0;
}

enum sealed sealed_get(const struct sealed_kind *kind, const char *p, size_t n, void *msg)
{
    struct head h;
    struct err e;

    if (n < sizeof(h))
        return SEALED_DAMAGED;
    memcpy(&h, p, sizeof(h));
    if (h.magic != kind->magic || h.len > n - sizeof(h) || h.sum != sum_of(&h, p + sizeof(h)))
        return SEALED_DAMAGED;
    if (h.version > kind->version)
        return SEALED_NEWER;
    return wire_get(kind->fields, p + sizeof(h), h.len, msg, &e) < 0 ? SEALED_DAMAGED
                                                                     : SEALED_WHOLE;
}
