/* image.h - templates that were added: names, versions, and the layers they share.
 *
 *   DIR/images/names/NAME    which version a name means; an alias is one more name
 *   DIR/images/versions/ID   a version: its layers, lowest first, and its settings
 *   DIR/disk/.image-ID       the disk of the import that made it, kept as it is:
 *                            root/layers/N are its layers, each written once
 *
 * A version is never changed. It stays while a name means it or a sandbox stands
 * on it; a layer stays while a version has it, whichever import brought it. Each
 * step is one rename, in an order in which a kill at any point leaves the old or
 * the new state, and something for image_sweep() at most.
 *
 * The keeper reads nothing of an image: layers are numbered directories, chain
 * ids are names that are compared, settings are bytes. */
#ifndef KEEPER_IMAGE_H
#define KEEPER_IMAGE_H

#include "keeper/host.h"
#include "wire/image.h"

int image_open(struct keeper *k, struct err *e);

/* The version that `name` means now, or NULL; points into the keeper. */
const char *image_current(struct keeper *k, const char *name);
/* True for the id of a version, which no version of `base` looks like. */
bool image_is_version(const char *version);
/* Directories of the layers, uppermost first; they belong to the caller. Returns
 * how many, or -1. */
int image_layers(struct keeper *k, const char *version, int fds[IMAGE_LAYERS_MAX], struct err *e);
/* What the front gave for it; points into the keeper, empty if there is none. */
struct wire_bytes image_settings(struct keeper *k, const char *version);

/* The disk of import `id`, in which nothing runs any more, becomes a version, and
 * `name` means it; without a name it is a snapshot. Layers that are there already are
 * used and the new ones let go. */
int image_commit(struct keeper *k, const char *id, const struct keeper_commit *m, struct err *e);
/* ERR_CONFLICT if `alias` means another version. */
int image_alias(struct keeper *k, const char *name, const char *alias, struct err *e);
/* ERR_CONFLICT while a sandbox stands on it and no other name means it. */
int image_remove(struct keeper *k, const char *name, struct err *e);

/* One message per name. Returns how many. */
size_t image_list(struct keeper *k,
                  void (*each)(struct keeper *k, uint32_t seq, const struct keeper_template *m),
                  uint32_t seq);

/* Removes versions and layers that nothing needs. */
void image_sweep(struct keeper *k);
/* A sandbox that stood on `version` is gone: the same, if that may matter. */
void image_left(struct keeper *k, const char *version);

#endif
