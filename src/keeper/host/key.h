/* key.h - the first API key: DIR/api-key, readable by root only. The front gets its hash. */
#ifndef KEEPER_HOST_KEY_H
#define KEEPER_HOST_KEY_H

#include "keeper/host.h"

/* Reads the key, or makes one. */
int key_open(struct keeper *k, struct err *e);
const char *key_hash(const struct keeper *k); /* SHA-256, 64 hex digits */

#endif
