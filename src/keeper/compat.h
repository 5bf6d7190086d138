/* compat.h - kernel constants and calls that Debian 12's headers lack. Callers try them and see
 * whether the running kernel knows them. */
#ifndef KEEPER_COMPAT_H
#define KEEPER_COMPAT_H

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA
#define BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA 4
#endif
#ifndef SECBIT_NO_SETUID_FIXUP
#define SECBIT_NO_SETUID_FIXUP (1 << 2)
#endif

static inline int sys_open_tree(int dfd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dfd, path, flags);
}

static inline int sys_move_mount(int from, const char *fp, int to, const char *tp, unsigned flags)
{
    return (int)syscall(SYS_move_mount, from, fp, to, tp, flags);
}

static inline int sys_fsopen(const char *fs, unsigned flags)
{
    return (int)syscall(SYS_fsopen, fs, flags);
}

static inline int sys_fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int sys_fsmount(int fd, unsigned flags, unsigned attrs)
{
    return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

static inline int sys_mount_setattr(int dfd, const char *path, unsigned flags,
                                    struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, dfd, path, flags, attr, sizeof(*attr));
}

static inline long sys_clone3(struct clone_args *args)
{
    return syscall(SYS_clone3, args, sizeof(*args));
}

#endif
