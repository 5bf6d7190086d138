/* watch.h - options and events of a watch, for both surfaces about watches. */
#ifndef FRONT_PLANES_NATIVE_FILES_WATCH_H
#define FRONT_PLANES_NATIVE_FILES_WATCH_H

#include "front/engine/watch.h"
#include "front/planes/native/internal.h"

#define WATCH_GLOBS_ASKED 30u   /* of each kind, in one request */
#define WATCH_COALESCE_MS 50u   /* without coalesce_ms */
#define WATCH_AGAIN_MS 60000u   /* a watch of one stream is kept this long after its reader left */
#define WATCH_IDLE_MS 600000u   /* any other, if nothing else is said... */
#define WATCH_IDLE_MAX 86400000 /* ...and at most */

/* What to watch, in a query or a body; first in every input of this kind. */
struct watch_in {
    const char *path, *user;
    bool recursive;
    json_t *include, *exclude;
    uint64_t coalesce_ms;
};
/* clang-format off */
#define WATCH_FIELDS(S) \
    {"path", JSON_FIELD_PATH, offsetof(S, what.path), 1, ENGINE_PATH_MAX, true, \
     "Directory: an absolute path, a path below ~, or a path relative to the default working directory."}, \
    {"user", JSON_FIELD_STR, offsetof(S, what.user), 1, ENGINE_USER_MAX, false, \
     "User whose permissions are used: a name, uid, or uid:gid. Default: `user`, or the user of the template's image."}, \
    {"recursive", JSON_FIELD_BOOL, offsetof(S, what.recursive), 0, 0, false, "Include all directories below, also those created later."}, \
    {"include", JSON_FIELD_STRLIST, offsetof(S, what.include), 0, WATCH_GLOBS_ASKED, false, \
     "Report only paths that match one of these patterns. Without a slash a pattern matches names at any depth, with a slash paths from the top; ** matches any number of directories."}, \
    {"exclude", JSON_FIELD_STRLIST, offsetof(S, what.exclude), 0, WATCH_GLOBS_ASKED, false, \
     "Do not report paths that match one of these patterns, or that are below such a directory."}, \
    {"coalesce_ms", JSON_FIELD_U64, offsetof(S, what.coalesce_ms), 0, WATCH_WINDOW_MAX, false, \
     "Time in ms within which repeated events of one path are reported once. Default: 50."}
/* clang-format on */

#define WATCH_EVENTS                                                                               \
    "ready (WatchReady), then create, modify, delete, move and attrib (WatchEvent), overflow and " \
    "at last end (WatchReason), or error (Error)"

/* Room for what struct watch_opts points to. */
struct watch_asked {
    struct watch_opts o;
    const char *include[WATCH_GLOBS_ASKED], *exclude[WATCH_GLOBS_ASKED];
};
int watch_asked(const struct watch_in *in, struct watch_asked *ret, struct err *e);

/* "WATCH.CURSOR": where a stream goes on. */
#define WATCH_PLACE_MAX 48u
void watch_place(char out[WATCH_PLACE_MAX], const char *id, uint64_t cursor);
int watch_place_read(const char *text, char id[WATCH_ID_LEN + 1], uint64_t *cursor, struct err *e);

/* The events of a stream and of a page. */
struct watch_view {
    const char *event;
    struct shape_bytes path, from;
    const char *type, *reason, *id;
    uint64_t cursor;
};
void watch_view(struct watch_view *v, const struct watch_event *ev);
extern const struct shape watch_event_shape, watch_ready_shape, watch_reason_shape;
/* The one that an event of this kind has in a stream. */
const struct shape *watch_shape_of(enum watch_kind k);
extern const struct call_source watch_reader; /* a struct watch */

/* Streams: `id` of one that is there, from a cursor on, or NULL: a new one as asked. A
 * new one is also made in place of one that is gone, if `asked` is not NULL. */
void watch_stream(struct call *c, const char *id, uint64_t since, const struct watch_in *asked);

#endif
