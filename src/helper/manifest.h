/* manifest.h - what the JSON documents of an image say, checked and bounded.
 *
 * Pure: bytes in, a struct out. Anything that is not as the OCI image-spec or
 * `docker save` has it is refused with what was expected. */
#ifndef HELPER_MANIFEST_H
#define HELPER_MANIFEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "wire/image.h"

/* The name that images have for this machine. */
#if defined(__x86_64__)
#define MANIFEST_MACHINE "amd64"
#elif defined(__aarch64__)
#define MANIFEST_MACHINE "arm64"
#else
#error "the name that images have for this machine"
#endif

#define MANIFEST_MAX (4u << 20) /* bytes of one document */
#define MANIFEST_NAME_MAX 512u  /* of a member that a manifest names */

enum manifest_kind { MANIFEST_IMAGE, MANIFEST_INDEX };

struct manifest_ref {
    enum manifest_kind kind;
    char digest[SHA256_HEX];
};

struct manifest {
    char config[MANIFEST_NAME_MAX]; /* docker: the member */
    char config_digest[SHA256_HEX]; /* "" where the format does not say */
    unsigned nlayers;
    struct manifest_layer {
        char member[MANIFEST_NAME_MAX]; /* docker */
        char digest[SHA256_HEX];        /* oci */
    } layers[IMAGE_LAYERS_MAX];
};

/* What the image says about running it; JSON of the form of wire/image.h. */
struct manifest_config {
    unsigned nlayers;
    char diff_ids[IMAGE_LAYERS_MAX][SHA256_HEX];
    json_t *settings; /* belongs to the caller: manifest_config_free() */
};

/* manifest.json of `docker save`: exactly one image. */
int manifest_docker(const char *text, size_t len, struct manifest *ret, struct err *e);
/* index.json, or an index that one names: the image for this machine. */
int manifest_index(const char *text, size_t len, struct manifest_ref *ret, struct err *e);
/* An image manifest of OCI or of Docker's registry. */
int manifest_oci(const char *text, size_t len, struct manifest *ret, struct err *e);
int manifest_config(const char *text, size_t len, struct manifest_config *ret, struct err *e);
void manifest_config_free(struct manifest_config *c);

/* Of a rootfs, which says nothing. */
json_t *manifest_no_settings(void);

/* The name of a layer in its place: sha256 over the chain below it and its own
 * diff id. `chain` is that of the layer below ("" for the lowest) and becomes
 * this one's. */
void manifest_chain(char chain[SHA256_HEX], const char diff_id[SHA256_HEX]);

#endif
