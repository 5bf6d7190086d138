/* diff.c - git diff --raw --numstat -p -z, see git_parse.h.
 *
 * First a record per file, then their numbers, then an empty token and the
 * patches, concatenated. A line of a patch begins with a blank, a sign, '@' or '\', and
 * those of its head with words of git's, so "diff " at the beginning of one can only
 * be git's own. Patches come in the order of the files: two for one that changed its
 * type, none for one that is unmerged. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/git_parse.h"
#include "mem/mem.h"

#define SECTION "diff "
#define SECTION_LEN (sizeof(SECTION) - 1)

static int nonsense(struct err *e)
{
    return err_set(e, ERR_CONFLICT, "git diff printed unexpected output");
}

static void file_free(struct git_file *f)
{
    free(f->path);
    free(f->from);
    buf_free(&f->patch);
    *f = (struct git_file){0};
}

/* ---- records ---- */

/* ":100644 100644 1234567 89abcde R086" */
static int take_raw(struct git_diff *d, char *token, struct err *e)
{
    char *word[5], *rest = token + 1;
    uint64_t score = 0;

    for (size_t i = 0; i < ARRAY_LEN(word); i++)
        if ((word[i] = strsep(&rest, " ")) == NULL || *word[i] == '\0')
            return nonsense(e);
    if (rest != NULL || strlen(word[0]) != 6 || strlen(word[1]) != 6 ||
        strchr("ADMRCTU", word[4][0]) == NULL ||
        (word[4][1] != '\0' && str_u64(word[4] + 1, 100, &score) < 0))
        return nonsense(e);
    file_free(&d->next);
    d->next = (struct git_file){.status = word[4][0], .score = (unsigned)score};
    str_fmt(d->next.old_mode, sizeof(d->next.old_mode), "%s", word[0]);
    str_fmt(d->next.new_mode, sizeof(d->next.new_mode), "%s", word[1]);
    d->want = strchr("RC", d->next.status) != NULL ? GIT_WANT_FROM : GIT_WANT_PATH;
    return 0;
}

static unsigned sections_of(const struct git_file *f)
{
    return f->status == 'U' ? 0 : f->status == 'T' ? 2 : 1;
}

/* An unmerged file comes as that first, and then as what it differs in from ours. */
static void keep(struct git_diff *d)
{
    struct git_file *last = d->n > 0 ? &d->files[d->n - 1] : NULL;
    bool again = last != NULL && last->status == 'U' && strcmp(last->path, d->next.path) == 0;

    d->next.sections = sections_of(&d->next);
    d->next.conflict = again || d->next.status == 'U';
    if (again) {
        file_free(last);
        d->n--;
    }
    if (d->n >= GIT_FILES_MAX) {
        d->more = true;
        file_free(&d->next);
        return;
    }
    if (d->n == d->room) {
        d->room = d->room == 0 ? 16 : d->room * 2;
        d->files = mem_again(d->files, d->room, sizeof(*d->files));
    }
    buf_init(&d->next.patch, d->file_max);
    d->files[d->n++] = d->next;
    d->next = (struct git_file){0};
}

static int take_path(struct git_diff *d, const char *token, struct err *e)
{
    if (*token == '\0')
        return nonsense(e);
    if (d->want == GIT_WANT_FROM) {
        d->next.from = mem_text(token);
        d->want = GIT_WANT_PATH;
        return 0;
    }
    d->next.path = mem_text(token);
    d->want = GIT_WANT_ANY;
    keep(d);
    return 0;
}

/* ---- numbers ---- */

static void count(struct git_diff *d, const char *path)
{
    for (size_t i = d->count_at; i < d->n; i++) {
        struct git_file *f = &d->files[i];

        if (strcmp(f->path, path) != 0)
            continue;
        f->added = d->next.added;
        f->deleted = d->next.deleted;
        f->binary = d->next.binary;
        d->count_at = i; /* not after it: an unmerged one may come twice */
        return;
    }
    d->count_at = d->n; /* those that are not shown come last */
}

/* "1<TAB>2<TAB>path", "-" for both of a binary; no path: two tokens follow. */
static int take_numbers(struct git_diff *d, char *token, struct err *e)
{
    char *rest = token, *added = strsep(&rest, "\t"), *deleted = strsep(&rest, "\t");

    if (deleted == NULL || rest == NULL)
        return nonsense(e);
    file_free(&d->next);
    d->next.binary = strcmp(added, "-") == 0 && strcmp(deleted, "-") == 0;
    if (!d->next.binary && (str_u64(added, UINT64_MAX, &d->next.added) < 0 ||
                            str_u64(deleted, UINT64_MAX, &d->next.deleted) < 0))
        return nonsense(e);
    if (*rest == '\0')
        d->want = GIT_WANT_COUNT_FROM;
    else
        count(d, rest);
    return 0;
}

static int take(void *arg, char *token, size_t n, struct err *e)
{
    struct git_diff *d = arg;

    switch (d->want) {
    case GIT_WANT_PATH:
    case GIT_WANT_FROM:
        return take_path(d, token, e);
    case GIT_WANT_COUNT_FROM:
        d->want = GIT_WANT_COUNT_PATH;
        return 0;
    case GIT_WANT_COUNT_PATH:
        d->want = GIT_WANT_ANY;
        count(d, token);
        return 0;
    case GIT_WANT_ANY:
        break;
    }
    if (n == 0)
        return 1;
    return token[0] == ':' ? take_raw(d, token, e) : take_numbers(d, token, e);
}

/* ---- patches ---- */

static void begin_section(struct git_diff *d)
{
    while (d->text_at < d->n && d->files[d->text_at].sections == 0)
        d->text_at++;
    d->in_section = d->text_at < d->n;
    if (d->in_section)
        d->files[d->text_at].sections--;
}

static void add(struct git_diff *d, const char *p, size_t n)
{
    struct git_file *f = d->in_section ? &d->files[d->text_at] : NULL;
    size_t room;

    if (f == NULL || f->truncated)
        return;
    room = d->file_max - f->patch.len;
    if (room > d->total_max - d->total)
        room = d->total_max - d->total;
    if (n > room) {
        n = room;
        f->truncated = true;
        d->full = d->total + n == d->total_max;
    }
    buf_add(&f->patch, p, n);
    d->total += n;
}

static void know_line(struct git_diff *d)
{
    if (d->nline == SECTION_LEN && memcmp(d->line, SECTION, SECTION_LEN) == 0)
        begin_section(d);
    else if (d->nline > 0 && d->line[0] == '*')
        d->in_section = false; /* "* Unmerged path" */
    add(d, d->line, d->nline);
    d->line_known = d->nline > 0 && d->line[d->nline - 1] != '\n';
    d->nline = 0;
}

static int text(void *arg, const char *p, size_t n, struct err *e)
{
    struct git_diff *d = arg;
    const char *end = p + n;

    (void)e;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl != NULL ? nl + 1 : end;

        if (d->line_known) {
            add(d, p, (size_t)(stop - p));
            d->line_known = nl == NULL;
            p = stop;
            continue;
        }
        while (p < stop && d->nline < SECTION_LEN)
            d->line[d->nline++] = *p++;
        if (d->nline == SECTION_LEN || (d->nline > 0 && d->line[d->nline - 1] == '\n'))
            know_line(d);
    }
    return 0;
}

/* ---- the whole ---- */

void git_diff_init(struct git_diff *d, size_t file_max, size_t total_max)
{
    *d = (struct git_diff){.file_max = file_max, .total_max = total_max};
    git_tokens_init(&d->in, d);
    d->in.take = take;
    d->in.text = text;
}

void git_diff_free(struct git_diff *d)
{
    for (size_t i = 0; i < d->n; i++)
        file_free(&d->files[i]);
    file_free(&d->next);
    free(d->files);
    git_tokens_free(&d->in);
}

int git_diff_end(struct git_diff *d, struct err *e)
{
    if (d->nline > 0)
        know_line(d);
    return d->want != GIT_WANT_ANY || d->in.piece.len > 0 ? nonsense(e) : 0;
}
