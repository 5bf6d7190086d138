/* tmpfile.h - files without a name (O_TMPFILE), so that nothing is left after a crash.
 *
 * overlayfs supports them since Linux 6.3. On an older kernel the file has a name for a
 * moment, and to get its final name it is cloned or copied into a new file. */
#ifndef HELPER_FILES_TMPFILE_H
#define HELPER_FILES_TMPFILE_H

/* In directory `path` below `dir`, for reading and writing. -1 with errno. */
int tmpfile_open(int dir, const char *path);
/* Gives the file a name; EEXIST if that exists. On an older kernel `fd` then refers to the new
 * file, with the same owner, mode, times and user.* attributes. */
int tmpfile_link(int fd, int dir, const char *path);
/* Copies the user.* attributes. */
void tmpfile_copy_xattrs(int from, int to);

#endif
