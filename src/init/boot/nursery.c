/* nursery.c - see nursery.h.
 *
 * Its own mounts are an empty root with /proc and /sys: a newborn gets a copy of them and
 * needs no more, since its own root comes with the boot message. (The kernel lets a user
 * namespace mount a /proc only where it sees an uncovered one already.) */
#include "init/boot/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "wire/birth.h"
#include "wire/boot.h"
#include "wire/fds.h"

#define NAMESPACES                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

/* CLONE_PARENT: the keeper is the parent, as if it had forked, and waits for it. */
#define NEWBORN (NAMESPACES | CLONE_PARENT | CLONE_INTO_CGROUP | CLONE_PIDFD)

static int copy_mount(int root, const char *path)
{
    autofd int mnt =
        (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (mnt < 0 || mkdirat(root, path + 1, 0755) < 0)
        return -1;
    return (int)syscall(SYS_move_mount, mnt, "", root, path + 1, MOVE_MOUNT_F_EMPTY_PATH);
}

static int bare_mounts(void)
{
    autofd int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), root = -1;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    root = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
    if (root < 0 || syscall(SYS_move_mount, root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        copy_mount(root, "/proc") < 0 || copy_mount(root, "/sys") < 0)
        return -1;
    return fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
                   umount2(".", MNT_DETACH) < 0 || chdir("/") < 0
               ? -1
               : 0;
}

/* As the range's own first id: inotify instances, namespaces and the like count against the id
 * that made the user namespace. Made by root, all sandboxes and the host's root would share
 * one budget. Raw system calls: libc's would synchronise threads, of which there are none. With
 * SECBIT_NO_SETUID_FIXUP the capabilities stay. */
static long bear(const struct birth_order *o, const int *fds, int *ret_pidfd)
{
    struct clone_args args = {.flags = NEWBORN,
                              .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                              .cgroup = (uint64_t)fds[BIRTH_CGROUP]};
    long pid = -1;
    int saved;

    if (syscall(SYS_setresgid, -1, o->id, -1) == 0 && syscall(SYS_setresuid, -1, o->id, -1) == 0)
        pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        return 0;
    saved = errno;
    /* A change of ids clears PR_SET_PDEATHSIG, by which we end with the keeper: set it again. */
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        abort();
    errno = saved;
    return pid;
}

/* In the newborn, before it waits for its boot message. Fds are closed: with a copy of the
 * nursery's socket the keeper would not see the nursery end. It is not dumpable, and its memory
 * counts as the host's (mm->user_ns is the nursery's): not even root inside can read or trace
 * it. */
static void settle(const struct birth_order *o, const int *fds, char *title)
{
    for (uint32_t i = 0; i < o->nv1; i++)
        if (write(fds[BIRTH_V1 + i], "0", 1) != 1)
            _exit(6);
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || dup2(fds[BIRTH_BOOT], BOOT_FD) < 0 ||
        syscall(SYS_close_range, BOOT_FD + 1, ~0u, 0) < 0)
        _exit(4);
    prctl(PR_SET_NAME, "cove-init");
    memset(title, 0, strlen(title));
    memcpy(title, "cove: init", sizeof("cove: init"));
}

/* All newborns are copies of one process: each gets a stack guard of its own. This function
 * never returns to a frame that was made with the old one. */
static void __attribute__((noreturn, no_stack_protector)) go_on(int (*newborn)(void))
{
    uintptr_t guard;

    if (syscall(SYS_getrandom, &guard, sizeof(guard), 0) != (long)sizeof(guard))
        _exit(8);
    guard &= ~(uintptr_t)0xff; /* a NUL byte, where an overflowing string ends */
    __asm__ volatile("mov %0, %%fs:0x28" : : "r"(guard));
    exit(newborn());
}

static void answer(long pid, int pidfd)
{
    struct birth_answer a = {.pid = (int32_t)(pid < 0 ? 0 : pid), .error = pid < 0 ? errno : 0};

    if (fds_send(NURSERY_FD, &a, sizeof(a), &pidfd, pid < 0 ? 0 : 1, 0) < 0)
        _exit(0); /* the keeper is gone; the newborn notices that, too */
    if (pidfd >= 0)
        close(pidfd);
}

void nursery_run(char *title, int (*newborn)(void))
{
    struct birth_order o;
    int fds[BIRTH_FDS_MAX];

    prctl(PR_SET_NAME, "cove-nursery");
    setsid(); /* Ctrl-C at the terminal of `cove serve` is for the keeper alone */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
        prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0 || bare_mounts() < 0)
        _exit(1);
    while (fds_receive(NURSERY_FD, &o, sizeof(o), fds, BIRTH_FDS_MAX) == sizeof(o) && fds[0] >= 0 &&
           o.nv1 <= BIRTH_FDS_MAX - BIRTH_V1) {
        int pidfd = -1;
        long pid = bear(&o, fds, &pidfd);

        if (pid == 0) {
            settle(&o, fds, title);
            go_on(newborn);
        }
        answer(pid, pidfd);
        for (int i = 0; i < BIRTH_FDS_MAX; i++)
            close(fds[i]);
    }
    _exit(0);
}
