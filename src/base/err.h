/* err.h - an error, on the caller's stack.
 *
 * The function that fails sets it, its callers wrap it with what they attempted,
 * only an edge (HTTP answer, CLI, log line) prints it. Nothing to free, and
 * "out of memory" needs no memory. docs/errors.md is generated from this table. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/* Exit statuses are between 200 and 213: a command that a shell or `cove exec` runs has its own
 * status up to 125, 126 and 127 if it cannot be started, and 128 to 192 after a signal. */
/* clang-format off */
#define ERR_KINDS(X)                                                                              \
    /* kind              on the wire      http exit  what it means to a client */                 \
    X(ERR_INTERNAL,      "internal",       500, 206, "a failure of Cove; the log has the details under the request id") \
    X(ERR_INVALID,       "invalid",        400, 200, "the request is malformed; the message says where")     \
    X(ERR_UNAUTHORIZED,  "unauthorized",   401, 213, "no API key, or an unknown one")                           \
    X(ERR_DENIED,        "denied",         403, 213, "the key is known but may not do this")                 \
    X(ERR_NOT_FOUND,     "not_found",      404, 202, "it does not exist, or belongs to another key")                          \
    X(ERR_METHOD,        "method",         405, 200, "the path exists, this method on it does not")          \
    X(ERR_TIMEOUT,       "timeout",        408, 211, "the time limit in the request has passed")             \
    X(ERR_CONFLICT,      "conflict",       409, 211, "its state does not allow this")       \
    X(ERR_GONE,          "gone",           410, 202, "it existed and has ended")                           \
    X(ERR_PRECONDITION,  "precondition",   412, 211, "If-Match or If-None-Match did not hold; nothing changed") \
    X(ERR_TOO_LARGE,     "too_large",      413, 200, "more bytes than this call accepts")                      \
    X(ERR_RANGE,         "range",          416, 200, "the requested bytes are not in the file")              \
    X(ERR_MEDIA,         "media_type",     415, 200, "this call does not accept this content type")               \
    X(ERR_CANNOT_START,  "cannot_start",   422, 201, "the command could not be started; nothing ran")        \
    X(ERR_LIMIT,         "limit",          429, 211, "a quota of the key or a limit of the sandbox is reached")        \
    X(ERR_UNSUPPORTED,   "unsupported",    501, 205, "not supported by this build or this host")               \
    X(ERR_REMOTE,        "remote",         502, 205, "another server could not be reached, or failed") \
    X(ERR_UNAVAILABLE,   "unavailable",    503, 211, "full or starting; try again after Retry-After")        \
    X(ERR_UNRESPONSIVE,  "unresponsive",   504, 211, "the sandbox did not answer in time")                   \
    X(ERR_DISK_FULL,     "disk_full",      507, 211, "no space left on the disk of the sandbox or of the host") \
    X(ERR_FENCED,        "fenced",         409, 211, "the epoch in the request is not that of the workspace any more")
/* clang-format on */

enum err_kind {
#define X(kind, code, http, exit, meaning) kind,
    ERR_KINDS(X)
#undef X
        ERR_KIND_COUNT
};

struct err {
    enum err_kind kind;
    int sys;       /* errno of the cause, 0 if no system call failed */
    char msg[512]; /* outermost context first, "a: b: c"; if it is too long, the
                    * context is cut and the cause at the end is kept */
};

/* Each returns -1, so that a failing function can end in `return err_...`. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* ERR_INTERNAL (ERR_DISK_FULL for ENOSPC and EDQUOT); reads errno first. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The kind that errno means about a path or name the caller gave: not found, denied, ... */
int err_path(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *err_code(enum err_kind kind); /* the word on the wire */
int err_http(enum err_kind kind);
int err_exit(enum err_kind kind);
const char *err_meaning(enum err_kind kind);
/* The kind of a code on the wire; ERR_INTERNAL for a word we do not know. */
enum err_kind err_from_code(const char *code);

#endif
