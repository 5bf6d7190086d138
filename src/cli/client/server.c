/* server.c - finds the URL and the API key of the server. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/client/client.h"
#include "cli/client/contexts.h"
#include "json/read.h"

/* Written by `cove serve`, readable by root: url=http://HOST:PORT and key_file=PATH */
#define DEFAULT_FILE "/run/cove/default"
#define FILE_MAX 4096

int server_parse_url(struct server *s, const char *url, struct err *e)
{
    const char *at = url, *end, *colon;
    uint64_t port;
    size_t n;

    s->as[0] = '\0';

    if (strncmp(url, "https://", 8) == 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "'%.100s': the CLI does not support TLS; use an http:// URL", url);
    if (strncmp(url, "http://", 7) == 0)
        at += 7;
    end = at + strcspn(at, "/?#");
    if (*end != '\0' && strcmp(end, "/") != 0)
        return err_set(e, ERR_INVALID, "'%.100s' is not http://HOST:PORT", url);
    colon = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : at;
    if (colon != NULL)
        colon = memchr(colon, ':', (size_t)(end - colon));
    n = (size_t)((colon != NULL ? colon : end) - at);
    if (*at == '[' && n >= 2 && at[n - 1] == ']') { /* getaddrinfo wants it bare */
        at++;
        n -= 2;
    }
    if (n == 0 || n >= sizeof(s->host))
        return err_set(e, ERR_INVALID, "'%.100s' has no host, or one that is too long", url);
    memcpy(s->host, at, n);
    s->host[n] = '\0';
    snprintf(s->port, sizeof(s->port), "%.*s", colon != NULL ? (int)(end - colon - 1) : 2,
             colon != NULL ? colon + 1 : "80");
    if (str_u64(s->port, 65535, &port) < 0 || port == 0)
        return err_set(e, ERR_INVALID, "'%.100s' has no valid port", url);
    return 0;
}

static int read_small(const char *path, char out[FILE_MAX], struct err *e)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return err_sys(e, "open %s", path);
    n = read(fd, out, FILE_MAX - 1);
    if (n < 0)
        return err_sys(e, "read %s", path);
    out[n] = '\0';
    return 0;
}

/* The value of the line NAME=VALUE in `text`, or "". */
static void line_value(const char *text, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);

    out[0] = '\0';
    for (const char *p = text; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n')
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            snprintf(out, room, "%.*s", (int)strcspn(p + n + 1, "\n"), p + n + 1);
}

static int set_key(struct server *s, const char *key, struct err *e)
{
    size_t n = strcspn(key, "\r\n");

    if (n == 0 || n >= sizeof(s->key))
        return err_set(e, ERR_INVALID, "the API key is empty or longer than %d characters",
                       CLIENT_KEY_MAX - 1);
    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return err_set(e, ERR_INVALID,
                           "the API key contains a blank, a control or a non-ASCII character");
    memcpy(s->key, key, n);
    s->key[n] = '\0';
    return 0;
}

int server_from_context(struct server *s, json_t *contexts, const char *name, struct err *e)
{
    json_t *one = json_object_get(json_object_get(contexts, "contexts"), name);
    const char *url = json_string_value(json_object_get(one, "url"));
    const char *key = json_string_value(json_object_get(one, "key"));

    if (one == NULL)
        return err_set(e, ERR_NOT_FOUND, "no context '%.80s'; `cove context list` shows them",
                       name);
    if (url == NULL || key == NULL || server_parse_url(s, url, e) < 0)
        return err_set(e, ERR_INVALID,
                       "context '%.80s' has no valid URL or key; `cove context add` replaces it",
                       name);
    return set_key(s, key, e);
}

/* 1: the server of the context that was asked for, or of the current one; 0: there is none. */
static int find_context(struct server *ret, struct err *e)
{
    const char *name = getenv("COVE_CONTEXT");
    autojson json_t *all = NULL;

    if (name == NULL && getenv("HOME") == NULL && getenv("XDG_CONFIG_HOME") == NULL)
        return 0;
    if (contexts_load(&all, e) < 0)
        return -1;
    if (name == NULL)
        name = json_string_value(json_object_get(all, "current"));
    if (name == NULL || *name == '\0')
        return 0;
    return server_from_context(ret, all, name, e) < 0 ? -1 : 1;
}

static int find(struct server *ret, struct err *e)
{
    const char *env_url = getenv("COVE_URL"), *env_key = getenv("COVE_API_KEY");
    char text[FILE_MAX] = "", url[512], key_file[1024];
    struct err ignored;
    int found = 0;

    if (env_url != NULL && env_key != NULL)
        return server_parse_url(ret, env_url, e) < 0 ? -1 : set_key(ret, env_key, e);
    if (env_url == NULL && (found = find_context(ret, e)) != 0)
        return found < 0 ? -1 : 0;
    if (read_small(DEFAULT_FILE, text, &ignored) < 0 && env_url == NULL)
        return err_set(e, ERR_UNAVAILABLE,
                       "no server found; start one with `cove serve`, add one with `cove context "
                       "add`, or set COVE_URL and COVE_API_KEY");
    line_value(text, "url", url, sizeof(url));
    line_value(text, "key_file", key_file, sizeof(key_file));
    /* never send root's key to another server that COVE_URL names */
    if (env_url != NULL && env_key == NULL && strcmp(env_url, url) != 0)
        return err_set(e, ERR_UNAUTHORIZED, "COVE_URL is set, but COVE_API_KEY is not; set both");
    if (server_parse_url(ret, url, e) < 0)
        return err_wrap(e, DEFAULT_FILE);
    if (env_key != NULL)
        return set_key(ret, env_key, e);
    if (read_small(key_file, text, e) < 0)
        return err_wrap(e, "read the API key of %s", url);
    return set_key(ret, text, e);
}

/* A key has an id of letters and digits: nothing else may get into a header. */
static int set_as(struct server *s, const char *as, struct err *e)
{
    for (size_t i = 0; as[i] != '\0'; i++)
        if (i + 1 >= sizeof(s->as) || as[i] <= ' ' || as[i] > '~')
            return err_set(e, ERR_INVALID, "--as: '%.60s' is no id of a key; see `cove key list`",
                           as);
    strcpy(s->as, as);
    return 0;
}

int server_find(struct server *ret, struct err *e)
{
    const char *as = getenv("COVE_AS");

    return find(ret, e) < 0 ? -1 : set_as(ret, as != NULL ? as : "", e);
}
