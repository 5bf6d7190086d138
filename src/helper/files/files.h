/* files.h - the calls that work on files: one function each.
 *
 * All take NAME=VALUE arguments (call.h), among them `path`, and answer with records
 * (record.h) that end with a `done`, or with one line that says what failed (call.h). Links in
 * `path` are followed; links found while walking below it are not. */
#ifndef HELPER_FILES_FILES_H
#define HELPER_FILES_FILES_H

int stat_main(int argc, char **argv);  /* path [follow] [resolve] [xattrs=PREFIX]; one entry */
int read_main(int argc, char **argv);  /* path max; the bytes of a regular file, no records */
int write_main(int argc, char **argv); /* write.c and the others: see their first lines */
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
