/* fuzz_git.c - the output of an untrusted git: status, log, diff, words. */
#include "fuzz.h"

#include "front/engine/git.h"

static void entry(void *arg, const struct git_entry *en)
{
    *(size_t *)arg += strlen(en->path) + (en->from != NULL ? strlen(en->from) : 0);
}

static void commit(void *arg, const char *const field[GIT_LOG_FIELDS])
{
    for (unsigned i = 0; i < GIT_LOG_FIELDS; i++)
        *(size_t *)arg += strlen(field[i]);
}

/* In two pieces, cut at the offset in the first byte. */
static int feed(struct git_tokens *t, const char *p, size_t n, size_t cut)
{
    struct err e;

    cut = cut < n ? cut : n;
    return git_tokens_feed(t, p, cut, &e) < 0 ? -1 : git_tokens_feed(t, p + cut, n - cut, &e);
}

static void read_diff(const char *p, size_t n, size_t cut)
{
    struct git_diff d;
    struct err e;

    git_diff_init(&d, 100, 300);
    if (feed(&d.in, p, n, cut) == 0)
        git_diff_end(&d, &e);
    FUZZ_MUST(d.total <= 300);
    for (size_t i = 0; i < d.n; i++)
        FUZZ_MUST(d.files[i].path != NULL && d.files[i].patch.len <= 100);
    git_diff_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t cut = n > 0 ? data[0] : 0, total = 0;
    char *p = fuzz_copy(data, n), *text = strndup(p, n);
    char out[GIT_URL_MAX + 1], user[GIT_SECRET_MAX + 1] = "", pass[GIT_SECRET_MAX + 1] = "";
    struct git_status s;
    struct git_log l;
    const char *words;
    uint64_t done, all;
    struct err e;

    FUZZ_MUST(text != NULL);
    git_status_init(&s, entry, &total);
    if (feed(&s.in, p, n, cut) == 0)
        git_status_end(&s, &e);
    git_status_free(&s);
    git_log_init(&l, commit, &total);
    feed(&l.in, p, n, cut);
    git_log_free(&l);
    read_diff(p, n, cut);
    git_words(p, n, "secret", &e);
    FUZZ_MUST(strstr(e.msg, "secret") == NULL && strlen(e.msg) < 400);
    if (git_url(text, out, user, pass, &e) == 0)
        git_url_name(out, user, sizeof(user));
    git_progress(text, &words, &done, &all);
    free(text);
    free(p);
    return 0;
}
