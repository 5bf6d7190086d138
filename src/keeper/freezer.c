/* freezer.c - see freezer.h. */
#include "keeper/freezer.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "keeper/cgroup.h"

#define FREEZER_SPIN_NS 300000u

/* By one path each: a pause is hardly more than this. */
static void path_of(const struct sandbox *sb, enum freeze what, const char *file, char out[96])
{
    str_fmt(out, 96, "%s%s/%s", sb->rec.id, what == FREEZE_COMMANDS ? "/run" : "", file);
}

int freezer_set(struct sandbox *sb, enum freeze what, bool on, struct err *e)
{
    char path[96];

    path_of(sb, what, "cgroup.freeze", path);
    return cgroup_put(sb->k->cgroups.v2_fd, path, on ? "1" : "0", e);
}

bool freezer_is_frozen(struct sandbox *sb, enum freeze what)
{
    char path[96], text[128];

    path_of(sb, what, "cgroup.events", path);
    return cgroup_get(sb->k->cgroups.v2_fd, path, text, sizeof(text)) > 0 &&
           strstr(text, "frozen 1") != NULL;
}

bool freezer_is_frozen_soon(struct sandbox *sb, enum freeze what)
{
    uint64_t until = clock_mono_ns() + FREEZER_SPIN_NS;

    do {
        if (freezer_is_frozen(sb, what))
            return true;
    } while (clock_mono_ns() < until);
    return false;
}

bool freezer_is_on(struct sandbox *sb, enum freeze what)
{
    char path[96], text[8];

    path_of(sb, what, "cgroup.freeze", path);
    return cgroup_get(sb->k->cgroups.v2_fd, path, text, sizeof(text)) > 0 && text[0] == '1';
}

/* More than there is: the kernel takes what it can and then says EAGAIN. */
void freezer_reclaim(int memory_dir, bool v2)
{
    struct err ignored;

    if (v2)
        cgroup_put(memory_dir, "memory.reclaim", "1T", &ignored);
    else
        cgroup_put(memory_dir, "memory.force_empty", "0", &ignored);
}
