/* export.h - writes the whole root filesystem to stdout as one portable file: an OCI image
 * layout with one layer, as tar.zst.
 *
 *   oci-layout, index.json, blobs/sha256/CONFIG, .../MANIFEST, .../LAYER
 *
 * Blobs are named by their digests, so the layer is packed twice: once for digest and size,
 * once to send it. Nothing else runs in the sandbox, so both must be equal, which is checked.
 * Hard links, FIFOs and file capabilities are kept; other mounts are left out.
 *
 *   export SETTINGS NAME     settings: JSON as in wire/image.h; name: may be "" */
#ifndef HELPER_IMAGE_EXPORT_H
#define HELPER_IMAGE_EXPORT_H

/* Exit status. */
int export_main(int argc, char **argv);

#endif
