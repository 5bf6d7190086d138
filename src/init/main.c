/* main.c - cove-init: the nursery, and the children it forks: each is pid 1 of one sandbox,
 * boots and then serves the front. With HOST_ARG it serves a machine of its own instead. */
#include <string.h>

#include "base/clock.h"
#include "init/boot/boot.h"
#include "init/boot/host.h"
#include "init/boot/nursery.h"
#include "init/serve/serve.h"

static int newborn(void)
{
    static struct boot b;
    static struct statfs_watch statfs;
    struct serve_opts o;
    struct err e;

    if (boot_receive(&b, &e) < 0)
        return 1; /* the keeper is gone, or of another version; nothing was changed */
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
                            .helper_fd = b.fds[BOOT_HELPER],
                            .statfs = &statfs};
    statfs.listener = b.listener;
    statfs.used_fd = b.fds[BOOT_USED];
    statfs.quota_fd = b.fds[BOOT_QUOTA];
    statfs.pass = b.msg.pass;
    statfs.memory = b.msg.shm_bytes * 2;
    statfs.limits = (struct limits_source){.v1 = b.msg.cgroups_v1, .pass = b.msg.pass};
    statfs.files = &b.limits;
    statfs.diag_fd = b.diag_fd;
    boot_answer(NULL);
    return serve_run(&o) < 0;
}

static int on_a_host(void)
{
    static struct host_boot b;
    struct err e;

    if (host_boot(&b, &e) < 0) {
        boot_answer(&e);
        return 1;
    }
    boot_answer(NULL);
    return serve_run(&(struct serve_opts){
               .listen_fd = b.fds[HOST_LISTEN],
               .run_fd = b.msg.cgroups != 0 ? b.fds[HOST_RUN] : -1,
               .boot_id = b.msg.boot_id,
               .booted_ms = clock_real_ms(),
               .helper_fd = b.fds[HOST_HELPER],
               .session_root = b.msg.sessions,
               .ends = true,
           }) < 0;
}

int main(int argc, char **argv)
{
    if (argc < 1)
        return 1;
    serve_default_signals();
    if (argc > 1 && strcmp(argv[1], HOST_ARG) == 0)
        return on_a_host();
    nursery_run(argv[0], newborn);
}
