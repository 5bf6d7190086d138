/* sandbox.c - the stages, in order, and going up and down them. */
#include "keeper/sandbox.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/freezer.h"
#include "keeper/host.h"
#include "keeper/pool.h"

/* Each stage may rely on the ones above it; going down runs the list backwards,
 * so a stage that failed halfway through `up` must be able to go down from there.
 *
 *  - cgroup first: everything born later is born inside it, so nothing we start
 *    can escape being counted or killed.
 *  - birth before disk and root: their mounts are mapped through the user
 *    namespace that init is born in. Until `init` it only waits.
 *  - init last: the moment it has its message, the tenant's code may run. */
/* clang-format off */
const struct stage stages[] = {
    {"cgroup",  cgroup_up,  cgroup_down},
    {"ids",     idrange_up, idrange_down},
    {"birth",   birth_up,   birth_down},
    {"disk",    disk_up,    disk_down},
    {"root",    rootfs_up,  rootfs_down},
    {"network", network_up, network_down},
    {"init",    init_up,    init_down},
};
/* clang-format on */
const unsigned stage_count = ARRAY_LEN(stages);

const char *phase_name(enum phase p)
{
    static const char *const names[PHASE_COUNT] = {"building", "pooled", "given",  "stopped",
                                                   "dying",    "import", "damaged"};

    return (unsigned)p < PHASE_COUNT ? names[p] : "unknown";
}

struct sandbox *sandbox_new(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = calloc(1, sizeof(*sb));

    if (sb == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    sb->k = k;
    str_fmt(sb->rec.id, sizeof(sb->rec.id), "%s", id);
    sb->place = PLACE_NONE;
    sb->pidfd = sb->boot_fd = sb->userns_fd = sb->root_fd = -1;
    for (int i = 0; i < FREEZE_COUNT; i++)
        sb->freezer[i].set = sb->freezer[i].events = -1;
    sb->pid_io.fd = sb->boot_io.fd = -1;
    sb->rec.range = RANGE_NONE;
    atomic_init(&sb->root_closed, 1);
    list_init(&sb->link);
    list_init(&sb->birth_link);
    if (map_put(&k->sandboxes, &sb->by_id, sb->rec.id) < 0) {
        free(sb);
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    return sb;
}

void sandbox_free(struct sandbox *sb)
{
    loop_io_stop(sb->k->loop, &sb->pid_io);
    loop_io_stop(sb->k->loop, &sb->boot_io);
    loop_timer_stop(sb->k->loop, &sb->timer);
    list_del(&sb->link);
    map_del(&sb->k->sandboxes, &sb->by_id);
    drop_fd(&sb->userns_fd);
    drop_fd(&sb->root_fd);
    freezer_close(sb);
    drop_fd(&sb->boot_fd);
    drop_fd(&sb->pidfd);
    free(sb->commit);
    free(sb->rules.mem);
    free(sb);
}

int sandbox_up(struct sandbox *sb, struct err *e)
{
    sb->rising = true;
    while (sb->rec.stage < stage_count) {
        const struct stage *s = &stages[sb->rec.stage];
        int r;

        sb->rec.stage++;
        r = record_save(sb, false, e) < 0 ? -1 : s->up(sb, e);
        if (r < 0)
            return err_wrap(e, "sandbox %s: %s", sb->rec.id, s->name);
        if (r > 0)
            return 0;
    }
    return 0;
}

void sandbox_go_on(struct sandbox *sb)
{
    struct err e;

    if (sandbox_up(sb, &e) < 0)
        sandbox_failed(sb, &e);
}

int sandbox_down(struct sandbox *sb)
{
    struct err e;

    while (sb->rec.stage > 0) {
        if (stages[sb->rec.stage - 1].down(sb) != 0)
            return 1;
        sb->rec.stage--;
    }
    if (!sb->keep_disk) {
        if (disk_down(sb) != 0) /* again: it may have been kept on the way down */
            return 1;
        record_remove(sb);
        return 0;
    }
    if (sb->rec.phase == PHASE_DAMAGED)
        return 0; /* nothing of it runs any more; its record is left as it was found */
    sb->rec.phase = PHASE_STOPPED;
    if (record_save(sb, true, &e) < 0)
        log_warn("sandbox %s: its record: %s", sb->rec.id, e.msg);
    return 0;
}
