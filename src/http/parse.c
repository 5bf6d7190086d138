/* parse.c - see parse.h. */
#include "http/parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"

_Static_assert(HTTP_HEAD_MAX <= UINT16_MAX, "struct http_span counts in 16 bits");

#define METHOD_MAX 32

struct scan {
    const char *p;
    size_t n, at;
    struct http_msg *m;
    struct http_fault *f;
    struct http_span host_field;
    unsigned hosts;
};

int http_refuse(struct http_fault *f, int status, const char *why)
{
    *f = (struct http_fault){.status = status, .why = why};
    return -1;
}

bool http_is_tchar(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c > 0x20 && c < 0x7f && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_text(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct http_span span(size_t from, size_t to)
{
    return (struct http_span){.at = (uint16_t)from, .len = (uint16_t)(to - from)};
}

static bool span_is(const char *head, struct http_span s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(head + s.at, word, s.len) == 0;
}

bool http_list_has(const char *list, size_t len, const char *token)
{
    const char *end = list + len;
    size_t want = strlen(token);

    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma != NULL ? comma : end;

        while (list < stop && (*list == ' ' || *list == '\t'))
            list++;
        while (stop > list && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        if ((size_t)(stop - list) == want && strncasecmp(list, token, want) == 0)
            return true;
        list = comma != NULL ? comma + 1 : end;
    }
    return false;
}

/* ---- where a head ends ---- */

static int too_long(const char *p, struct http_fault *f)
{
    if (memchr(p, '\n', HTTP_TARGET_MAX) == NULL)
        return http_refuse(f, 414, "the request line is too long");
    return http_refuse(f, 431, "the head is too large");
}

int http_head_end(const char *p, size_t n, size_t *scanned, size_t *ret_len, struct http_fault *f)
{
    size_t i = *scanned;
    const char *lf;

    /* TLS and other protocols are refused before a line ends. */
    if (n > 0 && !http_is_tchar((unsigned char)p[0]))
        return http_refuse(f, 400, "this is not an HTTP request");
    while (i < n && (lf = memchr(p + i, '\n', n - i)) != NULL) {
        size_t at = (size_t)(lf - p);

        if (at >= HTTP_HEAD_MAX)
            return too_long(p, f);
        if (p[at - 1] != '\r')
            return http_refuse(f, 400, "a line of the head does not end in CR LF");
        i = *scanned = at + 1;
        if (at >= 3 && p[at - 2] == '\n') {
            *ret_len = at + 1;
            return 1;
        }
    }
    *scanned = n;
    return n >= HTTP_HEAD_MAX ? too_long(p, f) : 0;
}

/* ---- the first line ---- */

static int parse_version(struct scan *s)
{
    const char *v = s->p + s->at;

    if (s->n - s->at < 8 || memcmp(v, "HTTP/", 5) != 0 || !is_digit(v[5]) || v[6] != '.' ||
        !is_digit(v[7]))
        return http_refuse(s->f, 400, "the first line has no valid HTTP version");
    if (v[5] != '1' || v[7] > '1')
        return http_refuse(s->f, 505, "only HTTP/1.0 and HTTP/1.1 are supported");
    s->m->minor = (unsigned)(v[7] - '0');
    s->at += 8;
    return 0;
}

static int end_line(struct scan *s)
{
    if (s->n - s->at < 2 || s->p[s->at] != '\r' || s->p[s->at + 1] != '\n')
        return http_refuse(s->f, 400, "the first line is malformed");
    s->at += 2;
    return 0;
}

/* Upper case only, as nginx: methods are case-sensitive and all known ones are. */
static int parse_method(struct scan *s)
{
    size_t from = s->at;
    char c;

    while ((c = s->p[s->at]), (c >= 'A' && c <= 'Z') || c == '-' || c == '_')
        s->at++;
    s->m->method = span(from, s->at);
    if (c != ' ' || s->at == from || s->at - from > METHOD_MAX)
        return http_refuse(s->f, 400, "the method is malformed");
    s->at++;
    if (span_is(s->p, s->m->method, "CONNECT") || span_is(s->p, s->m->method, "TRACE"))
        return http_refuse(s->f, 405, "this method is not supported");
    return 0;
}

/* Origin form (/path?query) or absolute form (http://host/path?query). Bytes above 0x7f are
 * allowed: curl sends a UTF-8 path as it was typed. */
static int parse_target(struct scan *s)
{
    size_t at = s->at, end, from;
    unsigned char c;

    while ((c = (unsigned char)s->p[s->at]) > 0x20 && c != 0x7f && c != '#')
        s->at++;
    end = s->at;
    s->m->target = span(at, end);
    if (c != ' ' || end == at)
        return http_refuse(s->f, 400, "the target is malformed");
    if (end - at > HTTP_TARGET_MAX)
        return http_refuse(s->f, 414, "the target is too long");
    s->at++;
    if (s->p[at] != '/') {
        if (end - at >= 7 && strncasecmp(s->p + at, "http://", 7) == 0)
            at += 7;
        else if (end - at >= 8 && strncasecmp(s->p + at, "https://", 8) == 0)
            at += 8;
        else
            return http_refuse(s->f, 400, "the target is neither a path nor an http URL");
        for (from = at; at < end && s->p[at] != '/' && s->p[at] != '?';)
            at++;
        s->m->host = span(from, at);
    }
    for (from = at; at < end && s->p[at] != '?';)
        at++;
    s->m->path = span(from, at);
    s->m->query = at < end ? span(at + 1, end) : span(end, end);
    return 0;
}

static int parse_status_line(struct scan *s)
{
    const char *d;

    if (parse_version(s) < 0)
        return -1;
    d = s->p + s->at;
    if (s->n - s->at < 6 || d[0] != ' ' || d[1] < '1' || d[1] > '9' || !is_digit(d[2]) ||
        !is_digit(d[3]))
        return http_refuse(s->f, 502, "the status line is malformed");
    s->m->status = (d[1] - '0') * 100 + (d[2] - '0') * 10 + (d[3] - '0');
    s->at += 4;
    if (s->p[s->at] == ' ')
        while (is_text((unsigned char)s->p[s->at]))
            s->at++;
    return end_line(s);
}

/* ---- fields that decide how the rest is read ---- */

static int parse_host(struct scan *s, struct http_span v)
{
    s->hosts++;
    s->host_field = v;
    return 0;
}

static int parse_content_length(struct scan *s, struct http_span v)
{
    int64_t len = 0;

    if (s->m->content_length >= 0)
        return http_refuse(s->f, 400, "two Content-Length headers");
    for (size_t i = v.at; i < (size_t)v.at + v.len; i++)
        if (!is_digit(s->p[i]) || __builtin_mul_overflow(len, 10, &len) ||
            __builtin_add_overflow(len, s->p[i] - '0', &len))
            return http_refuse(s->f, 400, "Content-Length is too large");
    if (v.len == 0 || s->p[v.at + v.len] != '\r')
        return http_refuse(s->f, 400, "Content-Length is malformed");
    s->m->content_length = len;
    return 0;
}

static int parse_transfer_encoding(struct scan *s, struct http_span v)
{
    if (s->m->chunked)
        return http_refuse(s->f, 400, "two Transfer-Encoding headers");
    if (s->m->minor == 0)
        return http_refuse(s->f, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (!span_is(s->p, v, "chunked"))
        return http_refuse(s->f, 501, "only the Transfer-Encoding chunked is supported");
    s->m->chunked = true;
    return 0;
}

static int parse_connection(struct scan *s, struct http_span v)
{
    const char *list = s->p + v.at;

    s->m->close |= http_list_has(list, v.len, "close");
    s->m->keep_alive |= http_list_has(list, v.len, "keep-alive");
    s->m->upgrade |= http_list_has(list, v.len, "upgrade");
    return 0;
}

static int parse_expect(struct scan *s, struct http_span v)
{
    if (!span_is(s->p, v, "100-continue"))
        return http_refuse(s->f, 417, "only the expectation 100-continue is supported");
    s->m->expect_continue = s->m->minor > 0;
    return 0;
}

/* clang-format off */
static const struct {
    const char *name;
    bool in_response;
    int (*parse)(struct scan *s, struct http_span v);
} known[] = {
    {"host",              false, parse_host},
    {"content-length",    true,  parse_content_length},
    {"transfer-encoding", true,  parse_transfer_encoding},
    {"connection",        true,  parse_connection},
    {"expect",            false, parse_expect},
};
/* clang-format on */

/* Every scan stops at a CR, and the head ends in CR LF CR LF, so no look-ahead reads past it. */
static int parse_fields(struct scan *s)
{
    const char *p = s->p;

    while (p[s->at] != '\r') {
        struct http_field *field = &s->m->fields[s->m->nfields];
        size_t from = s->at, to;

        if (s->m->nfields == HTTP_HEADERS_MAX)
            return http_refuse(s->f, 431, "too many headers");
        while (http_is_tchar((unsigned char)p[s->at]))
            s->at++;
        if (p[s->at] != ':' || s->at == from)
            return http_refuse(s->f, 400, "a header name is malformed");
        field->name = span(from, s->at);
        from = ++s->at;
        while (is_text((unsigned char)p[s->at]))
            s->at++;
        to = s->at;
        if (p[to] != '\r' || p[to + 1] != '\n')
            return http_refuse(s->f, 400, "a header value holds a control character");
        while (from < to && (p[from] == ' ' || p[from] == '\t'))
            from++;
        while (to > from && (p[to - 1] == ' ' || p[to - 1] == '\t'))
            to--;
        field->value = span(from, to);
        s->at += 2;
        s->m->nfields++;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            if (span_is(p, field->name, known[i].name) &&
                (s->m->status == 0 || known[i].in_response) && known[i].parse(s, field->value) < 0)
                return -1;
    }
    if (s->at + 2 != s->n || p[s->at + 1] != '\n')
        return http_refuse(s->f, 400, "the head holds a CR without LF");
    if (s->m->chunked && s->m->content_length >= 0)
        return http_refuse(s->f, 400, "Content-Length together with Transfer-Encoding");
    return 0;
}

/* ---- the host ---- */

/* A name, an IPv4 address or a bracketed IPv6 one, then perhaps a port. */
static bool is_host(const char *p, size_t n)
{
    size_t i = 0, digits = 0;
    unsigned port = 0;

    if (n > 0 && p[0] == '[') {
        for (i = 1; i < n && p[i] != '\0' && strchr("0123456789abcdefABCDEF:.", p[i]) != NULL;)
            i++;
        if (i <= 2 || i == n || p[i++] != ']')
            return false;
    } else {
        for (; i < n && p[i] != ':'; i++) {
            char c = p[i];
            bool label = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         c == '-' || c == '_';

            if (!label && (c != '.' || i == 0 || p[i - 1] == '.'))
                return false;
        }
        if (i == 0)
            return false;
    }
    if (i == n)
        return true;
    if (p[i++] != ':')
        return false;
    for (; i < n; i++) {
        if (!is_digit(p[i]) || ++digits > 5)
            return false;
        port = port * 10 + (unsigned)(p[i] - '0');
    }
    return digits > 0 && port <= 65535;
}

static int settle_host(struct scan *s)
{
    struct http_span *h = &s->m->host;
    bool absolute = s->p[s->m->target.at] != '/';

    if (s->hosts > 1)
        return http_refuse(s->f, 400, "two Host headers");
    if (s->hosts == 0 && s->m->minor > 0)
        return http_refuse(s->f, 400, "no Host header");
    if (s->hosts == 1 && !is_host(s->p + s->host_field.at, s->host_field.len))
        return http_refuse(s->f, 400, "the Host header is malformed");
    if (absolute && !is_host(s->p + h->at, h->len))
        return http_refuse(s->f, 400, "the host of the target is malformed");
    if (absolute && s->hosts == 1 &&
        (h->len != s->host_field.len ||
         strncasecmp(s->p + h->at, s->p + s->host_field.at, h->len) != 0))
        return http_refuse(s->f, 400, "Host and the host of the target differ");
    if (!absolute)
        *h = s->host_field;
    return 0;
}

static struct scan scan_begin(const char *p, size_t n, struct http_msg *m, struct http_fault *f)
{
    size_t fields = offsetof(struct http_msg, fields);

    memset(m, 0, fields); /* the array of fields is not cleared, only its count */
    m->content_length = -1;
    return (struct scan){.p = p, .n = n, .m = m, .f = f};
}

static bool is_delimited(const char *p, size_t n)
{
    return n >= 4 && n <= HTTP_HEAD_MAX && memcmp(p + n - 4, "\r\n\r\n", 4) == 0;
}

int http_parse_request_head(const char *p, size_t n, struct http_msg *ret, struct http_fault *f)
{
    struct scan s = scan_begin(p, n, ret, f);

    if (!is_delimited(p, n))
        return http_refuse(f, 400, "the head is not complete");
    if (parse_method(&s) < 0 || parse_target(&s) < 0 || parse_version(&s) < 0 || end_line(&s) < 0 ||
        parse_fields(&s) < 0)
        return -1;
    return settle_host(&s);
}

int http_parse_response_head(const char *p, size_t n, struct http_msg *ret, struct http_fault *f)
{
    struct scan s = scan_begin(p, n, ret, f);

    if (!is_delimited(p, n))
        return http_refuse(f, 502, "the head is not complete");
    if (parse_status_line(&s) < 0 || parse_fields(&s) < 0) {
        f->status = 502; /* every fault is the server's */
        return -1;
    }
    return 0;
}

int http_field_find(const struct http_msg *m, const char *head, const char *name,
                    struct http_span *ret)
{
    int found = 0;

    for (size_t i = 0; i < m->nfields; i++) {
        if (!span_is(head, m->fields[i].name, name))
            continue;
        if (found != 0)
            return -1;
        *ret = m->fields[i].value;
        found = 1;
    }
    return found;
}

enum http_framing http_response_framing(const struct http_msg *m, bool head_request)
{
    if (head_request || m->status < 200 || m->status == 204 || m->status == 304)
        return HTTP_BODY_NONE;
    if (m->chunked)
        return HTTP_BODY_CHUNKED;
    return m->content_length >= 0 ? HTTP_BODY_LENGTH : HTTP_BODY_UNTIL_CLOSE;
}
