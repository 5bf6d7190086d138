/* fuzz_file_records.c - the records of cove-helper about files, in pieces of any size. */
#include "base/own.h"
#include "front/engine/files/internal.h"
#include "fuzz.h"

static int each(void *arg, uint16_t type, const union file_record *m, struct err *e)
{
    size_t *sum = arg;

    (void)e;
    if (type == FILE_ENTRY)
        *sum += strlen(m->file_entry.path) + strlen(m->file_entry.target);
    else if (type == FILE_LINE)
        *sum += strlen(m->file_line.path) + m->file_line.text.len;
    else
        *sum += strlen(m->file_xattr.name) + m->file_xattr.value.len;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t piece = n > 0 ? 1u + data[0] : 1, sum = 0;
    struct file_records r;
    struct err e;

    file_records_init(&r);
    for (size_t at = n > 0; at < n; at += piece)
        if (file_records_take(&r, (const char *)data + at, at + piece < n ? piece : n - at, each,
                              &sum, &e) < 0)
            break;
    file_records_free(&r);
    return 0;
}
