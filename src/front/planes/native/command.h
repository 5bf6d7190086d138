/* command.h - how a request describes something to run: exec, a process, a terminal, a session,
 * and a command or a process of a session.
 *
 * EXTEND  A field: its row and the inputs that have it in command.c, its member in struct
 *         process_opts (front/engine/process.h), or here if the engine does not need it.
 *         front/engine/run/command.c hands it to init. */
#ifndef FRONT_PLANES_NATIVE_COMMAND_H
#define FRONT_PLANES_NATIVE_COMMAND_H

#include "front/engine/process.h"
#include "front/plane/exit.h"
#include "front/plane/maps.h"
#include "json/read.h"

/* argv and environment together are bounded by what execve takes (PROCESS_ARGS_MAX);
 * JSON may need more bytes for the same text, and stdin comes on top. */
#define COMMAND_BODY_MAX ((4u << 20) + (64u << 10))
#define COMMAND_TIMEOUT_MAX (1ull << 50) /* ms, as in the config table */

/* What all of them are decoded to; fields that an input does not have are zero. */
struct command {
    /* Goes to the engine as it is, with argv and env made from those below. */
    struct process_opts o;
    /* Of a session's command: so many bytes of call->unfolded, then those of stdin. */
    size_t command_len;
    json_t *argv;
    const char *command_base64;
    json_t *env;
    const char *input, *input_base64; /* `stdin` as text; as a boolean it is o.stdin_open */
    uint64_t max_output;
    uint64_t cols, rows, ring; /* of a terminal */
    bool get_or_create;
    bool restart; /* of a session */
};

struct surface_input;
extern const struct surface_input command_exec, command_process, command_terminal;
extern const struct surface_input command_session;         /* creates one */
extern const struct surface_input command_session_exec;    /* runs a command in it */
extern const struct surface_input command_session_process; /* starts a process from it */

/* What process_opts borrows from. */
struct command_opts {
    struct process_opts o;
    const char **argv;
    struct buf env;
};
void command_opts_free(struct command_opts *c);
#define autocommand __attribute__((cleanup(command_opts_free)))

/* Checks what a table of fields cannot. Points into `in`. */
int command_decode(const struct command *in, struct command_opts *ret, struct err *e);
/* The same for a request that need not say what to run. */
int command_decode_rest(const struct command *in, struct command_opts *ret, struct err *e);
/* "stdout", "stderr", "both" or NULL as a mask of enum process_output_stream. */
int command_streams(const char *name, unsigned *ret, struct err *e);

#endif
