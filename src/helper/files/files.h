/* files.h - the calls that work on files: one function each.
 *
 * All take NAME=VALUE arguments (call.h), among them `path`, and answer with records
 * (record.h). Links in `path` are followed; links found while walking below it are not. */
#ifndef HELPER_FILES_FILES_H
#define HELPER_FILES_FILES_H

#include "base/err.h"
#include "helper/call/call.h"
#include "wire/file.h"

/* What each takes and answers: the first lines of its file. */
int file_stat(const struct args *a, struct file_done *done, struct err *e); /* list.c */
int file_list(const struct args *a, struct file_done *done, struct err *e);
int file_write(const struct args *a, struct file_done *done, struct err *e);
int file_remove(const struct args *a, struct file_done *done, struct err *e);
int file_copy(const struct args *a, struct file_done *done, struct err *e); /* move.c */
int file_move(const struct args *a, struct file_done *done, struct err *e);
int file_mkdir(const struct args *a, struct file_done *done, struct err *e); /* change.c */
int file_symlink(const struct args *a, struct file_done *done, struct err *e);
int file_chmod(const struct args *a, struct file_done *done, struct err *e);
int file_chown(const struct args *a, struct file_done *done, struct err *e);
int file_xattrs(const struct args *a, struct file_done *done, struct err *e);
int file_search(const struct args *a, struct file_done *done, struct err *e);

/* Sends the bytes of a regular file, without records: path max. Exit status. */
int read_main(int argc, char **argv);

#endif
