/* image.h - bounds of templates made from images, for front, keeper and helper.
 *
 * The helper reads an archive inside a temporary sandbox and prints lines; the
 * front, which trusts none of it, reads them:
 *
 *   P DONE TOTAL TEXT   progress, in bytes
 *   E CODE TEXT         the last line: it failed; CODE as in base/err.h
 *   R JSON              the last line: {"format", "layers": [chain id...], "bytes",
 *                       "files", "settings": {"env": [], "user", "workdir",
 *                       "entrypoint": [], "cmd": []}}
 *
 * Layer N is then the directory IMAGE_LAYERS/N of its root. The keeper takes the
 * settings as bytes and gives them back as bytes. */
#ifndef WIRE_IMAGE_H
#define WIRE_IMAGE_H

#include "base/err.h"

#define IMAGE_LAYERS_MAX 128u          /* layers of one template */
#define IMAGE_SETTINGS_MAX (16u << 10) /* bytes of its settings as JSON */
#define IMAGE_TEMPLATES_MAX 500u /* names, aliases too; a list of all fits in the keeper's queue */
#define IMAGE_NAME 64u           /* bytes of a name, with its NUL */
#define IMAGE_CHAIN 64u          /* characters of a chain id */
#define IMAGE_IMPORTS_MAX 4u     /* concurrent temporary sandboxes */
#define IMAGE_LINE_MAX (128u << 10) /* bytes of one line of the helper */

#define IMAGE_LAYERS "layers" /* directory of the import's root: one per layer */
#define IMAGE_SPOOL "spool"   /* the received archive; removed at the end */

/* Whether a template may have this name: ERR_INVALID if not, ERR_CONFLICT for the
 * reserved one. */
int image_check_name(const char *name, struct err *e);

#endif
