/* manifest.h - parses the JSON documents of an image.
 *
 * Pure: bytes in, a struct out. A document that does not follow the OCI image spec or the
 * format of `docker save` is refused with a message that says what was expected. */
#ifndef HELPER_IMAGE_MANIFEST_H
#define HELPER_IMAGE_MANIFEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"
#include "wire/image.h"

/* The architecture of this machine, as OCI names it. */
#if defined(__x86_64__)
#define MANIFEST_MACHINE "amd64"
#elif defined(__aarch64__)
#define MANIFEST_MACHINE "arm64"
#else
#error "add the OCI name of this architecture"
#endif

#define MANIFEST_MAX (4u << 20) /* bytes of one document */
#define MANIFEST_NAME_MAX 512u  /* bytes of a file name in a manifest */

enum manifest_kind { MANIFEST_IMAGE, MANIFEST_INDEX };

struct manifest_ref {
    enum manifest_kind kind;
    char digest[SHA256_HEX];
};

struct manifest {
    char config[MANIFEST_NAME_MAX]; /* docker: name of the file */
    char config_digest[SHA256_HEX]; /* "" if the format has none */
    unsigned nlayers;
    struct manifest_layer {
        char member[MANIFEST_NAME_MAX]; /* docker */
        char digest[SHA256_HEX];        /* oci */
    } layers[IMAGE_LAYERS_MAX];
};

/* The config of an image; `settings` is JSON as in wire/image.h. */
struct manifest_config {
    unsigned nlayers;
    char diff_ids[IMAGE_LAYERS_MAX][SHA256_HEX];
    json_t *settings; /* belongs to the caller: manifest_config_free() */
};

/* manifest.json of `docker save`: exactly one image. */
int manifest_docker(const char *text, size_t len, struct manifest *ret, struct err *e);
/* index.json, or an index that it refers to: the image for this machine. */
int manifest_index(const char *text, size_t len, struct manifest_ref *ret, struct err *e);
/* An image manifest of OCI, or of Docker's registry. */
int manifest_oci(const char *text, size_t len, struct manifest *ret, struct err *e);
int manifest_config(const char *text, size_t len, struct manifest_config *ret, struct err *e);
void manifest_config_free(struct manifest_config *c);

/* The settings of a plain root filesystem. */
json_t *manifest_no_settings(void);

/* The chain id of a layer: sha256 of the chain id below and its own diff id. `chain` is the
 * chain id of the layer below ("" for the lowest), and is replaced. */
void manifest_chain(char chain[SHA256_HEX], const char diff_id[SHA256_HEX]);

#endif
