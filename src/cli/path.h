/* path.h - paths of the API, with what the user typed safely encoded in them. */
#ifndef CLI_PATH_H
#define CLI_PATH_H

#define PATH_TEXT_MAX 4096

/* Each fills `out` and returns it. Names too long for any id are cut: the server
 * then says that there is none. `rest` is ours, "" or "processes" or "stdin?close=1". */
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
/* `path`, which has a query already, and &name=value; just `path` if value is NULL. */
const char *path_query(char out[PATH_TEXT_MAX], const char *path, const char *name,
                       const char *value);

#endif
