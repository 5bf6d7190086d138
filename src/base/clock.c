/* clock.c - see clock.h. */
#include "base/clock.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* Milliseconds; finer digits are dropped. */
static const char *read_fraction(const char *p, unsigned *ms)
{
    unsigned scale = 100;

    *ms = 0;
    if (*p != '.')
        return p;
    if (!isdigit((unsigned char)*++p))
        return NULL;
    for (; isdigit((unsigned char)*p); p++, scale /= 10)
        *ms += (unsigned)(*p - '0') * scale;
    return p;
}

static int read_offset(const char *p, long *seconds)
{
    struct tm tm = {0};
    const char *end;

    *seconds = 0;
    if (strcmp(p, "Z") == 0 || strcmp(p, "z") == 0)
        return 0;
    if (*p != '+' && *p != '-')
        return -1;
    end = strptime(p + 1, "%H:%M", &tm);
    if (end == NULL || *end != '\0')
        return -1;
    *seconds = (tm.tm_hour * 60L + tm.tm_min) * 60L * (*p == '-' ? -1 : 1);
    return 0;
}

int clock_read(const char *text, uint64_t *ret_ms)
{
    struct tm tm = {0};
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    unsigned ms;
    long offset;
    time_t t;

    p = p == NULL ? NULL : read_fraction(p, &ms);
    if (p == NULL || read_offset(p, &offset) < 0)
        return -1;
    t = timegm(&tm) - offset;
    if (t < 0)
        return -1;
    *ret_ms = (uint64_t)t * 1000u + ms;
    return 0;
}

uint64_t clock_ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}
