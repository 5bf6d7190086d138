/* fsync.h - what fsync and sync mean inside a sandbox.
 *
 * durable: the data is on the host's disk when they return. relaxed: they return at once; the data
 * is there some seconds later, and survives everything except a failure of the host. */
#ifndef BASE_FSYNC_H
#define BASE_FSYNC_H

#include <string.h>

/* FSYNC_SETTING: not chosen, the setting `fsync` counts. */
enum fsync { FSYNC_SETTING, FSYNC_DURABLE, FSYNC_RELAXED, FSYNC_COUNT };

static inline const char *fsync_name(enum fsync f)
{
    return f == FSYNC_RELAXED ? "relaxed" : "durable";
}

/* FSYNC_COUNT: no such word. */
static inline enum fsync fsync_of(const char *word)
{
    enum fsync f = FSYNC_DURABLE;

    while (f < FSYNC_COUNT && strcmp(word, fsync_name(f)) != 0)
        f++;
    return f;
}

#endif
