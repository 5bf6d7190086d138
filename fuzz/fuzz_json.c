/* fuzz_json.c - request bodies through the reader and a table like the API's; and
 * any bytes through the writer, whose output the reader must take. */
#include "base/buf.h"
#include "base/own.h"
#include "fuzz.h"
#include "json/read.h"
#include "json/write.h"

struct exec {
    const char *cmd, *cwd, *user;
    json_t *args, *env, *metadata;
    uint64_t timeout_ms;
    double cpus;
    bool tty;
};

/* clang-format off */
static const struct json_field fields[] = {
    {"cmd",        JSON_FIELD_STR,     offsetof(struct exec, cmd),        1, 65536,    true,  ""},
    {"cwd",        JSON_FIELD_STR,     offsetof(struct exec, cwd),        0, 4095,     false, ""},
    {"user",       JSON_FIELD_STR,     offsetof(struct exec, user),       0, 32,       false, ""},
    {"args",       JSON_FIELD_STRLIST, offsetof(struct exec, args),       0, 1024,     false, ""},
    {"env",        JSON_FIELD_STRMAP,  offsetof(struct exec, env),        0, 256,      false, ""},
    {"metadata",   JSON_FIELD_ANY,     offsetof(struct exec, metadata),   0, 0,        false, ""},
    {"timeout_ms", JSON_FIELD_U64,     offsetof(struct exec, timeout_ms), 1, 86400000, false, ""},
    {"cpus",       JSON_FIELD_DOUBLE,  offsetof(struct exec, cpus),       0, 64,       false, ""},
    {"tty",        JSON_FIELD_BOOL,    offsetof(struct exec, tty),        0, 0,        false, ""},
};
/* clang-format on */

static void read_body(const char *p, size_t n)
{
    autojson json_t *j = NULL;
    struct exec x = {.timeout_ms = 1};
    struct err e;

    if (json_parse(p, n, &j, &e) < 0) {
        FUZZ_MUST(j == NULL && e.kind == ERR_INVALID && e.msg[0] != '\0');
        return;
    }
    if (json_decode(j, fields, ARRAY_LEN(fields), &x, &e) < 0)
        FUZZ_MUST(e.kind == ERR_INVALID && e.msg[0] != '\0');
    else
        FUZZ_MUST(x.cmd != NULL && x.cmd[0] != '\0' && x.timeout_ms > 0);
}

static void write_bytes(const char *p, size_t n)
{
    autobuf struct buf out = BUF_INIT(16u << 20);
    autojson json_t *j = NULL;
    struct json_w w;
    struct err e;

    jw_init(&w, &out);
    jw_open(&w);
    jw_key(&w, "s");
    jw_strn(&w, p, n);
    jw_kbytes(&w, "b", p, n);
    jw_close(&w);
    if (!out.failed && memchr(p, '\0', n) == NULL)
        FUZZ_MUST(json_parse(buf_data(&out), out.len, &j, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *p = fuzz_copy(data, n);

    read_body(p, n);
    write_bytes(p, n);
    free(p);
    return 0;
}
