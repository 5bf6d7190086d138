/* init.h - messages between the front and a sandbox's init.
 *
 * The front connects to init's socket; each connection is one conversation at a
 * time: a request, its answers, then the next. Init speaks first: `hello`. Every
 * request ends with exactly one last answer (marked below), or with `fail`.
 * Closing the connection ends only the conversation.
 *
 * Output positions count the bytes of stdout and stderr together in the order
 * they arrived: the first byte a process ever printed is at 0. A cursor is the
 * position of the next byte wanted.
 *
 * EXTEND  A new request: a row here, a row in init/serve/requests.c (test_init_requests.c
 *         fails without it), a caller in front/engine, a seed in fuzz/seeds/wire_init. */
#ifndef WIRE_INIT_H
#define WIRE_INIT_H

#include "base/xattr.h"
#include "wire/file.h"
#include "wire/wire.h"

/* Inits that an earlier release started run on after an upgrade, so this front speaks to every
 * version from INIT_VERSION_OLDEST on. Fields are only appended and messages only added: an older
 * init skips fields and answers `unsupported` to a request it does not know, and the missing
 * end of its answers reads as zero. tests/fixtures has the tables of each release, and test_wire.c
 * holds them against these. A change that cannot be made that way raises INIT_VERSION, and its
 * caller checks the version in `hello`. */
#define INIT_VERSION 1u
#define INIT_VERSION_OLDEST 1u
static inline bool init_is_understood(uint32_t version)
{
    return version >= INIT_VERSION_OLDEST && version <= INIT_VERSION;
}

#define INIT_CONNS_MAX 512u /* to one init; it hangs up on the next */
#define INIT_ID_MAX 64u
#define INIT_REF_MAX (2 * INIT_ID_MAX + 1) /* an id; or SESSION/COMMAND, of a session's command */
#define INIT_USER_MAX 64u
#define INIT_PATH_MAX FILE_PATH_MAX
#define INIT_FILE_MAX (64u << 10)   /* bytes of a file that init reads or writes itself */
#define INIT_ARGS_MAX (2u << 20)    /* argv and env together: the maximum of execve */
#define INIT_CHUNK_MAX (256u << 10) /* bytes of output or stdin in one message */
#define INIT_TEXT_MAX 4096u         /* a text to wait for in a log */
#define INIT_ARGV_SHOWN 4096u       /* bytes of argv kept in the record of a process */
#define INIT_WHY_MAX 200u           /* why a session ended */
#define INIT_SCRIPT_MAX (16u << 20) /* the text of a session's command; its stdin as well */
#define INIT_TERM_SIDE_MAX 1000u    /* columns or rows of a terminal */
#define INIT_LINE_MAX 4096u         /* bytes of a line in the journal; longer ones come in pieces */

#define INIT_GENTLE_MS 5000u

enum init_start_flags {
    INIT_START_FORGET = 1,    /* an exec: no record stays when it is over */
    INIT_START_STDIN = 2,     /* keep stdin open for `stdin`; else it reads EOF */
    INIT_START_OWN = 4,       /* this connection owns the output: `output`... `exit` follow */
    INIT_START_HELPER = 8,    /* run our own cove-helper instead of argv[0] */
    INIT_START_LEASH = 16,    /* timeout_ms is how long it may run without a reader (0: not at
                               * all); then it gets TERM, and EOF on stdin; a terminal is
                               * killed */
    INIT_START_FOLLOW = 32,   /* as OWN, but as a viewer: never waited for, may get truncated */
    INIT_START_TERMINAL = 64, /* on a pty of its own, cols x rows; stdin is its input */
    INIT_START_GET = 128,     /* answer with the running terminal of that id, if any */
    INIT_START_TEXT = 256,    /* session_start: argv is one text for the shell */
    INIT_START_WHOLE = 512,   /* its end waits until its stdout and stderr are closed by all
                               * processes; TERM, KILL and its timeout do not wait */
    INIT_START_REUSE = 1024,  /* replaces a process of that id that has ended */
    INIT_START_GENTLE = 2048, /* at its timeout TERM, and INIT_GENTLE_MS later KILL */
    INIT_START_LOG = 4096,    /* its output also goes to the journal; not for a terminal */
};

enum init_attach_flags {
    INIT_ATTACH_FOLLOW = 1, /* until exit, else until now */
    INIT_ATTACH_OWN = 2,    /* with FOLLOW: becomes the owner when there is none */
};
enum init_view_flags { INIT_VIEW_SINCE = 1, INIT_VIEW_NOW = 2 }; /* else the oldest kept */
enum init_kill_flags { INIT_KILL_FORGET = 1 }; /* of a terminal: remove its record too */
enum init_signal_to { INIT_TO_ROOT, INIT_TO_TREE, INIT_TO_FOREGROUND };
enum init_look_flags { INIT_LOOK_FOLLOW = 1, INIT_LOOK_READ = 2, INIT_LOOK_ROOT = 4 };
enum init_write_flags {
    INIT_WRITE_APPEND = 1,
    INIT_WRITE_PARENTS = 2, /* make missing parent directories */
    INIT_WRITE_NEW = 4,     /* fail precondition if the file exists */
    INIT_WRITE_ROOT = 8,    /* with root's power; new files belong to the user */
};
enum init_fd_kind { INIT_FD_FILE = 1, INIT_FD_SOCKET };
enum init_stream { INIT_STDOUT = 1, INIT_STDERR = 2 }; /* bits of a mask; 0 means both */
enum init_exit_flags {
    INIT_EXIT_TIMED_OUT = 1,
    INIT_EXIT_CORE = 2,
    INIT_EXIT_KILLED = 4,
    INIT_EXIT_OOM = 8,
    INIT_EXIT_INTERRUPTED = 16,   /* a session's command, by `session_interrupt` */
    INIT_EXIT_NEVER_RAN = 32,     /* its session ended first */
    INIT_EXIT_SESSION_ENDED = 64, /* ...or with it */
    /* It failed, and the kernel killed another process meanwhile for want of memory: one of its
     * own, most of the time. */
    INIT_EXIT_OOM_MEANWHILE = 128,
};
enum init_proc_state { INIT_RUNNING, INIT_EXITED, INIT_QUEUED }; /* queued: of a session */
enum init_session_state { INIT_SESSION_IDLE, INIT_SESSION_BUSY, INIT_SESSION_ENDED };
enum init_session_flags { INIT_SESSION_RESTART = 1 }; /* `exit` ends the command only */
enum init_event_kind {
    INIT_EVENT_STARTED,
    INIT_EVENT_EXITED,
    INIT_EVENT_SESSION_CREATED,
    INIT_EVENT_SESSION_ENDED
};

/* clang-format off */
/* answers */
#define INIT_HELLO_FIELDS(F, S)     F(S, U32, version, 0) F(S, STR, boot_id, 64) F(S, U64, booted_ms, 0)
#define INIT_FAIL_FIELDS(F, S)      F(S, STR, code, 32) F(S, STR, message, 500) F(S, U32, sys, 0)
#define INIT_OK_FIELDS(F, S)        F(S, U64, value, 0)
#define INIT_STARTED_FIELDS(F, S)   F(S, STR, id, INIT_REF_MAX) F(S, U32, pid, 0) F(S, U64, started_ms, 0) \
                                    F(S, U32, existed, 1)
#define INIT_OUTPUT_FIELDS(F, S)    F(S, U64, pos, 0) F(S, U32, stream, 2) F(S, BYTES, data, INIT_CHUNK_MAX)
#define INIT_TRUNCATED_FIELDS(F, S) F(S, U64, from, 0) F(S, U64, to, 0)
#define INIT_EXIT_FIELDS(F, S)      F(S, STR, id, INIT_REF_MAX) F(S, U32, code, 255) F(S, U32, signal, 64) \
                                    F(S, U32, flags, 0) F(S, U64, ended_ms, 0) F(S, U64, output_end, 0) \
                                    F(S, U64, cpu_us, 0) F(S, U64, maxrss_kb, 0)
#define INIT_PROC_FIELDS(F, S)      F(S, STR, id, INIT_REF_MAX) F(S, U32, pid, 0) F(S, U32, state, 2) \
                                    F(S, STRV, argv, INIT_ARGV_SHOWN) F(S, STR, cwd, INIT_PATH_MAX) \
                                    F(S, STR, user, INIT_USER_MAX) F(S, U64, started_ms, 0) \
                                    F(S, U32, stdin_open, 1) F(S, U64, output_first, 0) F(S, U64, output_end, 0) \
                                    F(S, U64, ended_ms, 0) F(S, U32, code, 255) F(S, U32, signal, 64) \
                                    F(S, U32, flags, 0) F(S, U64, cpu_us, 0) F(S, U64, maxrss_kb, 0) \
                                    F(S, U64, timeout_ms, 0) F(S, U32, cols, INIT_TERM_SIDE_MAX) \
                                    F(S, U32, rows, INIT_TERM_SIDE_MAX) F(S, U32, viewers, 0)
#define INIT_END_FIELDS(F, S)       F(S, U64, value, 0) F(S, U32, exited, 1)
#define INIT_EVENT_FIELDS(F, S)     F(S, U32, kind, INIT_EVENT_SESSION_ENDED) F(S, STR, id, INIT_ID_MAX) F(S, U32, pid, 0) \
                                    F(S, U32, code, 255) F(S, U32, signal, 64) F(S, U32, flags, 0) F(S, U64, at_ms, 0) \
                                    F(S, STRV, argv, INIT_ARGV_SHOWN) F(S, STR, user, INIT_USER_MAX)
#define INIT_SCREEN_FIELDS(F, S)    F(S, U64, cursor, 0) F(S, U64, end, 0) F(S, U32, cols, INIT_TERM_SIDE_MAX) \
                                    F(S, U32, rows, INIT_TERM_SIDE_MAX) F(S, U32, pid, 0)
#define INIT_FD_FIELDS(F, S)        F(S, U32, kind, INIT_FD_SOCKET)
#define INIT_LINE_FIELDS(F, S)      F(S, U64, seq, 0) F(S, U64, at_ms, 0) F(S, U32, stream, 2) F(S, U32, pid, 0) \
                                    F(S, STR, id, INIT_REF_MAX) F(S, BYTES, data, INIT_LINE_MAX)
#define INIT_FILE_FIELDS(F, S)      F(S, U32, elsewhere, 1) FILE_STAT_FIELDS(F, S) F(S, U32, has_data, 1) \
                                    F(S, BYTES, data, INIT_FILE_MAX)
#define INIT_SESSION_FIELDS(F, S)   F(S, STR, id, INIT_ID_MAX) F(S, U32, pid, 0) F(S, U32, state, 2) \
                                    F(S, STR, user, INIT_USER_MAX) F(S, STR, cwd, INIT_PATH_MAX) \
                                    F(S, U64, created_ms, 0) F(S, U64, timeout_ms, 0) F(S, U32, flags, 0) \
                                    F(S, U32, restarts, 0) F(S, U32, queued, 0) F(S, STR, command, INIT_ID_MAX) \
                                    F(S, U64, ended_ms, 0) F(S, U32, code, 255) F(S, U32, signal, 64) \
                                    F(S, STR, why, INIT_WHY_MAX)
/* requests */
#define INIT_START_FIELDS(F, S)     F(S, STR, id, INIT_ID_MAX) F(S, STRV, argv, INIT_ARGS_MAX) \
                                    F(S, STRV, env, INIT_ARGS_MAX) F(S, STR, cwd, INIT_PATH_MAX) \
                                    F(S, STR, user, INIT_USER_MAX) F(S, U32, flags, 0) \
                                    F(S, U64, timeout_ms, 0) F(S, U32, ring, 0) \
                                    F(S, U32, cols, INIT_TERM_SIDE_MAX) F(S, U32, rows, INIT_TERM_SIDE_MAX)
#define INIT_ATTACH_FIELDS(F, S)    F(S, STR, id, INIT_REF_MAX) F(S, U64, since, 0) F(S, U32, flags, 0) F(S, U32, streams, 3)
#define INIT_STDIN_FIELDS(F, S)     F(S, STR, id, INIT_ID_MAX) F(S, BYTES, data, INIT_CHUNK_MAX) F(S, U32, close, 1)
#define INIT_SIGNAL_FIELDS(F, S)    F(S, STR, id, INIT_ID_MAX) F(S, U32, signal, 64) F(S, U32, to, 2)
#define INIT_KILL_FIELDS(F, S)      F(S, STR, id, INIT_ID_MAX) F(S, U64, grace_ms, 0) F(S, U32, flags, 0)
#define INIT_LIST_FIELDS(F, S)      F(S, U32, own, 1)
#define INIT_GET_FIELDS(F, S)       F(S, STR, id, INIT_REF_MAX)
#define INIT_WAIT_FIELDS(F, S)      F(S, STR, id, INIT_REF_MAX) F(S, U64, timeout_ms, 0)
#define INIT_WAIT_PORT_FIELDS(F, S) F(S, STR, id, INIT_ID_MAX) F(S, U32, port, 65535) F(S, U64, timeout_ms, 0) \
                                    F(S, STR, path, INIT_PATH_MAX) F(S, U32, status_min, 999) F(S, U32, status_max, 999)
#define INIT_WAIT_LOG_FIELDS(F, S)  F(S, STR, id, INIT_REF_MAX) F(S, BYTES, text, INIT_TEXT_MAX) F(S, U64, since, 0) \
                                    F(S, U32, streams, 3) F(S, U64, timeout_ms, 0)
#define INIT_MONITOR_FIELDS(F, S)   F(S, U32, unused, 0)
#define INIT_JOURNAL_FIELDS(F, S)   F(S, U64, since, 0)
#define INIT_VIEW_FIELDS(F, S)      F(S, STR, id, INIT_ID_MAX) F(S, U64, since, 0) F(S, U32, flags, 0)
#define INIT_RESIZE_FIELDS(F, S)    F(S, STR, id, INIT_ID_MAX) F(S, U32, cols, INIT_TERM_SIDE_MAX) \
                                    F(S, U32, rows, INIT_TERM_SIDE_MAX)
#define INIT_LOOK_FIELDS(F, S)      F(S, STR, path, FILE_PATH_MAX) F(S, STR, user, INIT_USER_MAX) F(S, U32, flags, 0)
#define INIT_WRITE_FIELDS(F, S)     F(S, STR, path, FILE_PATH_MAX) F(S, STR, user, INIT_USER_MAX) F(S, U32, flags, 0) \
                                    F(S, U32, mode, FILE_MODE_NONE) F(S, BYTES, data, INIT_FILE_MAX) \
                                    F(S, STR, xattr_prefix, 64) F(S, STR, xattrs, XATTR_LINES_MAX)
#define INIT_OPEN_FIELDS(F, S)      F(S, STR, path, FILE_PATH_MAX) F(S, STR, user, INIT_USER_MAX) F(S, U32, root, 1)
#define INIT_CONNECT_FIELDS(F, S)   F(S, U32, port, 65535) F(S, U64, timeout_ms, 0)
#define INIT_SESSION_CREATE_FIELDS(F, S) F(S, STR, id, INIT_ID_MAX) F(S, STRV, env, INIT_ARGS_MAX) \
                                    F(S, STR, cwd, INIT_PATH_MAX) F(S, STR, user, INIT_USER_MAX) \
                                    F(S, U64, timeout_ms, 0) F(S, U32, flags, 0) F(S, U32, ring, 0)
#define INIT_SESSION_LIST_FIELDS(F, S) F(S, U32, unused, 0)
#define INIT_SESSION_GET_FIELDS(F, S)  F(S, STR, id, INIT_ID_MAX)
#define INIT_SESSION_DELETE_FIELDS(F, S) F(S, STR, id, INIT_ID_MAX)
#define INIT_SESSION_EXEC_FIELDS(F, S) F(S, STR, session, INIT_ID_MAX) F(S, STR, id, INIT_ID_MAX) \
                                    F(S, U32, text_len, INIT_SCRIPT_MAX) F(S, U32, stdin_len, INIT_SCRIPT_MAX) \
                                    F(S, STR, cwd, INIT_PATH_MAX) F(S, STRV, env, INIT_ARGS_MAX) \
                                    F(S, U64, timeout_ms, 0) F(S, U32, flags, 0) F(S, BYTES, data, INIT_CHUNK_MAX)
#define INIT_SESSION_MORE_FIELDS(F, S) F(S, BYTES, data, INIT_CHUNK_MAX)
#define INIT_SESSION_INTERRUPT_FIELDS(F, S) F(S, STR, id, INIT_ID_MAX)
#define INIT_SESSION_COMMANDS_FIELDS(F, S) F(S, STR, id, INIT_ID_MAX)
#define INIT_SESSION_START_FIELDS(F, S) F(S, STR, session, INIT_ID_MAX) F(S, STR, id, INIT_ID_MAX) \
                                    F(S, STRV, argv, INIT_ARGS_MAX) F(S, STRV, env, INIT_ARGS_MAX) \
                                    F(S, STR, cwd, INIT_PATH_MAX) F(S, U32, flags, 0) \
                                    F(S, U64, timeout_ms, 0) F(S, U32, ring, 0)

/*  row: enumerator, struct, number. Numbers never change.
 *
 *  start      -> started; with OWN or FOLLOW: started, output..., exit. `stdin` messages
 *                may follow on the same connection (no answer to those); init stops
 *                reading the connection while the process does not read. Without a
 *                record of that id: fail conflict. An id that begins with '.' belongs
 *                to the front: not listed (except by `list` with own), no events.
 *  (an id `@N` is the youngest process whose root is or was pid N; a cwd may begin
 *                with ~, as a path below)
 *  attach     -> (output | truncated)..., then end (value: next cursor; exited) or,
 *                with FOLLOW, exit
 *  stdin      -> ok once the bytes are in the pipe or our bounded queue; fail limit
 *                when the queue is full, fail gone after exit or close
 *  signal     -> ok;  kill -> exit, when the tree is dead
 *  list       -> proc..., end;  get -> proc;  wait -> exit (fail timeout)
 *  wait_port  -> ok; with a path: once a GET of it is answered with a status in the range
 *  wait_log -> ok (value: position after the match)
 *                both fail timeout, and fail gone if process `id` ends first ("" : none)
 *  monitor    -> event... until the connection closes
 *  journal    -> line... until the connection closes: output of commands started with LOG, from
 *                line `since` on. Lines are counted from 0; a skipped number is a line
 *                that was not kept. Stream 0 marks no line: it only shows that lines
 *                before it are missing
 *  view       -> screen (cursor: the first byte that follows), then (output | truncated |
 *                screen, whenever the size has changed)..., exit. `stdin` and `resize` may
 *                follow on the same connection, as with start
 *  resize     -> ok
 *  (a path is absolute, or begins with ~ for the home of the user it is used as)
 *  look       -> file: what the path names; with READ also its contents if small
 *  write      -> file, after the write. Both answer `elsewhere` if init cannot do it
 *                (another mount, a large file): then cove-helper does
 *  open       -> fd, of a regular file of the root filesystem, to be read
 *  connect    -> fd, a TCP connection to that port of 127.0.0.1, else of ::1; fail gone if
 *                no process listens, fail timeout. Both send an fd, so only on a connection
 *                on which the front receives fds (front/engine/fdpass.h) */
/*  session_create -> session, once its shell runs; fail conflict if the id is taken
 *  session_list   -> session..., end;  session_get -> session
 *  session_delete -> ok, when all its processes are dead
 *  session_exec   -> started, when it is queued; with OWN: started, output..., exit. The
 *                rest of text and stdin (in this order) after `data` follows in session_more,
 *                and the answer comes after the last byte. In other requests its id is
 *                SESSION/ID: attach, get, wait, wait_log
 *  session_interrupt -> ok (value 1: a command was running);  session_commands -> proc..., end
 *  session_start  -> started: a process with the session's state (cwd, environment) after all
 *                commands queued before it have ended */
#define INIT_ANSWERS(X) \
    X(INIT_HELLO,     init_hello,     1,  INIT_HELLO_FIELDS) \
    X(INIT_FAIL,      init_fail,      2,  INIT_FAIL_FIELDS) \
    X(INIT_OK,        init_ok,        3,  INIT_OK_FIELDS) \
    X(INIT_STARTED,   init_started,   4,  INIT_STARTED_FIELDS) \
    X(INIT_OUTPUT,    init_output,    5,  INIT_OUTPUT_FIELDS) \
    X(INIT_TRUNCATED, init_truncated, 6,  INIT_TRUNCATED_FIELDS) \
    X(INIT_EXIT,      init_exit,      7,  INIT_EXIT_FIELDS) \
    X(INIT_PROC,      init_proc,      8,  INIT_PROC_FIELDS) \
    X(INIT_END,       init_end,       9,  INIT_END_FIELDS) \
    X(INIT_EVENT,     init_event,     10, INIT_EVENT_FIELDS) \
    X(INIT_SESSION,   init_session,   11, INIT_SESSION_FIELDS) \
    X(INIT_SCREEN,    init_screen,    14, INIT_SCREEN_FIELDS) \
    X(INIT_FD,        init_fd,        17, INIT_FD_FIELDS) \
    X(INIT_FILE,      init_file,      18, INIT_FILE_FIELDS) \
    X(INIT_LINE,      init_line,      19, INIT_LINE_FIELDS)
#define INIT_REQUESTS(X) \
    X(INIT_START,     init_start,     32, INIT_START_FIELDS) \
    X(INIT_ATTACH,    init_attach,    33, INIT_ATTACH_FIELDS) \
    X(INIT_STDIN,     init_stdin,     34, INIT_STDIN_FIELDS) \
    X(INIT_SIGNAL,    init_signal,    35, INIT_SIGNAL_FIELDS) \
    X(INIT_KILL,      init_kill,      36, INIT_KILL_FIELDS) \
    X(INIT_LIST,      init_list,      37, INIT_LIST_FIELDS) \
    X(INIT_GET,       init_get,       38, INIT_GET_FIELDS) \
    X(INIT_WAIT,      init_wait,      39, INIT_WAIT_FIELDS) \
    X(INIT_WAIT_PORT, init_wait_port, 40, INIT_WAIT_PORT_FIELDS) \
    X(INIT_WAIT_LOG,  init_wait_log,  41, INIT_WAIT_LOG_FIELDS) \
    X(INIT_MONITOR,   init_monitor,   42, INIT_MONITOR_FIELDS) \
    X(INIT_SESSION_CREATE, init_session_create, 43, INIT_SESSION_CREATE_FIELDS) \
    X(INIT_SESSION_LIST, init_session_list, 44, INIT_SESSION_LIST_FIELDS) \
    X(INIT_SESSION_GET, init_session_get, 45, INIT_SESSION_GET_FIELDS) \
    X(INIT_SESSION_DELETE, init_session_delete, 46, INIT_SESSION_DELETE_FIELDS) \
    X(INIT_SESSION_EXEC, init_session_exec, 47, INIT_SESSION_EXEC_FIELDS) \
    X(INIT_SESSION_MORE, init_session_more, 48, INIT_SESSION_MORE_FIELDS) \
    X(INIT_SESSION_INTERRUPT, init_session_interrupt, 49, INIT_SESSION_INTERRUPT_FIELDS) \
    X(INIT_SESSION_COMMANDS, init_session_commands, 50, INIT_SESSION_COMMANDS_FIELDS) \
    X(INIT_SESSION_START, init_session_start, 51, INIT_SESSION_START_FIELDS) \
    X(INIT_VIEW,      init_view,      53, INIT_VIEW_FIELDS) \
    X(INIT_RESIZE,    init_resize,    54, INIT_RESIZE_FIELDS) \
    X(INIT_OPEN,      init_open,      63, INIT_OPEN_FIELDS) \
    X(INIT_LOOK,      init_look,      64, INIT_LOOK_FIELDS) \
    X(INIT_WRITE,     init_write,     65, INIT_WRITE_FIELDS) \
    X(INIT_CONNECT,   init_connect,   76, INIT_CONNECT_FIELDS) \
    X(INIT_JOURNAL,   init_journal,   77, INIT_JOURNAL_FIELDS)
#define INIT_MSGS(X) INIT_ANSWERS(X) INIT_REQUESTS(X)
/* clang-format on */

#define X(kind, s, number, fields) kind = number,
enum init_msg_type { INIT_MSGS(X) };
#undef X

#define X(kind, s, number, fields)                                                                 \
    struct s {                                                                                     \
        fields(WIRE_MEMBER, s)                                                                     \
    };
INIT_MSGS(X)
#undef X

/* The description of a type, or NULL for one we do not know. */
const struct wire_msg *init_msg(uint16_t type);

#endif
