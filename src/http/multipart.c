/* multipart.c - see multipart.h. */
#include "http/multipart.h"

#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/str.h"

enum state {
    PREAMBLE,       /* before the first boundary: ignored */
    AFTER_BOUNDARY, /* just after a boundary */
    DASH,           /* and after the first of the two dashes of the last one */
    AFTER_CR,       /* of the line of a boundary */
    HEAD,
    DATA,
    END,
    NO, /* refused */
};

static enum multipart_event refuse(struct multipart *m, struct http_fault *f, const char *why)
{
    m->state = NO;
    return (enum multipart_event)http_refuse(f, 400, why);
}

/* ---- "value; name=token; name=\"quoted\"" ---- */

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* A backslash escapes only these; otherwise it is part of the name. */
static bool is_escaped(const char *p)
{
    return p[0] == '\\' && p[1] != '\0' && strchr("()<>@,;:\\\"/[]?=", p[1]) != NULL;
}

/* Where the value at `p` ends, or NULL; writes as much as fits to `out`, and its length
 * to *n. */
static const char *read_value(const char *p, char *out, size_t room, size_t *n)
{
    bool quoted = *p == '"';

    *n = 0;
    p += quoted;
    while (quoted ? *p != '"' : *p != ';' && *p != ' ' && *p != '\t' && *p != '\0') {
        if (*p == '\0' || (!quoted && *p == '"'))
            return NULL;
        p += quoted && is_escaped(p);
        if (*n < room)
            out[*n] = *p;
        ++*n;
        p++;
    }
    return p + quoted;
}

/* The parameter `name` of a header's value: 1, none: 0; -1: malformed, given twice
 * or too long. */
static int find_param(const char *p, const char *name, char *out, size_t room)
{
    size_t want = strlen(name), n, len;
    int found = 0;

    for (p += strcspn(p, "; \t"); *(p = skip_blanks(p)) != '\0';) {
        char value[MULTIPART_FILENAME_MAX + 1];
        const char *key;

        if (*p != ';')
            return -1;
        key = p = skip_blanks(p + 1);
        if (*p == '\0')
            break;
        while (http_is_tchar((unsigned char)*p))
            p++;
        n = (size_t)(p - key);
        if (n == 0 || *p != '=' || (p = read_value(p + 1, value, sizeof(value), &len)) == NULL)
            return -1;
        if (n != want || strncasecmp(key, name, n) != 0)
            continue;
        if (found++ > 0 || len >= room)
            return -1;
        memcpy(out, value, len);
        out[len] = '\0';
    }
    return found;
}

static bool is_value(const char *p, const char *word)
{
    size_t n = strcspn(p, "; \t");

    return n == strlen(word) && strncasecmp(p, word, n) == 0;
}

int multipart_init(struct multipart *m, const char *type, struct http_fault *f)
{
    char boundary[MULTIPART_BOUNDARY_MAX + 1];

    m->state = PREAMBLE;
    if (type == NULL || !is_value(type, "multipart/form-data"))
        return http_refuse(f, 400, "Content-Type: expected multipart/form-data");
    if (find_param(type, "boundary", boundary, sizeof(boundary)) != 1 || *boundary == '\0')
        return http_refuse(f, 400, "Content-Type: no boundary of 1 to 70 characters");
    str_fmt(m->delimiter, sizeof(m->delimiter), "\r\n--%s", boundary);
    m->delimiter_len = strlen(m->delimiter);
    m->matched = 2; /* the first one may be where the body begins */
    m->head_len = 0;
    return 0;
}

/* ---- the head of a part ---- */

/* Forms write '"', CR and LF as %22, %0D and %0A, and nothing else. */
static void unescape(char *s)
{
    char *out = s;

    for (; *s != '\0'; s++) {
        if (strncmp(s, "%22", 3) == 0)
            *out++ = '"';
        else if (strncasecmp(s, "%0D", 3) == 0)
            *out++ = '\r';
        else if (strncasecmp(s, "%0A", 3) == 0)
            *out++ = '\n';
        else {
            *out++ = *s;
            continue;
        }
        s += 2;
    }
    *out = '\0';
}

/* "Name: value"; only Content-Disposition is used. */
static int read_line(struct multipart *m, char *line, unsigned *found)
{
    char *p = line;
    int r;

    while (http_is_tchar((unsigned char)*p))
        p++;
    if (p == line || *p != ':')
        return -1;
    *p++ = '\0';
    if (strcasecmp(line, "Content-Disposition") != 0)
        return 0;
    p += strspn(p, " \t");
    if (++*found > 1 || !is_value(p, "form-data") ||
        find_param(p, "name", m->name, sizeof(m->name)) != 1)
        return -1;
    r = find_param(p, "filename", m->filename, sizeof(m->filename));
    m->has_filename = r == 1;
    unescape(m->name);
    if (m->has_filename)
        unescape(m->filename);
    return r;
}

static enum multipart_event read_head(struct multipart *m, struct http_fault *f)
{
    char *line = m->head, *end;
    unsigned found = 0;

    for (size_t i = 0; i < m->head_len; i++)
        if (((unsigned char)m->head[i] < 0x20 && strchr("\t\r\n", m->head[i]) == NULL) ||
            m->head[i] == '\0' || m->head[i] == 0x7f)
            return refuse(m, f, "multipart: a control character in the head of a part");
    m->head[m->head_len] = '\0';
    while ((end = strstr(line, "\r\n")) != line) {
        *end = '\0';
        if (strpbrk(line, "\r\n") != NULL || read_line(m, line, &found) < 0)
            return refuse(m, f, "multipart: the head of a part is malformed");
        line = end + 2;
    }
    if (found == 0)
        return refuse(m, f, "multipart: a part without Content-Disposition");
    m->head_len = 0;
    m->state = DATA;
    return MULTIPART_PART;
}

static enum multipart_event take_head(struct multipart *m, char c, struct http_fault *f)
{
    bool whole;

    if (m->head_len == MULTIPART_HEAD_MAX)
        return refuse(m, f, "multipart: the head of a part is too long");
    m->head[m->head_len++] = c;
    whole = (m->head_len == 2 && memcmp(m->head, "\r\n", 2) == 0) ||
            (m->head_len >= 4 && memcmp(m->head + m->head_len - 4, "\r\n\r\n", 4) == 0);
    return whole ? read_head(m, f) : MULTIPART_MORE;
}

/* ---- its data ---- */

/* A delimiter has a CR only at its beginning, so after a mismatch all bytes before it
 * are data. */
static enum multipart_event take_data(struct multipart *m, const char *p, size_t n, size_t *used,
                                      struct http_str *ret)
{
    size_t i = 0;

    if (m->matched == 0 && *p != '\r') {
        const char *cr = memchr(p, '\r', n);

        *used = cr != NULL ? (size_t)(cr - p) : n;
        *ret = (struct http_str){.p = p, .len = *used};
        return MULTIPART_DATA;
    }
    while (i < n && m->matched < m->delimiter_len && p[i] == m->delimiter[m->matched]) {
        i++;
        m->matched++;
    }
    *used = i;
    if (m->matched == m->delimiter_len) {
        m->matched = 0;
        return MULTIPART_PART_END;
    }
    if (i == n)
        return MULTIPART_MORE;
    *ret = (struct http_str){.p = m->delimiter, .len = m->matched};
    m->matched = 0;
    return MULTIPART_DATA;
}

static enum multipart_event step(struct multipart *m, const char *p, size_t n, size_t *used,
                                 struct http_str *ret, struct http_fault *f)
{
    enum multipart_event ev;
    char c = *p;

    *used = 1;
    switch (m->state) {
    case PREAMBLE:
    case DATA:
        ev = take_data(m, p, n, used, ret);
        if (m->state == PREAMBLE && ev != MULTIPART_PART_END)
            return MULTIPART_MORE;
        if (ev == MULTIPART_PART_END) {
            ev = m->state == DATA ? MULTIPART_PART_END : MULTIPART_MORE;
            m->state = AFTER_BOUNDARY;
        }
        return ev;
    case HEAD:
        return take_head(m, c, f);
    case END:
        *used = n;
        return MULTIPART_END;
    case NO:
        return refuse(m, f, "multipart: refused already");
    default: /* the rest of the line of a boundary */
        if (m->state == AFTER_BOUNDARY && c == '-')
            m->state = DASH;
        else if (m->state == AFTER_BOUNDARY && c == '\r')
            m->state = AFTER_CR;
        else if (m->state == AFTER_CR && c == '\n')
            m->state = HEAD;
        else if (m->state == DASH && c == '-')
            m->state = END;
        else if (m->state != AFTER_BOUNDARY || (c != ' ' && c != '\t'))
            return refuse(m, f, "multipart: a boundary is followed by something else");
        return m->state == END ? MULTIPART_END : MULTIPART_MORE;
    }
}

enum multipart_event multipart_next(struct multipart *m, const char *p, size_t n, size_t *used,
                                    struct http_str *ret, struct http_fault *f)
{
    enum multipart_event ev = MULTIPART_MORE;
    size_t took;

    *used = 0;
    while (*used < n && ev == MULTIPART_MORE) {
        ev = step(m, p + *used, n - *used, &took, ret, f);
        *used += took;
    }
    return ev;
}
