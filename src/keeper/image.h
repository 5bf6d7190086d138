/* image.h - templates that were added: names, versions, and the layers they share.
 *
 *   DIR/images/names/NAME    the version of a name; an alias is one more name
 *   DIR/images/versions/ID   a version: its layers, lowest first, and its settings
 *   DIR/disk/.image-ID       the disk of the import that made it, unchanged:
 *                            root/layers/N are its layers, each written once
 *
 * A version never changes. It stays while a name refers to it or a sandbox or snapshot uses it; a
 * layer stays while a version has it, also one of another import. Each step is one rename, in an
 * order in which a kill at any point leaves the old or the new state, and at most leftovers for
 * image_sweep().
 *
 * The keeper interprets nothing of an image: layers are numbered directories, chain ids are names
 * that are compared, settings are bytes. */
#ifndef KEEPER_IMAGE_H
#define KEEPER_IMAGE_H

#include "keeper/host.h"
#include "wire/image.h"

int image_open(struct keeper *k, struct err *e);

/* The current version of `name`, or NULL; points into the keeper. */
const char *image_current(struct keeper *k, const char *name);
/* True for the id of a version; versions of `base` look different. */
bool image_is_version(const char *version);
/* Opens the directories of the layers, uppermost first; they belong to the caller. Returns their
 * number, or -1. */
int image_layers(struct keeper *k, const char *version, int fds[IMAGE_LAYERS_MAX], struct err *e);
/* The settings that the front committed; points into the keeper, empty if there are none. */
struct wire_bytes image_settings(struct keeper *k, const char *version);

/* The disk of import `id`, in which nothing runs any more, becomes a version, and `name` refers to
 * it; without a name it becomes a snapshot. New layers that exist already are removed and the
 * existing ones used. */
int image_commit(struct keeper *k, const char *id, const struct keeper_commit *m, struct err *e);
/* ERR_CONFLICT if `alias` refers to another version. */
int image_alias(struct keeper *k, const char *name, const char *alias, struct err *e);
/* ERR_CONFLICT while a sandbox or snapshot uses it and no other name refers to it. */
int image_remove(struct keeper *k, const char *name, struct err *e);

/* One message per name. Returns their number. */
size_t image_list(struct keeper *k,
                  void (*each)(struct keeper *k, uint32_t seq, const struct keeper_template *m),
                  uint32_t seq);

/* Removes versions and layers that nothing uses. */
void image_sweep(struct keeper *k);
/* A sandbox or snapshot that used `version` is gone: removes it if nothing else uses it. */
void image_released(struct keeper *k, const char *version);

#endif
