/* fuzz_e2b_entry.c - records of a hostile helper as E2B's clients see them: in any order they
 * become JSON, at most one value each. */
#include <jansson.h>

#include "base/buf.h"
#include "front/engine/copy.h"
#include "front/planes/e2b/entry.h"
#include "fuzz.h"
#include "wire/file.h"

static void take(struct entry_writer *e, const struct wire_head *head, const char *body)
{
    const struct wire_msg *m = file_msg(head->type);
    union {
        struct file_entry entry;
        struct file_xattr xattr;
        struct file_line line;
        struct file_done done;
    } r;
    struct err ignored;

    if (m == NULL || wire_get(m, body, head->len, &r, &ignored) < 0)
        return;
    if (head->type == FILE_ENTRY)
        entry_add(e, &(struct file_info){FILE_ENTRY_FIELDS(COPY_FIELD, &r.entry)});
    else if (head->type == FILE_XATTR)
        entry_add_xattr(e, &(struct file_attr_info){FILE_XATTR_FIELDS(COPY_FIELD, &r.xattr)});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf in = BUF_INIT(SIZE_MAX / 2), out = BUF_INIT(SIZE_MAX / 2);
    struct json_w w;
    struct entry_writer e = {.w = &w};
    struct wire_head head;
    const char *body;
    struct err ignored;
    json_t *doc;

    buf_add(&in, data, n);
    jw_init(&w, &out);
    jw_open_list(&w);
    while (wire_peek(&in, &head, &body, &ignored) > 0) {
        take(&e, &head, body);
        buf_consume(&in, WIRE_HEAD + head.len);
    }
    entry_end(&e);
    jw_close_list(&w);
    doc = json_loadb(buf_data(&out), out.len, JSON_ALLOW_NUL, NULL);
    FUZZ_MUST(json_is_array(doc));
    json_decref(doc);
    buf_free(&in);
    buf_free(&out);
    return 0;
}
