/* image.c - see image.h. */
#include "front/engine/image.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "json/read.h"
#include "json/write.h"

struct settings {
    json_t *env, *entrypoint, *cmd;
    const char *user, *workdir;
};

/* clang-format off */
static const struct json_field settings_fields[] = {
    {"env",        JSON_FIELD_STRLIST, offsetof(struct settings, env),        0, IMAGE_WORDS_MAX, true, NULL},
    {"user",       JSON_FIELD_STR,     offsetof(struct settings, user),       0, 256, true, NULL},
    {"workdir",    JSON_FIELD_STR,     offsetof(struct settings, workdir),    0, INIT_PATH_MAX - 1, true, NULL},
    {"entrypoint", JSON_FIELD_STRLIST, offsetof(struct settings, entrypoint), 0, IMAGE_WORDS_MAX, true, NULL},
    {"cmd",        JSON_FIELD_STRLIST, offsetof(struct settings, cmd),        0, IMAGE_WORDS_MAX, true, NULL},
};

struct result {
    const char *format;
    json_t *layers, *settings;
    uint64_t bytes, files;
};
static const struct json_field result_fields[] = {
    {"format",   JSON_FIELD_STR,     offsetof(struct result, format),   1, 15, true, NULL},
    {"layers",   JSON_FIELD_STRLIST, offsetof(struct result, layers),   1, IMAGE_LAYERS_MAX, true, NULL},
    {"settings", JSON_FIELD_ANY,     offsetof(struct result, settings), 0, 0, true, NULL},
    {"bytes",    JSON_FIELD_U64,     offsetof(struct result, bytes),    0, INT64_MAX, true, NULL},
    {"files",    JSON_FIELD_U64,     offsetof(struct result, files),    0, INT64_MAX, true, NULL},
};
/* clang-format on */

void image_result_init(struct image_result *r)
{
    *r = (struct image_result){.layers = BUF_INIT(IMAGE_LAYERS_MAX * (IMAGE_CHAIN + 1)),
                               .settings = BUF_INIT(IMAGE_SETTINGS_MAX)};
}

void image_result_free(struct image_result *r)
{
    buf_free(&r->layers);
    buf_free(&r->settings);
}

static int decode(json_t *j, struct settings *s, struct err *e)
{
    const json_t *var;
    size_t i;

    if (json_decode(j, settings_fields, ARRAY_LEN(settings_fields), s, e) < 0)
        return err_wrap(e, "the image's settings");
    if (*s->workdir != '\0' && *s->workdir != '/')
        return err_set(e, ERR_INVALID, "the image's workdir '%.200s' is not absolute", s->workdir);
    json_array_foreach(s->env, i, var)
    {
        const char *text = json_string_value(var), *eq = strchr(text, '=');

        if (eq == NULL || eq == text)
            return err_set(e, ERR_INVALID, "the image's env: '%.40s' is not NAME=value", text);
    }
    return 0;
}

static void put_words(struct json_w *w, const char *key, const json_t *list)
{
    const json_t *s;
    size_t i;

    jw_key(w, key);
    jw_open_list(w);
    json_array_foreach(list, i, s) jw_str(w, json_string_value(s));
    jw_close_list(w);
}

/* Written anew: only what was checked is kept. */
static int put_settings(struct buf *out, const struct settings *s, struct err *e)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    put_words(&w, "env", s->env);
    jw_kstr(&w, "user", s->user);
    jw_kstr(&w, "workdir", s->workdir);
    put_words(&w, "entrypoint", s->entrypoint);
    put_words(&w, "cmd", s->cmd);
    jw_close(&w);
    return out->failed ? err_set(e, ERR_TOO_LARGE,
                                 "the image's env, entrypoint and cmd take more "
                                 "than %u bytes",
                                 IMAGE_SETTINGS_MAX)
                       : 0;
}

static int put_layers(struct buf *out, const json_t *list, struct err *e)
{
    const json_t *s;
    size_t i;

    json_array_foreach(list, i, s) wire_strv_add(out, json_string_value(s));
    return out->failed || json_array_size(list) == 0
               ? err_set(e, ERR_INVALID, "invalid list of layers from cove-helper")
               : 0;
}

int image_result_read(const char *text, size_t len, struct image_result *ret, struct err *e)
{
    autojson json_t *j = NULL;
    struct result r = {0};
    struct settings s = {0};

    if (json_parse(text, len, &j, e) < 0 ||
        json_decode(j, result_fields, ARRAY_LEN(result_fields), &r, e) < 0)
        return err_wrap(e, "result of cove-helper");
    if (decode(r.settings, &s, e) < 0)
        return -1;
    str_fmt(ret->format, sizeof(ret->format), "%s", r.format);
    ret->bytes = r.bytes;
    ret->files = r.files;
    return put_layers(&ret->layers, r.layers, e) < 0 || put_settings(&ret->settings, &s, e) < 0 ? -1
                                                                                                : 0;
}

int image_defaults(const char *text, size_t len, struct buf *out, struct err *e)
{
    autojson json_t *j = NULL;
    struct settings s = {0};
    const json_t *v;
    const char *colon;
    size_t i, n;

    if (json_parse(text, len, &j, e) < 0 || decode(j, &s, e) < 0)
        return -1;
    /* Init reads a name, "uid" or "uid:gid"; of "name:group" the name is enough, since its entry
     * in passwd names the group. */
    colon = strchr(s.user, ':');
    n = strlen(s.user);
    if (colon != NULL && strspn(s.user, "0123456789:") != n)
        n = (size_t)(colon - s.user);
    if (n == 0 || n > INIT_USER_MAX)
        buf_adds(out, "root");
    else
        buf_add(out, s.user, n);
    buf_addc(out, '\0');
    wire_strv_add(out, *s.workdir != '\0' ? s.workdir : "/");
    json_array_foreach(s.env, i, v) wire_strv_add(out, json_string_value(v));
    return out->failed ? err_set(e, ERR_INTERNAL, "the image's settings are too long") : 0;
}
