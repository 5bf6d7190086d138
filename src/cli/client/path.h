/* path.h - paths of the API, with names the user typed percent-encoded in them. */
#ifndef CLI_CLIENT_PATH_H
#define CLI_CLIENT_PATH_H

#include <stddef.h>

#define PATH_TEXT_MAX 4096

/* Percent-encodes `s` but for letters, digits, "-", "_" and the characters of `keep`. What
 * does not fit into `room` is cut. */
const char *path_encode(char *out, size_t room, const char *s, const char *keep);

/* Each fills `out` and returns it. Names longer than any id are cut, and the server answers
 * that they do not exist. `rest` is not encoded: "", "processes", "stdin?close=1". */
const char *path_workspace(char out[PATH_TEXT_MAX], const char *name, const char *rest);
/* `id` @NAME: the sandbox of that workspace, for which every path below is valid as well. */
#define PATH_WORKSPACE '@'
const char *path_sandbox(char out[PATH_TEXT_MAX], const char *id, const char *rest);
const char *path_process(char out[PATH_TEXT_MAX], const char *id, const char *process,
                         const char *rest);
const char *path_terminal(char out[PATH_TEXT_MAX], const char *id, const char *terminal,
                          const char *rest);
const char *path_session(char out[PATH_TEXT_MAX], const char *id, const char *session,
                         const char *rest);
const char *path_template(char out[PATH_TEXT_MAX], const char *name, const char *rest);
const char *path_snapshot(char out[PATH_TEXT_MAX], const char *id, const char *rest);
const char *path_key(char out[PATH_TEXT_MAX], const char *id, const char *query);
/* Appends &name=value to `path`, which has a query already; if value is NULL, copies `path`. */
const char *path_query(char out[PATH_TEXT_MAX], const char *path, const char *name,
                       const char *value);

#endif
