/* clock.c - see clock.h. */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static struct {
    bool on;
    uint64_t mono_ns, real_ms;
} held;

void clock_hold(uint64_t mono_ns, uint64_t real_ms)
{
    held.on = true;
    held.mono_ns = mono_ns;
    held.real_ms = real_ms;
}

void clock_release(void)
{
    held.on = false;
}

uint64_t clock_mono_ns(void)
{
    struct timespec ts;

    if (held.on)
        return held.mono_ns;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ms(void)
{
    return clock_mono_ns() / 1000000u;
}

uint64_t clock_real_ms(void)
{
    struct timespec ts;

    if (held.on)
        return held.real_ms;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

const char *clock_text(uint64_t real_ms, char out[CLOCK_TEXT_MAX])
{
    time_t s = (time_t)(real_ms / 1000);
    struct tm tm;
    size_t n;

    gmtime_r(&s, &tm);
    n = strftime(out, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, CLOCK_TEXT_MAX - n, ".%03uZ", (unsigned)(real_ms % 1000));
    return out;
}
