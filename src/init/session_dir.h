/* session_dir.h - the directory through which init and the shell of a session speak.
 *
 * It is ours, on a small filesystem of our own: the session's user may open what is
 * in it and nobody else may, and no one but us can add, remove or rename. What each
 * file is for, shell/call.h says; SESSION_SCRIPT is what bash begins with (script.h). */
#ifndef INIT_SESSION_DIR_H
#define INIT_SESSION_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "init/user.h"
#include "shell/call.h"
#include "wire/wire.h"

#define SESSION_SCRIPT "bash"

struct session_dir {
    char path[64];
    int fd; /* -1: none */
    uid_t uid;
    gid_t gid;
};

/* In `root`, with the next free number for a name. After a failure it is still to be
 * removed. */
int session_dir_make(struct session_dir *d, const char *root, const struct user *u, struct err *e);
/* With everything in it. */
void session_dir_remove(struct session_dir *d);

/* Its script. */
int session_dir_begin(struct session_dir *d, struct err *e);

/* A fresh FIFO for 1 or 2: somebody may still hold the one that is there. */
int session_dir_renew(struct session_dir *d, int stream, struct err *e);
/* The reading end of 1 or 2, for init. */
int session_dir_output(struct session_dir *d, int stream, struct err *e);
/* A writing end of it, while there is a reading one: until it is closed the other has no end. */
int session_dir_hold(struct session_dir *d, int stream, struct err *e);
/* Both ends of c and of s: neither has an end when the shell closes it. */
int session_dir_calls(struct session_dir *d, struct err *e);
int session_dir_replies(struct session_dir *d, struct err *e);

/* A file for a stdin, empty, written through the fd; its number names it. */
int session_dir_input(struct session_dir *d, uint64_t number, int *ret, struct err *e);
/* "" for number 0, which is no file. */
void session_dir_input_name(uint64_t number, char out[SHELL_INPUT_MAX]);
void session_dir_drop_input(struct session_dir *d, uint64_t number);

#endif
