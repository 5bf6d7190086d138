/* run.c - see run.h. */
#include "keeper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

int run_program(const char *path, const char *const argv[])
{
    static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
    posix_spawn_file_actions_t fa;
    int status, r;
    pid_t pid;

    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    r = posix_spawn(&pid, path, &fa, NULL, (char *const *)(uintptr_t)argv,
                    (char *const *)(uintptr_t)envp);
    posix_spawn_file_actions_destroy(&fa);
    if (r != 0) {
        errno = r;
        return -1;
    }
    if (waitpid(pid, &status, 0) < 0)
        return 1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
