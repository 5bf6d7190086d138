/* mount.c - see mount.h. */
#include "init/boot/mount.h"

#include <linux/mount.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "base/own.h"

int boot_fs(const char *type, const char *const *opts, unsigned attrs, struct err *e)
{
    autofd int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), mnt = -1;

    if (fs < 0)
        return err_sys(e, "fsopen %s", type);
    for (; opts != NULL && opts[0] != NULL; opts += 2) {
        bool flag = opts[1][0] == '\0';

        if (syscall(SYS_fsconfig, fs, flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, opts[0],
                    flag ? NULL : opts[1], 0) < 0)
            return err_sys(e, "%s %s=%s", type, opts[0], opts[1]);
    }
    if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, "fsconfig %s", type);
    mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
    return mnt < 0 ? err_sys(e, "mount %s", type) : take_fd(&mnt);
}

int boot_attach(int mnt, int dfd, const char *path, struct err *e)
{
    if (syscall(SYS_move_mount, mnt, "", dfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "mount at /%s", path);
    return 0;
}

int boot_mount(struct boot *b, const char *type, const char *path, const char *const *opts,
               unsigned attrs, struct err *e)
{
    autofd int mnt = boot_fs(type, opts, attrs, e);

    return mnt < 0 ? -1 : boot_attach(mnt, b->fds[BOOT_ROOT], path, e);
}
