/* export.h - the whole root filesystem as one file that anybody can read: an OCI image
 * layout with one layer, as tar.zst on stdout.
 *
 *   oci-layout, index.json, blobs/sha256/CONFIG, .../MANIFEST, .../LAYER
 *
 * Everything is named by its digest, so the layer is packed twice: once to know its
 * digest and size, once to be sent. Nothing else runs in the sandbox, so both are the
 * same, and that is checked. Hard links, FIFOs and file capabilities are kept; what is
 * mounted is left out.
 *
 *   export SETTINGS NAME     settings: JSON as wire/image.h has them; name: or "" */
#ifndef HELPER_EXPORT_H
#define HELPER_EXPORT_H

/* Exit status. */
int export_main(int argc, char **argv);

#endif
