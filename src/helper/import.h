/* import.h - from the bytes of an archive to the layers of a template.
 *
 * Runs as root of a throw-away sandbox that holds nothing else. Reads the archive
 * from stdin, spools it to the sandbox's disk, finds out what it is, verifies
 * every digest there is, and leaves one directory per layer. Says how it goes on
 * stdout, in the lines of wire/image.h. */
#ifndef HELPER_IMPORT_H
#define HELPER_IMPORT_H

/* `root` is where spool and layers are; "/" but in tests. Exit status. */
int import_main(const char *root);

#endif
