/* str.h - strict parsing of untrusted numbers and text. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Digits only: no sign, no blanks, nothing after them; -1 otherwise or above max. */
int str_u64(const char *s, uint64_t max, uint64_t *ret);

/* "512", "512K", "64M", "2G" (powers of 1024); -1 otherwise. */
int str_size(const char *s, uint64_t *ret);

/* "1500ms", "30s", "5m", "2h", "7d", or a bare number of seconds; in ms. */
int str_duration_ms(const char *s, uint64_t *ret);

/* Length of the character at p (n > 0), 0 if it is invalid, -1 if it is valid so
 * far but ends beyond n. Overlong forms, surrogates and > U+10FFFF are invalid. */
int str_utf8_char(const void *p, size_t n);
bool str_is_utf8(const void *p, size_t n);
/* How many of the `n` bytes can be shown now: all but an unfinished character
 * at the end, which at most three bytes can be. */
size_t str_utf8_whole(const void *p, size_t n);

int str_base64(struct buf *out, const void *p, size_t n);
/* Strict: padding required, no blanks. */
int str_unbase64(struct buf *out, const char *s, size_t n);

/* The value of a hexadecimal digit, or -1. */
int str_hex_digit(unsigned char c);
void str_hex(char *out, const void *p, size_t n); /* 2n characters and a NUL */

#define STR_DEC_MAX 20
/* Decimal digits of v, no NUL; returns how many. For hot paths, where snprintf is too slow. */
size_t str_dec(char out[STR_DEC_MAX], uint64_t v);

/* snprintf that aborts if the text does not fit: for names whose parts are all
 * bounded by us. */
void str_fmt(char *out, size_t room, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
