/* main.c - cove-init: pid 1 of one sandbox. Boots, then serves the front. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "init/boot.h"
#include "init/serve.h"

int main(void)
{
    static struct boot b;
    static struct statfs_watch statfs;
    struct serve_opts o;
    struct err e;

    prctl(PR_SET_NAME, "cove-init");
    /* Born with nothing but the boot socket: hold 0, 1 and 2 before any fd that
     * arrives with the message takes one of them. */
    while (open("/dev/null", O_RDWR | O_CLOEXEC) < 2)
        continue;
    fcntl(BOOT_FD, F_SETFD, FD_CLOEXEC);
    if (boot_receive(&b, &e) < 0)
        return 1; /* the keeper is gone, or not ours: nothing began */
    if (boot_run(&b, &e) < 0) {
        boot_answer(&e);
        return 1;
    }
    o = (struct serve_opts){.listen_fd = b.fds[BOOT_LISTEN],
                            .run_fd = b.fds[BOOT_RUN],
                            .oom_fd = b.fds[BOOT_OOM],
                            .boot_id = b.msg.boot_id,
                            .booted_ms = clock_real_ms(),
                            .nofile = b.msg.nofile,
                            .statfs = &statfs};
    statfs.listener = b.listener;
    statfs.used_fd = b.fds[BOOT_USED];
    statfs.quota_fd = b.fds[BOOT_QUOTA];
    boot_answer(NULL);
    return serve_run(&o) < 0;
}
