/* harden.c - see harden.h. */
#include "front/harden.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "wire/front.h"

static int check_user(struct err *e)
{
    uid_t r, eff, s;
    gid_t gr, geff, gs;

    if (getresuid(&r, &eff, &s) < 0 || getresgid(&gr, &geff, &gs) < 0)
        return err_sys(e, "read our user and group ids");
    if (r == 0 || eff == 0 || s == 0 || gr == 0 || geff == 0 || gs == 0)
        return err_set(e, ERR_DENIED, "the front does not run as root; start `cove serve`");
    return 0;
}

static int check_capabilities(struct err *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &head, data) < 0)
        return err_sys(e, "capget");
    for (size_t i = 0; i < ARRAY_LEN(data); i++)
        if (data[i].effective || data[i].permitted || data[i].inheritable)
            return err_set(e, ERR_DENIED, "the front does not run with capabilities");
    return 0;
}

/* The pair of sockets was made by the keeper, so the kernel knows its pid: if
 * our parent is another one, the keeper died before PR_SET_PDEATHSIG could help. */
static int check_parent(int keeper_fd, struct err *e)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(keeper_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return err_sys(e, "no keeper at fd %d", keeper_fd);
    if (peer.pid != getppid())
        return err_set(e, ERR_GONE, "the keeper that started this front is gone");
    return 0;
}

int harden(int keeper_fd, bool any_user, struct err *e)
{
    if (!any_user && (check_user(e) < 0 || check_capabilities(e) < 0))
        return -1;
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_NAME, FRONT_NAME) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_sys(e, "prctl");
    return check_parent(keeper_fd, e);
}

int harden_nofile(struct err *e)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return err_sys(e, "getrlimit");
    r.rlim_cur = r.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &r) < 0 ? err_sys(e, "setrlimit") : 0;
}
