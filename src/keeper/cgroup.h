/* cgroup.h - reading and writing the files of cgroups; for cgroup.c, freezer.c and meter.c. */
#ifndef KEEPER_CGROUP_H
#define KEEPER_CGROUP_H

#include "keeper/host.h"

int cgroup_put(int dfd, const char *name, const char *value, struct err *e);
/* Reads the file and ends it with a NUL; -1 and "" if it cannot be read. */
ssize_t cgroup_get(int dfd, const char *name, char *out, size_t room);
/* Whether a list of words, as of controllers, has this one. */
bool cgroup_has_word(const char *list, const char *word);
/* Where the v2 hierarchy (NULL), or the v1 one of a controller, is mounted. */
int cgroup_mounted_at(const char *controller, char out[256]);
/* A directory of the sandbox in the v2 hierarchy: "" or "/run". -1 if it does not exist. */
int cgroup_dir(const struct sandbox *sb, const char *sub);
/* The group in which a controller limits this sandbox; -1 if there is none. */
int cgroup_ctrl_dir(const struct sandbox *sb, enum controller c);

#endif
