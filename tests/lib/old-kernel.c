/* old-kernel PROGRAM [ARG...] - runs it and its children with a seccomp filter that removes
 * features that the kernel of Debian 12 lacks and Cove has fallbacks for: overlay layers as
 * fds (fsconfig), and nameless files (O_TMPFILE), which 6.1 has except in overlays. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_FD 5u             /* FSCONFIG_SET_FD */
#define TMPFILE_BIT 020000000 /* O_TMPFILE without O_DIRECTORY */

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define IF_NOT(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define IF_NO_BIT(bits, skip) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, skip)
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define GO_ON BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
    /* clang-format off */
    struct sock_filter text[] = {
        LOAD(nr),
        IF_NOT(SYS_fsconfig, 4), LOAD(args[1]), IF_NOT(SET_FD, 1), FAIL(EINVAL), GO_ON,
        IF_NOT(SYS_openat, 4), LOAD(args[2]), IF_NO_BIT(TMPFILE_BIT, 1), FAIL(EOPNOTSUPP), GO_ON,
        IF_NOT(SYS_open, 3), LOAD(args[1]), IF_NO_BIT(TMPFILE_BIT, 1), FAIL(EOPNOTSUPP),
        GO_ON,
    };
    /* clang-format on */
    struct sock_fprog filter = {sizeof(text) / sizeof(text[0]), text};

    if (argc < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        perror("old-kernel");
        return 1;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
