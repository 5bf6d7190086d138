/* fuzz_e2b_message.c - messages of E2B's data plane: envelopes, base64, names of processes. */
#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/process.h"
#include "front/planes/e2b/proto.h"
#include "fuzz.h"

static void look(json_t *doc)
{
    static const struct proto_enum table[] = {{"ONE", 1}, {"TWO", 2}};
    struct buf bytes = BUF_INIT(1u << 20);
    struct selector who;
    unsigned cols = 1, rows = 1;
    struct err e;
    int v = 1;

    if (selector_read(doc, &who, &e) == 0)
        FUZZ_MUST(strlen(who.id) > 0 && strlen(who.id) <= PROCESS_ID_MAX);
    if (pty_size(doc, &cols, &rows, &e) == 0)
        FUZZ_MUST(cols > 0 && cols <= TERMINAL_SIDE_MAX && rows > 0);
    if (proto_bytes(json_object_get(doc, "stdin"), &bytes, &e) == 0)
        FUZZ_MUST(bytes.len <= json_string_length(json_object_get(doc, "stdin")));
    if (proto_enum("signal", json_object_get(doc, "signal"), table, 2, &v, &e) == 0)
        FUZZ_MUST(v == 1 || v == 2);
    buf_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *p = fuzz_copy(data, n);
    const char *text = p;
    size_t len = n;
    json_t *doc = NULL;
    struct err e;

    if (connect_unwrap(&text, &len, &e) < 0) {
        text = p;
        len = n;
    } else {
        FUZZ_MUST(text == p + CONNECT_ENVELOPE && len == n - CONNECT_ENVELOPE);
    }
    if (json_parse(text, len, &doc, &e) == 0)
        look(doc);
    json_decref(doc);
    free(p);
    return 0;
}
