/* stages.c - see stages.h: going up and down the list. */
#include "keeper/stages.h"

#include "base/log.h"
#include "keeper/life.h"

/* clang-format off */
#define STAGE_ROW(name, number, function) {name, function##_up, function##_down},
static const struct stage {
    const char *name;
    int (*up)(struct sandbox *sb, struct err *e);
    int (*down)(struct sandbox *sb);
} stages[] = {STAGES(STAGE_ROW)};
/* clang-format on */

const char *stage_name(uint32_t n)
{
    return n == 0 ? "" : stages[n - 1].name;
}

int stages_up(struct sandbox *sb, struct err *e)
{
    while (sb->rec.stage < STAGE_COUNT) {
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

void stages_continue(struct sandbox *sb)
{
    struct err e;

    if (stages_up(sb, &e) < 0)
        sandbox_failed(sb, &e);
}

int stages_down(struct sandbox *sb)
{
    struct err e;

    while (sb->rec.stage > 0) {
        if (stages[sb->rec.stage - 1].down(sb) != 0)
            return 1;
        sb->rec.stage--;
    }
    if (!sandbox_keeps_disk(sb)) {
        if (disk_down(sb) != 0) /* again: it may have been deleted after that stage was down */
            return 1;
        record_remove(sb);
    } else if (sb->rec.phase != PHASE_DAMAGED && record_save(sb, true, &e) < 0) {
        log_warn("sandbox %s: save its record: %s", sb->rec.id, e.msg);
    }
    return 0;
}
