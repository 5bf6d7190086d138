/* status.c - git status --porcelain=v2 -z --branch, see git_parse.h. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/git_parse.h"

static const char *const kinds[GIT_KIND_COUNT] = {
    [GIT_CHANGED] = "changed",     [GIT_RENAMED] = "renamed", [GIT_UNMERGED] = "unmerged",
    [GIT_UNTRACKED] = "untracked", [GIT_IGNORED] = "ignored",
};

const char *git_kind_name(enum git_kind k)
{
    return kinds[k];
}

static int nonsense(struct err *e)
{
    return err_set(e, ERR_CONFLICT, "git status printed unexpected output");
}

/* The word up to the next blank, which becomes a NUL; NULL when there is none. */
static char *word(char **rest)
{
    char *w = *rest, *blank = w == NULL ? NULL : strchr(w, ' ');

    if (blank == NULL)
        return NULL;
    *blank = '\0';
    *rest = blank + 1;
    return w;
}

static bool skip_words(char **rest, int n)
{
    while (n-- > 0)
        if (word(rest) == NULL)
            return false;
    return true;
}

/* ---- the branch ---- */

static void take_oid(struct git_status *s, const char *value)
{
    size_t n = strspn(value, "0123456789abcdef");

    if (value[n] == '\0' && n >= 40 && n <= GIT_OID_MAX)
        str_fmt(s->commit, sizeof(s->commit), "%s", value);
}

static void take_head(struct git_status *s, const char *value)
{
    if (strcmp(value, "(detached)") != 0)
        snprintf(s->head, sizeof(s->head), "%s", value);
}

static void take_upstream(struct git_status *s, const char *value)
{
    s->has_upstream = true;
    snprintf(s->upstream, sizeof(s->upstream), "%s", value);
}

static void take_ab(struct git_status *s, const char *value)
{
    unsigned long long ahead, behind;

    if (sscanf(value, "+%19llu -%19llu", &ahead, &behind) == 2) {
        s->ahead = ahead;
        s->behind = behind;
    }
}

static const struct {
    const char *name;
    void (*take)(struct git_status *s, const char *value);
} headers[] = {
    {"branch.oid ", take_oid},
    {"branch.head ", take_head},
    {"branch.upstream ", take_upstream},
    {"branch.ab ", take_ab},
};

static int take_header(struct git_status *s, char *rest, struct err *e)
{
    (void)e;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (strncmp(rest, headers[i].name, strlen(headers[i].name)) == 0)
            headers[i].take(s, rest + strlen(headers[i].name));
    return 0; /* others, of a newer git, mean nothing to us */
}

/* ---- entries ---- */

static bool take_xy(struct git_entry *en, char **rest)
{
    const char *xy = word(rest), *sub = word(rest);

    if (xy == NULL || sub == NULL || strlen(xy) != 2 || strlen(sub) != 4 ||
        strspn(xy, "MADRCTU.") != 2)
        return false;
    en->index = xy[0];
    en->worktree = xy[1];
    en->submodule = sub[0] == 'S';
    en->sub_commit = sub[1] == 'C';
    en->sub_modified = sub[2] == 'M';
    en->sub_untracked = sub[3] == 'U';
    return true;
}

static int tell(struct git_status *s, struct git_entry *en, const char *path, struct err *e)
{
    if (*path == '\0')
        return nonsense(e);
    en->path = path;
    s->each(s->arg, en);
    return 0;
}

static int take_changed(struct git_status *s, char *rest, struct err *e)
{
    struct git_entry en = {.kind = GIT_CHANGED};

    if (!take_xy(&en, &rest) || !skip_words(&rest, 5))
        return nonsense(e);
    return tell(s, &en, rest, e);
}

static int take_unmerged(struct git_status *s, char *rest, struct err *e)
{
    struct git_entry en = {.kind = GIT_UNMERGED};

    if (!take_xy(&en, &rest) || !skip_words(&rest, 7))
        return nonsense(e);
    return tell(s, &en, rest, e);
}

/* "R100" and the path; what it was before is the next token. */
static int take_renamed(struct git_status *s, char *rest, struct err *e)
{
    struct git_entry en = {.kind = GIT_RENAMED};
    const char *score;
    uint64_t percent;

    if (!take_xy(&en, &rest) || !skip_words(&rest, 5) || (score = word(&rest)) == NULL ||
        *score == '\0' || str_u64(score + 1, 100, &percent) < 0 || *rest == '\0')
        return nonsense(e);
    en.score = (unsigned)percent;
    s->half = en;
    s->waiting = true;
    buf_clear(&s->half_path);
    buf_adds(&s->half_path, rest);
    return s->half_path.failed ? nonsense(e) : 0;
}

static int take_untracked(struct git_status *s, char *rest, struct err *e)
{
    struct git_entry en = {.kind = GIT_UNTRACKED, .index = '.', .worktree = '.'};

    return tell(s, &en, rest, e);
}

static int take_ignored(struct git_status *s, char *rest, struct err *e)
{
    struct git_entry en = {.kind = GIT_IGNORED, .index = '.', .worktree = '.'};

    return tell(s, &en, rest, e);
}

static const struct {
    char mark;
    int (*take)(struct git_status *s, char *rest, struct err *e);
} lines[] = {
    {'#', take_header},   {'1', take_changed},   {'2', take_renamed},
    {'u', take_unmerged}, {'?', take_untracked}, {'!', take_ignored},
};

static int take(void *arg, char *token, size_t n, struct err *e)
{
    struct git_status *s = arg;

    if (s->waiting) {
        s->waiting = false;
        s->half.from = token;
        return tell(s, &s->half, buf_cstr(&s->half_path), e);
    }
    for (size_t i = 0; n > 2 && token[1] == ' ' && i < ARRAY_LEN(lines); i++)
        if (lines[i].mark == token[0])
            return lines[i].take(s, token + 2, e);
    return nonsense(e);
}

void git_status_init(struct git_status *s, void (*each)(void *arg, const struct git_entry *en),
                     void *arg)
{
    *s = (struct git_status){.each = each, .arg = arg};
    git_tokens_init(&s->in, s);
    s->in.take = take;
    buf_init(&s->half_path, GIT_TOKEN_MAX);
}

void git_status_free(struct git_status *s)
{
    git_tokens_free(&s->in);
    buf_free(&s->half_path);
}

int git_status_end(struct git_status *s, struct err *e)
{
    return s->waiting || s->in.piece.len > 0 ? nonsense(e) : 0;
}
