/* attack.h - how an attack tells what came of it: one line per attempt. */
#ifndef ATTACK_H
#define ATTACK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void say(const char *name, const char *result)
{
    printf("%s %s\n", name, result);
    fflush(stdout);
}

static inline void say_number(const char *name, long long n)
{
    printf("%s %lld\n", name, n);
    fflush(stdout);
}

static inline const char *errno_name(int e)
{
    const char *name = strerrorname_np(e);

    return name != NULL ? name : "E?";
}

/* For what returns -1 and sets errno. */
#define TRY(name, call)                                                                            \
    do {                                                                                           \
        errno = 0;                                                                                 \
        say(name, (long)(call) == -1 ? errno_name(errno) : "ok");                                  \
    } while (0)

static inline int done(void)
{
    puts("done");
    return fflush(stdout) == 0 ? 0 : 1;
}

#endif
