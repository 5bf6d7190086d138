/* template_base.h - the default template, made from the host's own files. */
#ifndef KEEPER_TEMPLATE_BASE_H
#define KEEPER_TEMPLATE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct base_counts {
    uint64_t files, bytes, linked, copied;
    bool sources; /* of packages: apt inside has one */
};

struct system_settings;

/* Fills the empty directory root_fd. `progress` may be NULL. */
int template_base_build(int root_fd, const struct system_settings *settings,
                        struct base_counts *ret,
                        void (*progress)(void *arg, const char *text, uint64_t done,
                                         uint64_t total),
                        void *arg, struct err *e);

/* Common programs that this host does not have, as "git, curl"; "" if none is missing. */
void template_base_missing(char *out, size_t room);

#endif
