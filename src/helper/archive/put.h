/* put.h - unpacks an archive from stdin into a directory.
 *
 *   unpack PATH FLAGS      p  create missing directories
 *                          a  all or nothing: the new content replaces the directory in one
 *                             step, or the directory stays as it is
 *                          o  set owners as in the archive
 *                          l  allow links that lead anywhere
 *
 * Without 'a' the archive is unpacked over the existing content: directories stay, files of
 * the same name are replaced one by one, and files created before a failure stay. The answer
 * is one line, "R {"entries", "bytes", "skipped", "left"}"; `left` is the path of the old
 * content if it could not be removed, else "". */
#ifndef HELPER_ARCHIVE_PUT_H
#define HELPER_ARCHIVE_PUT_H

/* Exit status. */
int put_main(int argc, char **argv);

#endif
