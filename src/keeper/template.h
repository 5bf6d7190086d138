/* template.h - the root filesystems that sandboxes start from.
 *
 * A template is a name; each version is a directory that is never written again once it is
 * complete, and stays while a sandbox uses it. The default one, `base`, is made from the host's own
 * operating system files. */
#ifndef KEEPER_TEMPLATE_H
#define KEEPER_TEMPLATE_H

#include "keeper/host.h"

/* Finds the default template, if there is one. */
int template_open(struct keeper *k, struct err *e);
/* Builds it if there is none (some seconds; logged). */
int template_make_first(struct keeper *k, struct err *e);
void template_close(struct keeper *k);

/* The version for new sandboxes of `name` (`base`, or one of image.h); points into the keeper. */
const char *template_current(struct keeper *k, const char *name, struct err *e);
/* Opens the directories of a version's layers, uppermost first; they belong to the caller, who has
 * room for ROOT_LAYERS_MAX. Returns their number, or -1. */
int template_layers(struct keeper *k, const char *version, int *fds, struct err *e);

struct template_row {
    char name[KEEPER_NAME_MAX], state[32], note[KEEPER_TEXT_MAX];
    uint64_t bytes, files, created_ms;
};
/* Of `base`. */
int template_show(struct keeper *k, const char *name, struct template_row *ret, struct err *e);

/* Builds `name` again in a child; progress and end come by callback. One build runs at a time
 * (ERR_CONFLICT). */
int template_refresh(struct keeper *k, const char *name,
                     void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total),
                     void (*done)(void *arg, const struct err *e), void *arg, struct err *e);
/* Removes versions that nothing uses. */
void template_sweep(struct keeper *k);

#endif
