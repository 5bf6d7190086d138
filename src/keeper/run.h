/* run.h - a program of the host, run to its end; nothing of what it prints is seen. */
#ifndef KEEPER_RUN_H
#define KEEPER_RUN_H

/* 0: it ended well. 1: it ran and did not. -1 with errno: it could not be started. */
int run_program(const char *path, const char *const argv[]);

#endif
