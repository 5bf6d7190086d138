/* import.h - turns an archive into the layers of a template.
 *
 * Runs as root of a temporary sandbox that contains nothing else. Reads the archive from
 * stdin, spools it to the disk of the sandbox, detects its format, verifies every digest, and
 * leaves one directory per layer. Reports on stdout in the lines of wire/image.h. */
#ifndef HELPER_IMAGE_IMPORT_H
#define HELPER_IMAGE_IMPORT_H

/* `root` is the directory of spool and layers: "/", except in tests. Returns the exit
 * status. */
int import_main(const char *root);

#endif
