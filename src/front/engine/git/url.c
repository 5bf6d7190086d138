/* url.c - where to clone from, as callers write it; see git.h. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/git.h"

static bool is_http(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

static int decode(const char *from, size_t n, char *out, struct err *e)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        int hi = 0, lo = 0;

        if (len >= GIT_SECRET_MAX)
            return err_set(e, ERR_INVALID, "url: its credentials are too long");
        if (from[i] != '%') {
            out[len++] = from[i];
            continue;
        }
        hi = i + 2 < n ? str_hex_digit((unsigned char)from[i + 1]) : -1;
        lo = i + 2 < n ? str_hex_digit((unsigned char)from[i + 2]) : -1;
        if (hi < 0 || lo < 0 || (hi | lo) == 0)
            return err_set(e, ERR_INVALID, "url: bad percent-encoding in the credentials");
        out[len++] = (char)(hi << 4 | lo);
        i += 2;
    }
    out[len] = '\0';
    return 0;
}

/* "user:password@" out of http://user:password@host/..., where it would be stored in
 * the repository's settings and shown by ps. */
static int take_userinfo(const char *url, char *out, char *username, char *password, struct err *e)
{
    const char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/?#"), *at = NULL;
    const char *colon;

    for (const char *p = host; p < end; p++)
        if (*p == '@')
            at = p;
    if (at == NULL) {
        str_fmt(out, GIT_URL_MAX + 1, "%s", url);
        return 0;
    }
    colon = memchr(host, ':', (size_t)(at - host));
    if (*username == '\0' &&
        decode(host, (size_t)((colon != NULL ? colon : at) - host), username, e) < 0)
        return -1;
    if (*password == '\0' && colon != NULL &&
        decode(colon + 1, (size_t)(at - colon - 1), password, e) < 0)
        return -1;
    str_fmt(out, GIT_URL_MAX + 1, "%.*s%s", (int)(host - url), url, at + 1);
    return 0;
}

int git_url(const char *url, char out[GIT_URL_MAX + 1], char *username, char *password,
            struct err *e)
{
    size_t n = strlen(url);

    if (n == 0 || n > GIT_URL_MAX)
        return err_set(e, ERR_INVALID, "url: expected 1 to %u bytes", GIT_URL_MAX);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] <= 0x20 || url[i] == 0x7f)
            return err_set(e, ERR_INVALID, "url: must not contain spaces or control characters");
    if (url[0] == '-')
        return err_set(e, ERR_INVALID, "url: must not begin with '-'");
    if (is_http(url))
        return take_userinfo(url, out, username, password, e);
    if (*password != '\0')
        return err_set(e, ERR_INVALID, "username and password: only for http and https URLs");
    str_fmt(out, GIT_URL_MAX + 1, "%s", url);
    return 0;
}

void git_url_name(const char *url, char *out, size_t room)
{
    const char *end = url + strcspn(url, "?#"), *p;

    while (end > url && end[-1] == '/')
        end--;
    if (end - url > 4 && strncmp(end - 4, ".git", 4) == 0)
        end -= 4;
    while (end > url && end[-1] == '/')
        end--;
    for (p = end; p > url && p[-1] != '/' && p[-1] != ':';)
        p--;
    snprintf(out, room, "%.*s", (int)(end - p), p);
    if (*out == '\0' || *out == '-' || strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
        snprintf(out, room, "repository");
}

int git_check_rev(const char *what, const char *rev, struct err *e)
{
    size_t n = strlen(rev);

    if (n == 0 || n > 512 || rev[0] == '-')
        return err_set(e, ERR_INVALID, "%s: expected the name of a commit, at most 512 bytes",
                       what);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)rev[i] < 0x20 || rev[i] == 0x7f)
            return err_set(e, ERR_INVALID, "%s: must not contain control characters", what);
    return 0;
}
