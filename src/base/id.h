/* id.h - random ids and secrets that cannot be guessed.
 *
 * Ids are lower-case letters and digits only, so that they are valid in a host
 * name, a path and a cgroup. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

#define ID_LEN 20 /* 5 bits each: 100 bits; E2B's ids have 20 characters too */

/* Writes `n` characters and a NUL. Never fails: without entropy the program
 * cannot go on safely and aborts. */
void id_random(char *out, size_t n);
void id_bytes(void *out, size_t n);
/* A random UUID (version 4), the form of the kernel's boot ids. */
#define ID_UUID_LEN 36
void id_uuid(char out[ID_UUID_LEN + 1]);
/* True for 1..max characters of [a-z0-9] only. */
bool id_is_valid(const char *s, size_t max);

/* Tests: ids come from this seed, the same every time; 0 ends it. */
void id_hold(unsigned long seed);

#endif
