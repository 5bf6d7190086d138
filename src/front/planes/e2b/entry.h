/* entry.h - files as envd describes them: EntryInfo of filesystem.proto, in the JSON of
 * proto3: 64 bits as text, what has its default value left out.
 *
 * Records come as file_work() tells them when asked to `resolve`: an entry, for a link
 * the entry of what it leads to (of mode 0 if it leads nowhere), then its metadata. */
#ifndef FRONT_PLANES_E2B_ENTRY_H
#define FRONT_PLANES_E2B_ENTRY_H

#include "front/engine/file.h"
#include "json/write.h"

#define ENTRY_XATTR "user.e2b." /* what metadata is kept as, before its name */

enum entry_state { ENTRY_CLOSED, ENTRY_OPEN, ENTRY_LINK, ENTRY_METADATA };

struct entry_writer {
    struct json_w *w; /* borrowed; each entry is one value */
    enum entry_state state;
};

void entry_add(struct entry_writer *e, const struct file_info *f);
void entry_add_xattr(struct entry_writer *e, const struct file_attr_info *x);
/* After the last. */
void entry_end(struct entry_writer *e);

/* As Go writes modes: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "urwxr-xr-x". */
#define ENTRY_MODE_MAX 16
const char *entry_mode(uint32_t mode, char out[ENTRY_MODE_MAX]);
/* RFC 3339 with as many of 0, 3, 6 or 9 digits after the point as it needs. */
#define ENTRY_TIME_MAX 40
const char *entry_time(uint64_t ns, char out[ENTRY_TIME_MAX]);
/* The last part of a path; "/" of the root. */
const char *entry_name(const char *path);

#endif
