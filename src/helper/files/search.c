/* search.c - finds files by name, and lines by content.
 *
 *   path [name=GLOB] [text=LITERAL | regex=ERE] [nocase] [hidden] [depth=N] [context=N]
 *        [limit=N] [timeout=SECONDS]
 *
 * Without text or regex every match is an entry; otherwise it is a line, with `context` lines
 * before and after it. Regular expressions are POSIX extended ones of libc, which may take
 * unlimited time and memory: both are limited here. A file with a NUL in its first SNIFF
 * bytes is binary and skipped; of a line LINE_SEEN bytes are searched. */
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "helper/call/call.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/tree/glob.h"
#include "helper/tree/walk.h"
#include "helper/tree/where.h"

#define SNIFF 8192u
#define LINE_SEEN (1u << 20)
#define PIECE (256u << 10)
#define CONTEXT_MAX 10u
#define MEMORY_MAX (512u << 20)

struct kept { /* a line that may be printed before a match */
    char *text;
    size_t len;
};

struct search {
    struct args a;
    const char *name, *text;
    bool nocase, hidden, by_regex;
    regex_t regex;
    uint64_t limit;
    unsigned context;
    struct file_done done;
    /* state of the current file */
    const char *path;
    uint64_t line;
    unsigned owed; /* lines still to print after a match */
    struct kept before[CONTEXT_MAX];
    unsigned nbefore;
};

/* ---- lines ---- */

static void put_line(const struct search *s, enum file_line_kind kind, uint64_t line, const char *p,
                     size_t n, size_t column)
{
    struct file_line m = {.path = s->path, .kind = kind, .line = line, .column = column};

    m.cut = n > FILE_LINE_MAX;
    m.text = (struct wire_bytes){p, m.cut ? FILE_LINE_MAX : (uint32_t)n};
    record_put(FILE_LINE, &m);
}

static const char *find_text(const struct search *s, const char *line, size_t n)
{
    size_t len = strlen(s->text);

    if (!s->nocase)
        return memmem(line, n, s->text, len);
    for (size_t i = 0; i + len <= n; i++)
        if (strncasecmp(line + i, s->text, len) == 0)
            return line + i;
    return NULL;
}

/* The column of the match, from 1; 0: no match. The line ends with a NUL. */
static size_t match(const struct search *s, char *line, size_t n, struct err *e)
{
    regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)n};
    const char *at;
    int r;

    if (!s->by_regex) {
        at = find_text(s, line, n);
        return at != NULL ? (size_t)(at - line) + 1 : 0;
    }
    r = regexec(&s->regex, line, 1, &m, REG_STARTEND);
    if (r != 0 && r != REG_NOMATCH)
        err_set(e, ERR_LIMIT, "regex: needs more than the allowed %u MiB of memory",
                MEMORY_MAX >> 20);
    return r == 0 ? (size_t)m.rm_so + 1 : 0;
}

static void forget_before(struct search *s)
{
    while (s->nbefore > 0)
        free(s->before[--s->nbefore].text);
}

static void keep_before(struct search *s, const char *p, size_t n)
{
    size_t len = n < FILE_LINE_MAX + 1 ? n : FILE_LINE_MAX + 1;

    if (s->context == 0)
        return;
    if (s->nbefore == s->context) {
        free(s->before[0].text);
        memmove(s->before, s->before + 1, --s->nbefore * sizeof(*s->before));
    }
    s->before[s->nbefore].text = malloc(len + 1);
    if (s->before[s->nbefore].text == NULL)
        return;
    memcpy(s->before[s->nbefore].text, p, len);
    s->before[s->nbefore++].len = len;
}

/* 1: the limit is reached; -1: `e`. */
static int one_line(struct search *s, char *p, size_t n, struct err *e)
{
    size_t column;

    s->line++;
    if (n > 0 && p[n - 1] == '\r')
        n--;
    e->msg[0] = '\0';
    p[n] = '\0';
    column = match(s, p, n, e);
    if (e->msg[0] != '\0')
        return -1;
    if (column == 0) {
        if (s->owed > 0) {
            s->owed--;
            put_line(s, FILE_LINE_AFTER, s->line, p, n, 0);
        } else {
            keep_before(s, p, n);
        }
        return 0;
    }
    if (s->done.count == s->limit) {
        s->done.more = 1;
        return 1;
    }
    for (unsigned i = 0; i < s->nbefore; i++)
        put_line(s, FILE_LINE_BEFORE, s->line - s->nbefore + i, s->before[i].text, s->before[i].len,
                 0);
    forget_before(s);
    put_line(s, FILE_LINE_MATCH, s->line, p, n, column);
    s->done.count++;
    s->owed = s->context;
    return 0;
}

/* ---- files ---- */

struct text {
    char *mem; /* LINE_SEEN + PIECE + 1 */
    size_t len;
    bool skipping; /* the rest of a line that is too long */
};

static int take_lines(struct search *s, struct text *t, struct err *e)
{
    char *at = t->mem, *end = t->mem + t->len, *newline;
    int r = 0;

    while (r == 0 && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (!t->skipping)
            r = one_line(s, at, (size_t)(newline - at), e);
        t->skipping = false;
        at = newline + 1;
    }
    t->len = (size_t)(end - at);
    memmove(t->mem, at, t->len);
    if (r == 0 && t->len >= LINE_SEEN) {
        if (!t->skipping)
            r = one_line(s, t->mem, LINE_SEEN, e);
        t->skipping = true;
        t->len = 0;
    }
    return r;
}

static int read_text(struct search *s, int fd, struct text *t, struct err *e)
{
    bool first = true;
    ssize_t n;
    int r = 0;

    t->len = 0;
    t->skipping = false;
    while (r == 0 && (n = read(fd, t->mem + t->len, PIECE)) > 0) {
        if (first && memchr(t->mem, '\0', (size_t)n < SNIFF ? (size_t)n : SNIFF) != NULL)
            return 0;
        first = false;
        t->len += (size_t)n;
        r = take_lines(s, t, e);
    }
    if (r == 0 && t->len > 0 && !t->skipping)
        r = one_line(s, t->mem, t->len, e);
    return r;
}

static int look_into(struct search *s, const struct walk_entry *w, struct err *e)
{
    static struct text t;
    autofd int fd = openat(w->dir, w->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    int r;

    if (t.mem == NULL && (t.mem = malloc(LINE_SEEN + PIECE + 1)) == NULL)
        return err_set(e, ERR_LIMIT, "search: out of memory");
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0; /* no permission, or replaced meanwhile */
    s->path = w->path;
    s->line = 0;
    s->owed = 0;
    r = read_text(s, fd, &t, e);
    forget_before(s);
    return r;
}

/* ---- the tree ---- */

static enum walk_next each(void *arg, const struct walk_entry *w, struct err *e)
{
    struct search *s = arg;
    struct err gone;

    if (!s->hidden && w->name[0] == '.')
        return WALK_OVER;
    if (s->name != NULL && !glob_match(s->name, w->below))
        return WALK_ON;
    if (s->text != NULL)
        return S_ISREG(w->st.st_mode) && look_into(s, w, e) != 0 ? WALK_STOP : WALK_ON;
    if (s->done.count == s->limit) {
        s->done.more = 1;
        return WALK_STOP;
    }
    if (record_entry_at(w->dir, w->name, w->path, &gone) == 0)
        s->done.count++;
    return WALK_ON;
}

/* ---- limits ---- */

static void on_alarm(int signo)
{
    static const char text[] = "\nE timeout the search took too long\n";

    (void)signo;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(70);
    _exit(1);
}

static void set_limits(const struct args *a)
{
    struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};

    setrlimit(RLIMIT_AS, &memory);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)args_u64(a, "timeout", 60));
}

static int parse(struct search *s, struct err *e)
{
    const char *regex = args_get(&s->a, "regex");
    char why[128];
    int r;

    s->name = args_get(&s->a, "name");
    s->text = regex != NULL ? regex : args_get(&s->a, "text");
    s->by_regex = regex != NULL;
    s->nocase = args_has(&s->a, "nocase");
    s->hidden = args_has(&s->a, "hidden");
    s->limit = args_u64(&s->a, "limit", 1000);
    s->context = (unsigned)args_u64(&s->a, "context", 0);
    s->context = s->context < CONTEXT_MAX ? s->context : CONTEXT_MAX;
    if (s->name != NULL && strlen(s->name) > GLOB_MAX)
        return err_set(e, ERR_INVALID, "name: the pattern is longer than %u bytes", GLOB_MAX);
    if (s->text != NULL && *s->text == '\0')
        return err_set(e, ERR_INVALID, "text: empty");
    if (!s->by_regex)
        return 0;
    r = regcomp(&s->regex, regex, REG_EXTENDED | (s->nocase ? REG_ICASE : 0));
    if (r == 0)
        return 0;
    regerror(r, &s->regex, why, sizeof(why));
    return err_set(e, ERR_INVALID, "regex: %s", why);
}

static int run(struct search *s, struct err *e)
{
    struct walk w = {.enter = each, .arg = s, .skip = true, .one_mount = true};
    char path[PATH_ROOM];
    int fd;

    set_limits(&s->a);
    if (parse(s, e) < 0 || where_path(args_get(&s->a, "path"), path, e) < 0)
        return -1;
    w.depth = (unsigned)args_u64(&s->a, "depth", 0);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_path(e, "%.200s", path);
    return walk_below(&w, fd, path, e) < 0 ? -1 : 0;
}

int search_main(int argc, char **argv)
{
    static struct search s;
    struct err e;

    s.a = (struct args){argc, argv};
    if (run(&s, &e) < 0) {
        record_flush();
        return say_failed(stderr, &e);
    }
    return record_done(&s.done);
}
