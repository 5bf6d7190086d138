/* files.h - the kinds of work on files: one function each, one file each.
 *
 * All take NAME=VALUE (args.h), a `path` among them, and say what they did in records
 * (record.h), a `done` at last, or one line of failure (say.h). The path is followed
 * through links, as the sandbox sees it; what is walked below it never is. */
#ifndef HELPER_FILES_H
#define HELPER_FILES_H

int stat_main(int argc, char **argv);  /* path [follow] [resolve] [xattrs=PREFIX]: an entry */
int read_main(int argc, char **argv);  /* path max: the bytes of a regular file, no records */
int write_main(int argc, char **argv); /* see write.c; and so on */
int list_main(int argc, char **argv);
int remove_main(int argc, char **argv);
int copy_main(int argc, char **argv); /* move.c */
int move_main(int argc, char **argv);
int mkdir_main(int argc, char **argv); /* change.c */
int symlink_main(int argc, char **argv);
int chmod_main(int argc, char **argv);
int chown_main(int argc, char **argv);
int xattrs_main(int argc, char **argv);
int search_main(int argc, char **argv);

#endif
