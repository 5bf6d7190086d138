/* key.h - the first API key: DIR/api-key, readable by its owner only. The front gets its hash. */
#ifndef DAEMON_KEY_H
#define DAEMON_KEY_H

#include "base/err.h"

#define KEY_HASH 65u /* SHA-256, 64 hex digits and a NUL */

/* Reads the key from directory `dir`, or makes one. */
int key_open(int dir, char hash[KEY_HASH], struct err *e);

#endif
