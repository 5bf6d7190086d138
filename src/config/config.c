/* config.c - see config.h. */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

#define CONFIG_FILE_MAX (64u << 10)

/* clang-format off */
const struct config_key config_keys[] = {
#define X(type, member, name, def, min, max, doc) {name, CONFIG_##type, offsetof(struct config, member), def, min, max, doc},
    CONFIG_KEYS(X)
#undef X
};
/* clang-format on */
const size_t config_nkeys = ARRAY_LEN(config_keys);
_Static_assert(ARRAY_LEN(config_keys) == CONFIG_COUNT,
               "the keeper passes CONFIG_COUNT settings on");

static int bad(const struct config_key *k, const char *value, const char *want, struct err *e)
{
    return err_set(e, ERR_INVALID, "%s: '%.60s' is not %s", k->name, value, want);
}

static int set_text(struct config *c, const struct config_key *k, const char *value, struct err *e)
{
    char **to = (char **)(void *)((char *)c + k->offset);
    char *copy;

    if (strlen(value) >= CONFIG_TEXT_MAX)
        return err_set(e, ERR_INVALID, "%s: longer than %d bytes", k->name, CONFIG_TEXT_MAX - 1);
    copy = strdup(value);
    if (copy == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    free(*to);
    *to = copy;
    return 0;
}

static int set(struct config *c, const struct config_key *k, const char *value, struct err *e)
{
    uint64_t v = 0;

    if (k->type == CONFIG_TEXT)
        return set_text(c, k, value, e);
    if (k->type == CONFIG_NUMBER && str_u64(value, UINT64_MAX, &v) < 0)
        return bad(k, value, "a number", e);
    if (k->type == CONFIG_SIZE && str_size(value, &v) < 0)
        return bad(k, value, "a size such as 512M or 2G", e);
    if (k->type == CONFIG_DURATION && str_duration_ms(value, &v) < 0)
        return bad(k, value, "a duration such as 30s, 5m or 2h", e);
    if (v < k->min || v > k->max)
        return err_set(e, ERR_INVALID, "%s: %s is not between %llu and %llu", k->name, value,
                       (unsigned long long)k->min, (unsigned long long)k->max);
    memcpy((char *)c + k->offset, &v, sizeof(v));
    return 0;
}

/* Settings that were renamed: command lines and files of earlier releases keep working. */
static const struct {
    const char *old, *name;
} renamed[] = {{"bridge-idle", "cloudflare-idle"}, {"bridge-template", "cloudflare-template"}};

static const struct config_key *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
        if (strcmp(renamed[i].old, name) == 0)
            name = renamed[i].name;
    for (size_t i = 0; i < config_nkeys; i++)
        if (strcmp(config_keys[i].name, name) == 0)
            return &config_keys[i];
    return NULL;
}

static char *trim(char *s)
{
    char *end;

    while (isspace((unsigned char)*s))
        s++;
    end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return s;
}

static int read_line(struct config *c, char *line, struct err *e)
{
    const struct config_key *k;
    char *eq, *name;

    line = trim(line);
    if (*line == '\0' || *line == '#')
        return 0;
    eq = strchr(line, '=');
    if (eq == NULL)
        return err_set(e, ERR_INVALID, "'%.60s' is not `name = value`", line);
    *eq = '\0';
    name = trim(line);
    k = find(name);
    if (k == NULL)
        return err_set(e, ERR_INVALID, "unknown setting '%.60s' (see `cove serve --help`)", name);
    return set(c, k, trim(eq + 1), e);
}

static int read_file(struct config *c, const char *path, struct err *e)
{
    autofree char *text = malloc(CONFIG_FILE_MAX);
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *rest = text, *line;
    ssize_t n;
    int number = 0;

    if (fd < 0)
        return err_set(e, ERR_INVALID, "config file %s: %s", path, strerror(errno));
    if (text == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    n = read(fd, text, CONFIG_FILE_MAX);
    if (n < 0)
        return err_sys(e, "read %s", path);
    if (n == (ssize_t)CONFIG_FILE_MAX)
        return err_set(e, ERR_INVALID, "%s is longer than %u bytes", path, CONFIG_FILE_MAX - 1);
    text[n] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL) {
        number++;
        if (read_line(c, line, e) < 0)
            return err_wrap(e, "%s, line %d", path, number);
    }
    return 0;
}

/* Both --name value and --name=value. Returns how many arguments were used. */
static int split_arg(int argc, char *const *argv, char name[64], const char **value, struct err *e)
{
    const char *eq = strchr(argv[0], '=');
    size_t n;

    if (strncmp(argv[0], "--", 2) != 0)
        return err_set(e, ERR_INVALID, "unexpected argument '%.60s'", argv[0]);
    n = eq != NULL ? (size_t)(eq - argv[0]) - 2 : strlen(argv[0]) - 2;
    if (n >= 64)
        return err_set(e, ERR_INVALID, "unknown option '%.60s'", argv[0]);
    memcpy(name, argv[0] + 2, n);
    name[n] = '\0';
    if (eq != NULL) {
        *value = eq + 1;
        return 1;
    }
    *value = argc > 1 ? argv[1] : NULL;
    return 2;
}

static int read_args(struct config *c, int argc, char *const *argv, bool files, struct err *e)
{
    for (int i = 0, used; i < argc; i += used) {
        const struct config_key *k;
        const char *value = NULL;
        char name[64];

        used = split_arg(argc - i, argv + i, name, &value, e);
        if (used < 0)
            return -1;
        k = find(name);
        if (k == NULL && strcmp(name, "config") != 0)
            return err_set(e, ERR_INVALID, "unknown option '--%s' (see `cove serve --help`)", name);
        if (value == NULL)
            return err_set(e, ERR_INVALID, "--%s needs a value", name);
        if (k == NULL && files && read_file(c, value, e) < 0)
            return -1;
        if (k != NULL && !files && set(c, k, value, e) < 0)
            return -1;
    }
    return 0;
}

int config_load(struct config *c, int argc, char *const *argv, struct err *e)
{
    memset(c, 0, sizeof(*c));
    for (size_t i = 0; i < config_nkeys; i++)
        if (set(c, &config_keys[i], config_keys[i].def, e) < 0)
            return -1;
    if (read_args(c, argc, argv, true, e) < 0 || read_args(c, argc, argv, false, e) < 0)
        return -1;
    return 0;
}

void config_free(struct config *c)
{
    for (size_t i = 0; i < config_nkeys; i++) {
        if (config_keys[i].type == CONFIG_TEXT) {
            char **p = (char **)(void *)((char *)c + config_keys[i].offset);

            free(*p);
            *p = NULL;
        }
    }
}

void config_value(const struct config *c, const struct config_key *k, char out[CONFIG_TEXT_MAX])
{
    const void *at = (const char *)c + k->offset;
    uint64_t v;

    if (k->type == CONFIG_TEXT) {
        str_fmt(out, CONFIG_TEXT_MAX, "%s", *(char *const *)at);
        return;
    }
    memcpy(&v, at, sizeof(v));
    str_fmt(out, CONFIG_TEXT_MAX, k->type == CONFIG_DURATION ? "%llums" : "%llu",
            (unsigned long long)v);
}

char **config_argv(const struct config *c)
{
    size_t slot = CONFIG_TEXT_MAX + 80;
    char **argv = malloc((config_nkeys + 1) * sizeof(char *) + config_nkeys * slot);
    char *text = (char *)(argv + config_nkeys + 1);

    if (argv == NULL)
        return NULL;
    for (size_t i = 0; i < config_nkeys; i++, text += slot) {
        char value[CONFIG_TEXT_MAX];

        config_value(c, &config_keys[i], value);
        str_fmt(text, slot, "--%s=%s", config_keys[i].name, value);
        argv[i] = text;
    }
    argv[config_nkeys] = NULL;
    return argv;
}

bool config_accepts(const struct config *c, const char *what)
{
    size_t n = strlen(what);

    for (const char *p = c->accept; *p != '\0'; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, what, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

#define DOC_MAX 4096u

void config_help(struct buf *out)
{
    buf_adds(out, "  --config FILE            read settings from FILE first\n");
    for (size_t i = 0; i < config_nkeys; i++) {
        const struct config_key *k = &config_keys[i];
        autobuf struct buf doc = BUF_INIT(DOC_MAX);
        char left[64];

        str_fmt(left, sizeof(left), "  --%s %s", k->name,
                k->type == CONFIG_NUMBER     ? "N"
                : k->type == CONFIG_SIZE     ? "SIZE"
                : k->type == CONFIG_DURATION ? "TIME"
                                             : "TEXT");
        buf_adds(&doc, k->doc);
        if (*k->def != '\0')
            buf_addf(&doc, " [%s]", k->def);
        buf_add_columns(out, left, 27, buf_cstr(&doc));
    }
}
