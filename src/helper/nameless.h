/* nameless.h - files without a name: whatever happens to us, nothing of them stays.
 *
 * overlayfs has them since Linux 6.3. On an older kernel one has a name for a moment; and
 * to get its name later it is cloned, or copied, into a file that can have one. */
#ifndef HELPER_NAMELESS_H
#define HELPER_NAMELESS_H

/* In the directory `path` below dir, to read and write. -1: errno. */
int nameless_open(int dir, const char *path);
/* It appears there whole; EEXIST if something does already. On an older kernel the fd is
 * that of another file then, with the same owner, mode, times and user attributes. */
int nameless_link(int fd, int dir, const char *path);
/* The attributes of one file that users have set, for another. */
void nameless_xattrs(int from, int to);

#endif
