/* template_system.c - see template_system.h. */
#include "keeper/images/template_system.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define ACCOUNT_FIRST 100 /* ids below are fixed by Debian's base-passwd, and written by us */
#define ACCOUNT_LAST 999

/* ---- accounts ---- */

static void read_file(const char *path, struct buf *out)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    while (fd >= 0) {
        char *room = buf_room(out, 65536);

        if (room == NULL || (n = read(fd, room, 65536)) <= 0)
            return;
        buf_added(out, (size_t)n);
    }
}

static bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), m = strlen(with);

    return n > m && strcmp(s + n - m, with) == 0;
}

void system_account_names(struct buf *out)
{
    static const struct {
        const char *dir, *suffix;
    } from[] = {{"/var/lib/dpkg/info", ".postinst"},
                {"/var/lib/dpkg/info", ".preinst"},
                {"/usr/lib/sysusers.d", ".conf"}};
    char path[600];

    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        DIR *d = opendir(from[i].dir);

        for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
            if (!ends(de->d_name, from[i].suffix))
                continue;
            snprintf(path, sizeof(path), "%s/%.500s", from[i].dir, de->d_name);
            read_file(path, out);
        }
        if (d != NULL)
            closedir(d);
    }
    read_file("/var/lib/dpkg/statoverride", out);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* `word` stands in `text` by itself. */
static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)) != NULL; p += n)
        if ((p == text || !is_name_char(p[-1])) && !is_name_char(p[n]))
            return true;
    return false;
}

/* A line of `accounts` has this name, or this id as its third field. */
static bool has_account(const char *accounts, const char *name, unsigned long id)
{
    for (const char *line = accounts; *line != '\0';) {
        size_t len = strcspn(line, "\n"), n = strcspn(line, ":");
        const char *third = n < len ? memchr(line + n + 1, ':', len - n - 1) : NULL;

        if ((n == strlen(name) && memcmp(line, name, n) == 0) ||
            (third != NULL && strtoul(third + 1, NULL, 10) == id))
            return true;
        line += len + (line[len] == '\n');
    }
    return false;
}

void system_accounts(const char *file, const char *names, struct buf *out)
{
    bool users = ends(file, "passwd");
    FILE *f = fopen(file, "re");
    char line[1024];

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        unsigned long id, gid = 0;
        char name[64];
        int n = users ? sscanf(line, "%63[^:]:%*[^:]:%lu:%lu", name, &id, &gid)
                      : sscanf(line, "%63[^:]:%*[^:]:%lu", name, &id);

        if (n != (users ? 3 : 2) || id < ACCOUNT_FIRST || id > ACCOUNT_LAST ||
            !has_word(names, name) || has_account(buf_cstr(out), name, id))
            continue;
        if (users)
            buf_addf(out, "%s:x:%lu:%lu::/nonexistent:/usr/sbin/nologin\n", name, id, gid);
        else
            buf_addf(out, "%s:x:%lu:\n", name, id);
    }
    if (f != NULL)
        fclose(f);
}

/* ---- package sources ---- */

void system_release(const char *key, char *out, size_t room)
{
    FILE *f = fopen("/etc/os-release", "re");
    char line[300];
    size_t n = strlen(key);

    out[0] = '\0';
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char *value = line + n + 1;

        if (strncmp(line, key, n) != 0 || line[n] != '=')
            continue;
        value[strcspn(value, "\n")] = '\0';
        if (*value == '"' || *value == '\'')
            value++;
        value[strcspn(value, "\"'")] = '\0';
        snprintf(out, room, "%s", value);
    }
    if (f != NULL)
        fclose(f);
}

struct source { /* each a list of words */
    char types[32], uris[1024], suites[512], components[256], signed_by[512];
};

/* The archive's own keyring, or none named (then trusted.gpg.d, which has only the archive's). */
static bool is_archives(const struct source *s, const char *id)
{
    char prefix[128];

    snprintf(prefix, sizeof(prefix), "/usr/share/keyrings/%.40s-archive-", id);
    return s->signed_by[0] == '\0' || strncmp(s->signed_by, prefix, strlen(prefix)) == 0;
}

static bool is_plain_url(const char *uri, size_t n)
{
    const char *at = memchr(uri, '@', n);

    return at == NULL && (strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0);
}

/* Writes those URIs and suites that are the distribution's and need no account. */
static void add_source(const struct source *s, const char *id, const char *codename,
                       const struct system_settings *set, struct buf *out)
{
    autobuf struct buf uris = BUF_INIT(4096), suites = BUF_INIT(4096);
    bool security = false;
    size_t mirror = strcspn(set->apt_mirror, ",");

    if (!is_archives(s, id) || strncmp(s->types, "deb", 3) != 0)
        return;
    for (const char *p = s->suites + strspn(s->suites, " \t"); *p != '\0';) {
        size_t n = strcspn(p, " \t");

        if (strncmp(p, codename, strlen(codename)) == 0) {
            buf_addf(&suites, " %.*s", (int)n, p);
            security = security || memmem(p, n, "-security", 9) != NULL;
        }
        p += n + strspn(p + n, " \t");
    }
    for (const char *p = s->uris + strspn(s->uris, " \t"); *p != '\0';) {
        size_t n = strcspn(p, " \t");

        if (is_plain_url(p, n))
            buf_addf(&uris, " %.*s", (int)n, p);
        p += n + strspn(p + n, " \t");
    }
    if (security && set->apt_mirror[mirror] == ',') {
        buf_clear(&uris);
        buf_addf(&uris, " %s", set->apt_mirror + mirror + 1);
    } else if (!security && mirror > 0) {
        buf_clear(&uris);
        buf_addf(&uris, " %.*s", (int)mirror, set->apt_mirror);
    }
    if (uris.len == 0 || suites.len == 0)
        return;
    buf_addf(out, "Types: %s\nURIs:%s\nSuites:%s\nComponents: %s\n", s->types, buf_cstr(&uris),
             buf_cstr(&suites), s->components);
    if (s->signed_by[0] != '\0')
        buf_addf(out, "Signed-By: %s\n", s->signed_by);
    buf_adds(out, "\n");
}

/* deb [signed-by=FILE arch=...] URI SUITE COMPONENT... */
static void one_line(char *line, const char *id, const char *codename,
                     const struct system_settings *set, struct buf *out)
{
    struct source s = {0};
    char *save, *word = strtok_r(line, " \t\n", &save);

    snprintf(s.types, sizeof(s.types), "%s", word == NULL ? "" : word);
    word = strtok_r(NULL, " \t\n", &save);
    if (word != NULL && word[0] == '[') {
        for (bool last = false; word != NULL && !last; word = strtok_r(NULL, " \t\n", &save)) {
            word += word[0] == '[';
            last = ends(word, "]");
            if (last)
                word[strlen(word) - 1] = '\0';
            if (strncasecmp(word, "signed-by=", 10) == 0)
                snprintf(s.signed_by, sizeof(s.signed_by), "%s", word + 10);
        }
    }
    snprintf(s.uris, sizeof(s.uris), "%s", word == NULL ? "" : word);
    word = strtok_r(NULL, " \t\n", &save);
    snprintf(s.suites, sizeof(s.suites), "%s", word == NULL ? "" : word);
    while ((word = strtok_r(NULL, " \t\n", &save)) != NULL) {
        size_t n = strlen(s.components);

        snprintf(s.components + n, sizeof(s.components) - n, "%s%s", n > 0 ? " " : "", word);
    }
    add_source(&s, id, codename, set, out);
}

void system_sources(const char *text, const char *id, const char *codename,
                    const struct system_settings *set, struct buf *out)
{
    struct source s = {0};
    bool enabled = true, odd = false; /* odd: a key in the file itself, so a third party's */

    for (const char *p = text;; p += (*p == '\n')) {
        size_t len = strcspn(p, "\n");
        char line[2048], *value;

        snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : 0), p);
        if (strncmp(line, "deb ", 4) == 0 || strncmp(line, "deb-src ", 8) == 0) {
            one_line(line, id, codename, set, out);
        } else if (line[strspn(line, " \t")] == '\0') { /* ends a stanza */
            if (enabled && !odd)
                add_source(&s, id, codename, set, out);
            s = (struct source){0};
            enabled = true;
            odd = false;
        } else if (line[0] != '#' && (value = strchr(line, ':')) != NULL && line[0] != ' ') {
            *value++ = '\0';
            value += strspn(value, " \t");
            if (strcasecmp(line, "types") == 0)
                snprintf(s.types, sizeof(s.types), "%s", value);
            else if (strcasecmp(line, "uris") == 0)
                snprintf(s.uris, sizeof(s.uris), "%s", value);
            else if (strcasecmp(line, "suites") == 0)
                snprintf(s.suites, sizeof(s.suites), "%s", value);
            else if (strcasecmp(line, "components") == 0)
                snprintf(s.components, sizeof(s.components), "%s", value);
            else if (strcasecmp(line, "signed-by") == 0)
                snprintf(s.signed_by, sizeof(s.signed_by), "%s", value);
            else if (strcasecmp(line, "enabled") == 0)
                enabled = strcasecmp(value, "no") != 0;
        } else if (line[0] == ' ') {
            odd = true; /* a field of several lines: only keys are written so */
        }
        p += len;
        if (*p == '\0')
            break;
    }
    if (enabled && !odd)
        add_source(&s, id, codename, set, out);
}

/* ---- configuration ---- */

void system_apt_conf(const struct system_settings *s, struct buf *out)
{
    if (s->proxy[0] != '\0')
        buf_addf(out, "Acquire::http::Proxy \"%s\";\nAcquire::https::Proxy \"%s\";\n", s->proxy,
                 s->proxy);
}

void system_pip_conf(const struct system_settings *s, struct buf *out)
{
    /* The whole sandbox is disposable: pip may write to /usr/local, as `user` and as root. */
    buf_adds(out, "[global]\nbreak-system-packages = true\nroot-user-action = ignore\n"
                  "disable-pip-version-check = true\n");
    if (s->pip_index[0] != '\0')
        buf_addf(out, "index-url = %s\n", s->pip_index);
    if (strncmp(s->pip_index, "http://", 7) == 0) /* pip refuses plain HTTP otherwise */
        buf_addf(out, "trusted-host = %.*s\n", (int)strcspn(s->pip_index + 7, ":/"),
                 s->pip_index + 7);
    if (s->proxy[0] != '\0')
        buf_addf(out, "proxy = %s\n", s->proxy);
}

void system_npmrc(const struct system_settings *s, struct buf *out)
{
    /* `npm install -g` writes where `user` may write, in a directory of every PATH. */
    buf_adds(out, "prefix=/usr/local\nupdate-notifier=false\n");
    if (s->npm_registry[0] != '\0')
        buf_addf(out, "registry=%s\n", s->npm_registry);
    if (s->proxy[0] != '\0')
        buf_addf(out, "proxy=%s\nhttps-proxy=%s\n", s->proxy, s->proxy);
}

static int check_url(const char *setting, const char *url, size_t n, struct err *e)
{
    bool ok =
        (n > 7 && strncmp(url, "http://", 7) == 0) || (n > 8 && strncmp(url, "https://", 8) == 0);

    for (size_t i = 0; i < n; i++)
        ok = ok && url[i] > ' ' && url[i] < 0x7f && url[i] != '"' && url[i] != '\'';
    if (ok)
        return 0;
    return err_set(e, ERR_INVALID, "%s: '%.*s' is not an http:// or https:// URL", setting,
                   (int)(n < 80 ? n : 80), url);
}

int system_check(const struct system_settings *s, struct err *e)
{
    size_t mirror = strcspn(s->apt_mirror, ",");
    const char *security = s->apt_mirror + mirror + (s->apt_mirror[mirror] == ',');
    const struct {
        const char *setting, *url;
        size_t n;
    } urls[] = {
        {"apt-mirror", s->apt_mirror, mirror},
        {"apt-mirror", security, strlen(security)},
        {"pip-index", s->pip_index, strlen(s->pip_index)},
        {"npm-registry", s->npm_registry, strlen(s->npm_registry)},
        {"package-proxy", s->proxy, strlen(s->proxy)},
    };

    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        if (urls[i].n > 0 && check_url(urls[i].setting, urls[i].url, urls[i].n, e) < 0)
            return -1;
    return 0;
}
