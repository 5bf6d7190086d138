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
    const char *name, *text;
    bool nocase, hidden, by_regex;
    regex_t regex;
    uint64_t limit;
    unsigned context;
    struct file_done *done;
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

/* The column of the match, from 1; 0: no match. The line ends with a NUL. */
static size_t match(const struct search *s, char *line, size_t n, struct err *e)
{
    regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)n};
    size_t len = strlen(s->text);
    const char *at;
    int r;

    if (s->by_regex) {
        r = regexec(&s->regex, line, 1, &m, REG_STARTEND);
        if (r != 0 && r != REG_NOMATCH)
            err_set(e, ERR_LIMIT, "regex: needs more than the allowed %u MiB of memory",
                    MEMORY_MAX >> 20);
        return r == 0 ? (size_t)m.rm_so + 1 : 0;
    }
    if (!s->nocase) {
        at = memmem(line, n, s->text, len);
        return at != NULL ? (size_t)(at - line) + 1 : 0;
    }
    for (size_t i = 0; i + len <= n; i++)
        if (strncasecmp(line + i, s->text, len) == 0)
            return i + 1;
    return 0;
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
    if (s->done->count == s->limit) {
        s->done->more = 1;
        return 1;
    }
    for (unsigned i = 0; i < s->nbefore; i++)
        put_line(s, FILE_LINE_BEFORE, s->line - s->nbefore + i, s->before[i].text, s->before[i].len,
                 0);
    forget_before(s);
    put_line(s, FILE_LINE_MATCH, s->line, p, n, column);
    s->done->count++;
    s->owed = s->context;
    return 0;
}

/* ---- files ---- */

/* Searches the lines of one file. 1: the limit is reached; -1: `e`. */
static int search_file(struct search *s, const struct walk_entry *w, struct err *e)
{
    static char *mem; /* the lines that are not searched yet */
    autofd int fd = openat(w->dir, w->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool first = true, skipping = false; /* the rest of a line that is too long */
    size_t len = 0;
    struct stat st;
    ssize_t n;
    int r = 0;

    if (mem == NULL && (mem = malloc(LINE_SEEN + PIECE + 1)) == NULL)
        return err_set(e, ERR_LIMIT, "search: out of memory");
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0; /* no permission, or replaced meanwhile */
    s->path = w->path;
    s->line = 0;
    s->owed = 0;
    while (r == 0 && (n = read(fd, mem + len, PIECE)) > 0) {
        char *at = mem, *end = mem + len + n, *newline;

        if (first && memchr(mem, '\0', (size_t)n < SNIFF ? (size_t)n : SNIFF) != NULL)
            return 0;
        first = false;
        while (r == 0 && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
            if (!skipping)
                r = one_line(s, at, (size_t)(newline - at), e);
            skipping = false;
            at = newline + 1;
        }
        len = (size_t)(end - at);
        memmove(mem, at, len);
        if (r == 0 && len >= LINE_SEEN) {
            if (!skipping)
                r = one_line(s, mem, LINE_SEEN, e);
            skipping = true;
            len = 0;
        }
    }
    if (r == 0 && len > 0 && !skipping)
        r = one_line(s, mem, len, e);
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
        return S_ISREG(w->st.st_mode) && search_file(s, w, e) != 0 ? WALK_STOP : WALK_ON;
    if (s->done->count == s->limit) {
        s->done->more = 1;
        return WALK_STOP;
    }
    if (record_entry_at(w->dir, w->name, w->path, &gone) == 0)
        s->done->count++;
    return WALK_ON;
}

/* ---- the call ---- */

static void on_alarm(int signo)
{
    static const char text[] = "\nE timeout the search took too long\n";

    (void)signo;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(70);
    _exit(1);
}

static int parse(struct search *s, const struct args *a, struct err *e)
{
    const char *regex = args_get(a, "regex");
    char why[128];
    int r;

    s->name = args_get(a, "name");
    s->text = regex != NULL ? regex : args_get(a, "text");
    s->by_regex = regex != NULL;
    s->nocase = args_has(a, "nocase");
    s->hidden = args_has(a, "hidden");
    s->limit = args_u64(a, "limit", 1000);
    s->context = (unsigned)args_u64(a, "context", 0);
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

int file_search(const struct args *a, struct file_done *done, struct err *e)
{
    static struct search s;
    struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
    struct walk w = {.enter = each, .arg = &s, .skip = true, .one_mount = true};
    char path[PATH_ROOM];
    int fd;

    setrlimit(RLIMIT_AS, &memory);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)args_u64(a, "timeout", 60));
    s.done = done;
    if (parse(&s, a, e) < 0 || where_path(args_get(a, "path"), path, e) < 0)
        return -1;
    w.depth = (unsigned)args_u64(a, "depth", 0);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_path(e, "%.200s", path);
    return walk_below(&w, fd, path, e) < 0 ? -1 : 0;
}
