/* git.h - one run of git inside a sandbox, as the given user.
 *
 * The git is the sandbox's own: hooks, filters and settings of a repository run inside, with that
 * user's permissions. git_parse.h parses its output. The owner of a repository is not checked
 * (safe.directory), and git never prompts.
 *
 * Credentials are in the environment of this one process, used by a credential helper that answers
 * for the server of the URL only. They are in no argv, file or message, and all other credential
 * helpers are off. */
#ifndef FRONT_ENGINE_GIT_H
#define FRONT_ENGINE_GIT_H

#include "front/engine/git_parse.h"
#include "front/engine/process.h"

#define GIT_ARGS_MAX 600u    /* arguments of one run */
#define GIT_URL_MAX 2048u    /* bytes of a URL */
#define GIT_SECRET_MAX 4096u /* bytes of a user's name or password */

struct git_opts {            /* all borrowed for the call */
    const char *path;        /* the repository, or a directory in it; NULL: the default directory */
    const char *user;        /* as in struct process_opts */
    const char *const *argv; /* after "git" and the common options; NULL ends */
    const char *env;         /* strv bytes, more of it */
    size_t env_len;
    const char *url, *username, *password; /* credentials for the server of this URL; or NULL */
    uint64_t timeout_ms;                   /* 0: none; not with `ask` */
    bool ask;   /* read-only: takes no locks, and ends when the caller disconnects */
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
/* Name of the repository: the last part of the URL, without ".git". */
void git_url_name(const char *url, char *out, size_t room);
/* Checks a name of a commit. */
int git_check_rev(const char *what, const char *rev, struct err *e);

#endif
