/* proto.h - protobuf's JSON: bytes in several kinds of base64, enums by name or number. */
#ifndef FRONT_PLANES_E2B_PROTO_H
#define FRONT_PLANES_E2B_PROTO_H

#include "base/buf.h"
#include "base/err.h"
#include "json/read.h"

/* A string of base64, of either alphabet, padded or not, appended to `out`. */
int proto_bytes(json_t *v, struct buf *out, struct err *e);

struct proto_enum {
    const char *name;
    int value;
};
/* By name or number, one of the table's `n`. ERR_INVALID names the field. */
int proto_enum(const char *field, json_t *v, const struct proto_enum *table, size_t n, int *ret,
               struct err *e);

#endif
