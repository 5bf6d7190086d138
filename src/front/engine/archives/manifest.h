/* manifest.h - the document of one archive: what it is of, and its chunks.
 *
 *   {"format": "cove-archive", "version": 1, "created_ms", "template", "base", "entries", "bytes",
 *    "gone": [["SHA-256", size]...], "tar": [[...]...], "spec": {...}}
 *
 * `gone` are the chunks of the list of removed paths, `tar` those of the files, in their order; sizes
 * are of the stored bytes. A document of a higher version is refused. */
#ifndef FRONT_ENGINE_ARCHIVES_MANIFEST_H
#define FRONT_ENGINE_ARCHIVES_MANIFEST_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

#define MANIFEST_VERSION 1u
#define MANIFEST_BYTES_MAX (12u << 20) /* of the document */

struct manifest_chunk {
    char digest[SHA256_HEX];
    uint32_t size;
};

enum manifest_part { MANIFEST_GONE, MANIFEST_TAR, MANIFEST_PARTS };

struct manifest {
    char template[64], base[SHA256_HEX];
    uint64_t created_ms, entries, bytes;
    struct manifest_list {
        struct manifest_chunk *v; /* belongs to the manifest */
        size_t n, room;
    } parts[MANIFEST_PARTS];
    char *spec; /* JSON text, or NULL; likewise */
};

void manifest_free(struct manifest *m); /* zeroed memory is fine */
/* The new last chunk, to be filled in; NULL above ARCHIVE_CHUNKS_MAX. */
struct manifest_chunk *manifest_add(struct manifest *m, enum manifest_part part);
uint64_t manifest_stored(const struct manifest *m);
int manifest_write(const struct manifest *m, struct buf *to, struct err *e);
/* ERR_INTERNAL for text that is no manifest, ERR_UNSUPPORTED for one of a newer release. */
int manifest_read(const char *text, size_t len, struct manifest *ret, struct err *e);

/* SHA-256 of bytes, by the fast implementation. */
void manifest_digest(const void *p, size_t n, char out[SHA256_HEX]);

#endif
