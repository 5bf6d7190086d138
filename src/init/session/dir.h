/* dir.h - the directory with the FIFOs between init and the shell of a session.
 *
 * It belongs to init, on a small tmpfs: only the session's user may open the files in it, and
 * only init can add, remove or rename them. What each file is for is in shell/call.h;
 * SESSION_SCRIPT is the script that bash starts with (script.h). */
#ifndef INIT_SESSION_DIR_H
#define INIT_SESSION_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "init/run/user.h"
#include "shell/call.h"
#include "wire/wire.h"

#define SESSION_SCRIPT "bash"
#define SESSION_PATH_MAX 256u

struct session_dir {
    char path[SESSION_PATH_MAX];
    int fd; /* -1: none */
    uid_t uid;
    gid_t gid;
};

/* Makes it in `root`, named by the next free number. Remove it also after a failure. */
int session_dir_make(struct session_dir *d, const char *root, const struct user *u, struct err *e);
/* With everything in it. */
void session_dir_remove(struct session_dir *d);

/* Writes its script. */
int session_dir_begin(struct session_dir *d, struct err *e);

/* A new FIFO for 1 or 2: a process may still hold the old one. */
int session_dir_renew(struct session_dir *d, int stream, struct err *e);
/* The reading end of 1 or 2, for init. */
int session_dir_output(struct session_dir *d, int stream, struct err *e);
/* A writing end of it, if there is a reader: until it is closed the reader sees no EOF. */
int session_dir_hold(struct session_dir *d, int stream, struct err *e);
/* c and s, opened for reading and writing: init sees no EOF when the shell closes them. */
int session_dir_calls(struct session_dir *d, struct err *e);
int session_dir_replies(struct session_dir *d, struct err *e);

/* An empty file for the stdin of a command, named by its number, written through *ret. */
int session_dir_input(struct session_dir *d, uint64_t number, int *ret, struct err *e);
/* "" for number 0: no file. */
void session_dir_input_name(uint64_t number, char out[SHELL_INPUT_MAX]);
void session_dir_drop_input(struct session_dir *d, uint64_t number);

#endif
