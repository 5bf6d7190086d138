/* git.h - one run of git inside a sandbox, in the identity the caller names.
 *
 * git is the sandbox's own: what a repository's hooks, filters and settings make it do
 * it does there, with that user's rights and no more. What it prints is for
 * git_parse.h to read. Whose directory a repository is does not matter to us
 * (safe.directory), and it asks nobody anything.
 *
 * Credentials are in the environment of this one process, given by a helper that
 * answers for the server of the URL only; they are in no argv, no file and no message,
 * and no other credential helper hears of them. */
#ifndef FRONT_ENGINE_GIT_H
#define FRONT_ENGINE_GIT_H

#include "front/engine/git_parse.h"
#include "front/engine/process.h"

#define GIT_ARGS_MAX 600u    /* arguments of one run */
#define GIT_URL_MAX 2048u    /* bytes of a URL */
#define GIT_SECRET_MAX 4096u /* bytes of a user's name or password */

struct git_opts {            /* all borrowed for the call */
    const char *path;        /* the repository, or a directory in it; NULL: where commands start */
    const char *user;        /* as in struct process_opts */
    const char *const *argv; /* behind "git" and what is common to all; NULL ends */
    const char *env;         /* strv bytes, more of it */
    size_t env_len;
    const char *url, *username, *password; /* credentials for the server of this URL; or NULL */
    uint64_t timeout_ms;                   /* 0: none; not with `ask` */
    bool ask;   /* it only looks: takes no locks, and ends when the caller goes away */
    bool input; /* git_feed() follows */
};

/* All come from the loop; every pointer is borrowed for the call. */
struct git_ops {
    void (*on_data)(void *arg, const char *p, size_t n);                             /* of stdout */
    void (*on_progress)(void *arg, const char *text, uint64_t done, uint64_t total); /* or NULL */
    /* The last one; the handle is gone. `e` NULL: it ended with 0. */
    void (*on_done)(void *arg, const struct err *e);
};

struct git;
struct git *git_run(struct ref ref, const struct git_opts *o, const struct git_ops *ops, void *arg);
/* All of its stdin at once. */
void git_feed(struct git *r, const void *p, size_t n);
void git_pause(struct git *r, bool paused);
/* No callback follows. */
void git_close(struct git *r);

/* A URL as a caller gives it, without the credentials that may be in it, which go to
 * `username` and `password` (GIT_SECRET_MAX + 1 each) unless there is something already.
 * ERR_INVALID says what is wrong with it. */
int git_url(const char *url, char out[GIT_URL_MAX + 1], char *username, char *password,
            struct err *e);
/* What a repository of that URL is called: the last part of it, without ".git". */
void git_url_name(const char *url, char *out, size_t room);
/* Something that may stand where git wants a commit. */
int git_check_rev(const char *what, const char *rev, struct err *e);

#endif
