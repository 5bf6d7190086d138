/* words.c - git's output for people: progress, and why it failed. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/git_parse.h"
#include "mem/mem.h"

#define WORDS_SHOWN 300u

bool git_progress(char *line, const char **text, uint64_t *done, uint64_t *total)
{
    char *colon, *paren, *slash, *end;

    if (strncmp(line, "remote: ", 8) == 0)
        line += 8;
    colon = strchr(line, ':');
    paren = colon == NULL ? NULL : strstr(colon, "% (");
    slash = paren == NULL ? NULL : strchr(paren, '/');
    end = slash == NULL ? NULL : strchr(slash, ')');
    if (end == NULL || colon - line > 60 || !str_is_utf8(line, (size_t)(colon - line)))
        return false;
    *colon = *slash = *end = '\0';
    *text = line;
    return str_u64(paren + 3, UINT64_MAX, done) == 0 && str_u64(slash + 1, UINT64_MAX, total) == 0;
}

/* clang-format off */
/* In order: the first that is in what was said decides. */
static const struct {
    const char *words;
    enum err_kind kind;
} meanings[] = {
    {"No space left on device",                ERR_DISK_FULL},
    {"Disk quota exceeded",                    ERR_DISK_FULL},
    {"Authentication failed",                  ERR_DENIED},
    {"could not read Username",                ERR_DENIED},
    {"could not read Password",                ERR_DENIED},
    {"terminal prompts disabled",              ERR_DENIED},
    {"Permission denied",                      ERR_DENIED},
    {"requested URL returned error: 403",      ERR_DENIED},
    {"not a git repository",                   ERR_NOT_FOUND},
    {"cannot change to",                       ERR_NOT_FOUND},
    {"does not appear to be a git repository", ERR_NOT_FOUND},
    {"Remote branch ",                         ERR_NOT_FOUND},
    {"unknown revision",                       ERR_NOT_FOUND},
    {"bad revision",                           ERR_NOT_FOUND},
    {"bad object",                             ERR_NOT_FOUND},
    {"Not a valid object name",                ERR_NOT_FOUND},
    {"did not match any file",                 ERR_NOT_FOUND},
    {"does not exist",                         ERR_NOT_FOUND},
    {"repository not exported",                ERR_NOT_FOUND},
    {"epository not found",                    ERR_NOT_FOUND},
    {"not found",                              ERR_NOT_FOUND},
    {"Could not resolve host",                 ERR_REMOTE},
    {"unable to access",                       ERR_REMOTE},
    {"unable to connect",                      ERR_REMOTE},
    {"Could not read from remote repository",  ERR_REMOTE},
    {"the remote end hung up",                 ERR_REMOTE},
    {"early EOF",                              ERR_REMOTE},
    {"Please tell me who you are",             ERR_INVALID},
    {"empty ident name",                       ERR_INVALID},
    {"is outside repository",                  ERR_INVALID},
    {"is not a valid branch name",             ERR_INVALID},
};
/* clang-format on */

static enum err_kind kind_of(const char *said)
{
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (strstr(said, meanings[i].words) != NULL)
            return meanings[i].kind;
    return ERR_CONFLICT;
}

/* The last line that is not empty; "fatal: " and "error: " are preferred, since hints follow
 * them. */
static char *last_words(char *said)
{
    char *best = said, *line, *rest = said;
    bool fatal = false;

    while ((line = strsep(&rest, "\r\n")) != NULL) {
        bool is_fatal = strncmp(line, "fatal: ", 7) == 0 || strncmp(line, "error: ", 7) == 0;

        if (*line == '\0' || (fatal && !is_fatal))
            continue;
        best = is_fatal ? line + 7 : line;
        fatal = is_fatal;
    }
    return best;
}

static void redact(char *said, const char *secret)
{
    size_t n = secret == NULL ? 0 : strlen(secret);

    for (char *p = said; n > 0 && (p = strstr(p, secret)) != NULL; p += n)
        memset(p, '*', n);
}

static void make_plain(char *s)
{
    for (; *s != '\0'; s++) {
        int n = str_utf8_char(s, strlen(s));

        if (n <= 0 || (unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
        else
            s += n - 1;
    }
}

void git_words(const char *said, size_t n, const char *secret, struct err *e)
{
    autofree char *copy = mem_format("%.*s", (int)n, said); /* up to a NUL, if there is one */
    enum err_kind kind;
    char *words;

    redact(copy, secret);
    kind = kind_of(copy);
    words = last_words(copy);
    make_plain(words);
    words[str_utf8_whole(words, strnlen(words, WORDS_SHOWN))] = '\0';
    err_set(e, kind, "git: %s", *words != '\0' ? words : "failed without an error message");
}
