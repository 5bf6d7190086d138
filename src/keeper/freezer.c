/* freezer.c - see freezer.h. */
#include "keeper/freezer.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "keeper/cgroup.h"

#define FREEZER_SPIN_NS 300000u

static const char *const dirs[] = {[FREEZE_COMMANDS] = "/run", [FREEZE_ALL] = ""};

int freezer_set(struct sandbox *sb, enum freeze what, bool on, struct err *e)
{
    autofd int dir = cgroup_dir(sb, dirs[what]);

    if (dir < 0)
        return err_sys(e, "open the cgroup");
    return cgroup_put(dir, "cgroup.freeze", on ? "1" : "0", e);
}

bool freezer_is_frozen(struct sandbox *sb, enum freeze what)
{
    autofd int dir = cgroup_dir(sb, dirs[what]);
    char text[128];

    return cgroup_get(dir, "cgroup.events", text, sizeof(text)) > 0 &&
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
    autofd int dir = cgroup_dir(sb, dirs[what]);
    char text[8];

    return cgroup_get(dir, "cgroup.freeze", text, sizeof(text)) > 0 && text[0] == '1';
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
