/* host.c - see host.h. */
#include "init/boot/host.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/run/mark.h"
#include "init/run/policy.h"
#include "wire/boot.h"
#include "wire/fds.h"
#include "wire/init.h"

static int receive(struct host_boot *b, struct err *e)
{
    ssize_t n = fds_receive(BOOT_FD, &b->msg, sizeof(b->msg), b->fds, HOST_FD_COUNT);

    if (n < 0)
        return err_sys(e, "receive the boot message");
    if ((size_t)n != sizeof(b->msg) || b->msg.version != INIT_VERSION || b->fds[0] < 0)
        return err_set(e, ERR_INTERNAL, "the boot message is of another version than this init");
    return 0;
}

int host_boot(struct host_boot *b, struct err *e)
{
    if (receive(b, e) < 0)
        return -1;
    prctl(PR_SET_NAME, "cove-init");
    init_policy = (struct policy){.mounts = 0, .identities = b->msg.identities != 0};
    if (b->msg.cgroups == 0 && marks_begin(e) < 0)
        return -1;
    return listen(b->fds[HOST_LISTEN], 128) < 0 ? err_sys(e, "listen on the socket of the front")
                                                : 0;
}
