/* stages.h - what a sandbox is made of, in order: each stage goes up after the ones above
 * it and may rely on them; going down runs the list backwards.
 *
 * EXTEND  A new isolation stage: NAME_up() and NAME_down() in a file of stages/, a row
 *         here, the file in meson.build, a test of what it must prevent in
 *         tests/isolation/. The name is in records: the next release must know it. */
#ifndef KEEPER_STAGES_H
#define KEEPER_STAGES_H

#include "keeper/sandbox.h"

/* cgroup first: everything that is born later is born inside it, so nothing we start can
 * escape being counted or killed. birth before disk and root: their mounts are mapped through
 * the user namespace that init is born in; until `init` it only waits. init last: when it has
 * its message, the tenant's code may run. */
/* clang-format off */
#define STAGES(X)                                          \
    /* name       number   functions  file              */ \
    X("cgroup",   CGROUP,  cgroup)    /* stages/cgroup.c  */ \
    X("ids",      IDS,     idrange)   /* stages/idrange.c */ \
    X("birth",    BIRTH,   birth)     /* stages/birth.c   */ \
    X("disk",     DISK,    disk)      /* disk/disk.c      */ \
    X("root",     ROOT,    rootfs)    /* stages/rootfs.c  */ \
    X("network",  NETWORK, network)   /* network/network.c */ \
    X("init",     INIT,    init)      /* stages/init.c    */
/* clang-format on */

#define STAGE_NUMBER(name, number, function) STAGE_##number,
enum { STAGES(STAGE_NUMBER) STAGE_COUNT };
#undef STAGE_NUMBER

/* up: 0: up. 1: not yet; the stage calls stages_continue() or sandbox_failed() later. -1: it
 * failed, and must be able to go down from where it is.
 * down: idempotent, also called for a stage that may not have been up. 0: down. 1: not yet,
 * call again. */
#define STAGE_FUNCTIONS(name, number, function)                                                    \
    int function##_up(struct sandbox *sb, struct err *e);                                          \
    int function##_down(struct sandbox *sb);
STAGES(STAGE_FUNCTIONS)
#undef STAGE_FUNCTIONS

/* The name of the uppermost of `n` stages; "": none. */
const char *stage_name(uint32_t n);

/* Runs the stages from where the sandbox is. On failure the caller takes it down. After
 * success its state gets EV_BOOTED or EV_FAILED later. */
int stages_up(struct sandbox *sb, struct err *e);
/* The same for a stage that was not up yet. */
void stages_continue(struct sandbox *sb);
/* One attempt to take down the stages from the top; 0 when all are down. */
int stages_down(struct sandbox *sb);

/* birth.c, for the nursery. */
int birth_socket(struct sandbox *sb, struct err *e);
void birth_born(struct sandbox *sb, pid_t pid, int pidfd);
void birth_failed(struct sandbox *sb, struct err *e);
/* Its init was there and is dead, and with it everything in its pid namespace. */
bool birth_is_over(const struct sandbox *sb);
/* `name` is uid_map or gid_map: ids from `inside` on are those from `base` on, `count` of them. */
int birth_map(pid_t pid, const char *name, unsigned inside, unsigned base, unsigned count,
              struct err *e);
/* rootfs.c: a detached mount of its own /dev. */
int devfs_make(const struct sandbox *sb, struct err *e);

#endif
