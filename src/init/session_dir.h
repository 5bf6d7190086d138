/* session_dir.h - the directory through which init and the shell of a session speak.
 *
 * It is ours, on a small filesystem of our own: the session's user may open what is
 * in it and nobody else may, and no one but us can add, remove or rename. What each
 * file is for, script.h says. */
#ifndef INIT_SESSION_DIR_H
#define INIT_SESSION_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "init/user.h"
#include "wire/wire.h"

struct session_dir {
    char path[64];
    int fd; /* -1: none */
    uid_t uid;
    gid_t gid;
    bool hides; /* 2v leads nowhere */
    bool exits; /* there is a q */
    int lines;  /* of its script, both ends, until the shell has opened it; -1: it has */
};

/* In `root`, with the next free number for a name. After a failure it is still to be
 * removed. */
int session_dir_make(struct session_dir *d, const char *root, const struct user *u, bool restart,
                     struct err *e);
/* With everything in it. */
void session_dir_remove(struct session_dir *d);

/* Its script, up to the lines to spare. */
int session_dir_begin(struct session_dir *d, const char *cwd, struct err *e);
/* The shell reads it: there is an end to it from now on. */
void session_dir_begun(struct session_dir *d);
/* Another line to spare. Whoever has no room or no reader for one needs none. */
void session_dir_spare(struct session_dir *d);

/* A fresh FIFO for 1 or 2: somebody may still hold the one that is there. */
int session_dir_renew(struct session_dir *d, int stream, struct err *e);
/* The reading end of 1 or 2, for init. */
int session_dir_output(struct session_dir *d, int stream, struct err *e);
/* A writing end of it, while there is a reading one: until it is closed the other has no end. */
int session_dir_hold(struct session_dir *d, int stream, struct err *e);
/* What set -v shows of the next command: all that the shell reads, or only its text. */
int session_dir_show(struct session_dir *d, bool all, struct err *e);
/* Whether the text of the next command says `exit` anywhere. */
int session_dir_exits(struct session_dir *d, bool says, struct err *e);
/* The writing end of c; -1 with ENXIO while the shell does not wait for it. `early`: all the
 * same, and what is written waits; it holds so little that there is room again only when the
 * shell has read all of it. */
int session_dir_command(struct session_dir *d, bool early);
/* The reading end of s. */
int session_dir_reply(struct session_dir *d, struct err *e);

/* A file for a stdin, empty, written through the fd; its number names it. */
#define INPUT_NAME_MAX 32
int session_dir_input(struct session_dir *d, uint64_t number, int *ret, struct err *e);
/* "" for number 0, which is no file. */
void session_dir_input_name(uint64_t number, char out[INPUT_NAME_MAX]);
void session_dir_drop_input(struct session_dir *d, uint64_t number);

#endif
