/* place.h - an archive from stdin into a directory.
 *
 *   unpack PATH FLAGS      p  missing directories are made
 *                          a  all or nothing: the directory becomes what is in the archive, in
 *                             one step, or stays as it is
 *                          o  owners as the archive says
 *                          l  links may lead anywhere
 *
 * Without 'a' the archive is laid over what is there: directories stay, files of the
 * same name are replaced one by one, and what was made before a failure stays. The
 * answer is one line, "R {"entries", "bytes", "skipped", "left"}"; `left` names what
 * the directory was before and could not be removed, or is "". */
#ifndef HELPER_PLACE_H
#define HELPER_PLACE_H

/* Exit status. */
int place_main(int argc, char **argv);

#endif
