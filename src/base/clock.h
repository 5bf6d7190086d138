/* clock.h - the time, read in one place so that a test can hold it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_mono_ms(void); /* never goes back; for timeouts */
uint64_t clock_mono_ns(void);
uint64_t clock_real_ms(void); /* since 1970; for people and records */

struct timespec;
uint64_t clock_ns_of(const struct timespec *t);

/* Tests: both clocks stand still at these values until released. */
void clock_hold(uint64_t mono_ns, uint64_t real_ms);
void clock_release(void);

#define CLOCK_TEXT_MAX 32
/* RFC 3339 in UTC with milliseconds, e.g. 2026-11-15T08:21:00.123Z. */
const char *clock_text(uint64_t real_ms, char out[CLOCK_TEXT_MAX]);
/* Parses it, with any fraction and any offset from UTC; -1 if malformed. */
int clock_read(const char *text, uint64_t *ret_ms);

#endif
