/* git.h - a repository in a query and commits in an answer, for all surfaces of git. */
#ifndef FRONT_PLANES_NATIVE_GIT_GIT_H
#define FRONT_PLANES_NATIVE_GIT_GIT_H

#include "front/engine/git.h"
#include "front/planes/native/internal.h"

#define GIT "/v1/sandboxes/{id}/git/"
#define GIT_FILES_ASKED 50u       /* in one query */
#define GIT_ROWS_MAX (256u << 20) /* bytes of an answer */

/* Which repository, and as whom; first in every input of this kind. */
struct git_in {
    const char *path, *user;
};
/* clang-format off */
#define GIT_PATH_FIELD(S) \
    {"path", JSON_FIELD_PATH, offsetof(S, at.path), 1, ENGINE_PATH_MAX, false, \
     "Directory of the repository. Default: the default working directory."}
#define GIT_USER_FIELD(S) \
    {"user", JSON_FIELD_STR, offsetof(S, at.user), 1, ENGINE_USER_MAX, false, \
     "User whose permissions are used: a name, uid, or uid:gid. Default: `user`, or the user of the template's image."}
/* clang-format on */

extern const struct call_source git_source; /* a struct git */

/* A run that only looks. */
void git_ask(struct call *c, const struct git_in *at, const char *const *argv,
             const struct git_ops *ops, void *arg);
/* Any other. */
void git_do(struct call *c, const struct git_opts *o, const struct git_ops *ops, void *arg);
struct git *git_of(struct call *c); /* the one that runs, or NULL */

/* ---- a commit ---- */

struct git_person_view {
    const char *name, *email;
    uint64_t at_ms;
};
struct git_commit_view {
    const char *commit, *message;
    struct shape_bytes parents, refs;
    const struct git_person_view *author, *committer;
};
extern const struct shape git_commit_shape;
/* Room for what a view points to. */
struct git_commit {
    struct git_commit_view view;
    struct git_person_view author, committer;
    struct buf parents, refs; /* strv */
};
void git_commit_read(struct git_commit *c, const char *const field[GIT_LOG_FIELDS]);
void git_commit_free(struct git_commit *c);

#endif
