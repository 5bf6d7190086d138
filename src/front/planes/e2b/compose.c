/* compose.c - /files/compose: several files become one, and go. How a client puts
 * together what it has uploaded in parts. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/transfer.h"
#include "front/planes/e2b/entry.h"
#include "front/planes/e2b/internal.h"
#include "json/write.h"

#define SOURCES_MAX 100u
#define PATHS_MAX (64u << 10) /* bytes of all sources together */

struct compose_in {
    json_t *sources;
    const char *destination, *user;
};
/* clang-format off */
static const struct json_field compose_fields[] = {
    {"source_paths", JSON_FIELD_STRLIST, offsetof(struct compose_in, sources), 1, SOURCES_MAX, true, ""},
    {"destination", JSON_FIELD_STR, offsetof(struct compose_in, destination), 1, E2B_PATH_MAX, true, ""},
    {"username", JSON_FIELD_STR, offsetof(struct compose_in, user), 0, E2B_USER_MAX, false, ""},
};
/* clang-format on */
static const struct surface_input compose_input = {SURFACE_INPUT(compose_fields, struct compose_in),
                                                   .body_max = 2 * PATHS_MAX};

struct compose {
    struct call *c;
    char shown[E2B_PATH_MAX + 1];
};

static void on_entry(void *arg, const struct file_info *f)
{
    struct compose *k = arg;

    if (k->shown[0] == '\0')
        e2b_clean(f->path, k->shown);
}

static void on_done(void *arg, const struct file_result *d, const struct err *e)
{
    autobuf struct buf body = BUF_INIT(4 * E2B_PATH_MAX);
    struct compose *k = arg;
    struct json_w w;

    (void)d;
    if (!call_told(k->c))
        return;
    if (e != NULL) {
        call_fail(k->c, e);
        return;
    }
    jw_init(&w, &body);
    jw_open(&w);
    jw_kstr(&w, "path", k->shown);
    jw_kstr(&w, "name", entry_name(k->shown));
    jw_kstr(&w, "type", "file");
    jw_close(&w);
    call_reply(k->c, 200, "application/json", &body);
}

/* "from=PATH" of each, in `texts`, whose memory does not move. */
static int read_sources(const json_t *list, struct buf *texts, const char **args, struct err *e)
{
    char path[E2B_PATH_MAX + 1];
    size_t n = json_array_size(list);

    if (buf_room(texts, PATHS_MAX) == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (e2b_path(json_string_value(json_array_get(list, i)), path, e) < 0)
            return err_wrap(e, "source_paths");
        *args++ = buf_data(texts) + texts->len;
        buf_adds(texts, "from=");
        buf_add(texts, path, strlen(path) + 1);
    }
    return texts->failed ? err_set(e, ERR_INVALID, "source_paths: more than %u bytes", PATHS_MAX)
                         : 0;
}

static void compose(struct call *c, const void *input)
{
    static const struct file_work_ops ops = {.on_entry = on_entry, .on_done = on_done};
    autobuf struct buf texts = BUF_INIT(PATHS_MAX);
    const struct compose_in *in = input;
    const char *args[SOURCES_MAX + 2] = {"parents"};
    char path[E2B_PATH_MAX + 1] = "";
    struct file_at at = e2b_at(c, path, in->user != NULL && *in->user != '\0' ? in->user : NULL);
    struct compose *k = call_state(c, sizeof(*k), NULL);
    struct err e;

    k->c = c;
    if (read_sources(in->sources, &texts, args + 1, &e) < 0 ||
        e2b_path(in->destination, path, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (path[0] == '/')
        e2b_clean(path, k->shown);
    call_expect(c, &file_source, file_work(&at, "write", args, &ops, k));
}

/* clang-format off */
const struct surface_row e2b_compose[] = {
    {{"POST", "/files/compose"}, SCOPE_RUN, compose, "composeFiles",
     "Joins files in one and removes them.", .body = &compose_input, .status = 200},
    {.op = NULL},
};
/* clang-format on */
