/* internal.h - what the files of the native API share; private to them.
 *
 * EXTEND  A new surface: a file, its table in SURFACES below, and meson.build. */
#ifndef FRONT_PLANES_NATIVE_INTERNAL_H
#define FRONT_PLANES_NATIVE_INTERNAL_H

#include "front/auth/auth.h"
#include "front/engine/engine.h"
#include "front/plane/call.h"
#include "front/plane/plane.h"
#include "front/plane/shape.h"
#include "front/plane/surface.h"

#define SURFACES(X)                                                                                \
    X(sandboxes)                                                                                   \
    X(life)                                                                                        \
    X(snapshots)                                                                                   \
    X(workspaces)                                                                                  \
    X(envelope)                                                                                    \
    X(holders)                                                                                     \
    X(forks)                                                                                       \
    X(metrics)                                                                                     \
    X(archive)                                                                                     \
    X(exec)                                                                                        \
    X(processes)                                                                                   \
    X(process_stdin)                                                                               \
    X(ports)                                                                                       \
    X(usage)                                                                                       \
    X(terminals)                                                                                   \
    X(logs)                                                                                        \
    X(sessions)                                                                                    \
    X(git)                                                                                         \
    X(git_log)                                                                                     \
    X(git_diff)                                                                                    \
    X(git_clone)                                                                                   \
    X(git_commit)                                                                                  \
    X(events)                                                                                      \
    X(files)                                                                                       \
    X(file_lists)                                                                                  \
    X(file_changes)                                                                                \
    X(network)                                                                                     \
    X(templates)                                                                                   \
    X(keys)                                                                                        \
    X(tokens)                                                                                      \
    X(document)                                                                                    \
    X(watches)                                                                                     \
    X(watch)                                                                                       \
    X(system)

#define X(name) extern const struct surface_row surface_##name[];
SURFACES(X)
#undef X

/* The progress event of whatever takes long. */
struct progress_view {
    const char *text;
    uint64_t done, total;
};
extern const struct shape progress_shape;

/* The query of what unpacks an archive. */
#define IMPORT_DISK_FIELD(in)                                                                      \
    {                                                                                              \
        "disk", JSON_FIELD_U64, offsetof(in, disk), LIMIT_DISK_MIN, LIMIT_DISK_MAX, false,         \
            "Bytes of disk that it may take, which is little more than the larger of the archive " \
            "and its files. Default: the setting `disk` for a template, the most of one sandbox "  \
            "for a snapshot."                                                                      \
    }

struct token_mint;
struct workspaces;

#define NATIVE_DOMAIN_MAX 300u

struct native {
    struct plane plane;
    struct token_mint *tokens;
    struct workspaces *workspaces;
    struct buf openapi, page;
    char domain[NATIVE_DOMAIN_MAX];
};
/* Under which ports of sandboxes are reached: "localhost:7070", "example.com". */
const char *native_domain(const struct call *c);
struct token_mint *native_tokens(const struct call *c);
struct workspaces *native_workspaces(const struct call *c);
/* The header with the epoch of a workspace, in requests and answers. */
#define NATIVE_EPOCH "Cove-Epoch"

/* The header with the id of the key that an admin's call acts for. */
#define NATIVE_AS "Cove-As"
/* For a parameter `all_keys`: whose sandboxes are shown, NULL for those of all keys. ERR_DENIED
 * unless the key is an admin's. */
int native_all_keys(const struct call *c, bool asked, const char **ret_key, struct err *e);
#define NATIVE_ALL_KEYS "Those of all keys; for admin keys only."

#define DOCUMENT_TOKEN "token" /* the parameter that may hold the key, where a row has it */

/* The page for people, from the same. */
int document_page(const struct plane *const *planes, size_t n, struct buf *out, struct err *e);
/* The document, from the rows of planes that share no path. */
int openapi_write(const struct plane *const *planes, size_t n, struct buf *out, struct err *e);

#endif
