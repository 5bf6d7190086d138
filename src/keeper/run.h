/* run.h - runs a program of the host to its end; its output is discarded. */
#ifndef KEEPER_RUN_H
#define KEEPER_RUN_H

/* 0: it succeeded. 1: it ran and failed. -1 with errno: it could not be started. */
int run_program(const char *path, const char *const argv[]);

#endif
