/* loop.c - the top of a session's bash: it takes a call, runs it, says how it went, and waits
 * for the next, for as long as there is one.
 *
 * This is a builtin that bash loads (`enable -f`), so nothing of ours is a text that bash
 * reads: there is no name in it that a command could take, nothing that is traced, no trap.
 * The promise is that every way out of a command leads back to here, in the same process with
 * all that it knows: set -e, set -u, errors, `exit`, a stop. bash has one place for all of
 * them, top_level, and undoes what it was in the middle of; where it would end itself instead
 * (an error with set -e, an `exec` that fails) it calls exit(), and that is ours, too: init
 * names this object in LD_PRELOAD.
 *
 * It is freestanding, and speaks with the kernel itself, for it is loaded by whatever bash
 * and libc a template has. What it does not trust is the command it ran: that may have closed
 * or replaced any fd of ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shell/bash.h"
#include "shell/call.h"
#include "shell/dump.h"

#define OURS_FROM 700   /* where our own fds are: above what scripts use */
#define PATH_ROOM 128   /* init's paths are short */
#define KEEP_MAX 65536u /* a larger text's memory is given back */
#define JUMP_SIZE 200   /* of a sigjmp_buf, in both libcs */
#define STATUS_UNREADABLE 2
#define TRAPS (65 + 3)   /* EXIT, the signals, and DEBUG, ERR and RETURN, as bash counts them */
#define LEFT_BY_EXIT 100 /* as another reason than bash's own: it called exit() */

/* ---- the kernel ---- */

static long sys(long nr, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return ret;
}

#define NEG_EINTR (-4)

static int open_at(int at, const char *path, int flags)
{
    long fd;

    do
        fd = sys(SYS_openat, at, (long)path, flags, 0);
    while (fd == NEG_EINTR);
    return (int)fd;
}

static void close_fd(int fd)
{
    sys(SYS_close, fd, 0, 0, 0);
}

/* ---- what is known of the session ---- */

enum phase {
    WAITING, /* for a call: nothing to stop */
    TAKING,  /* it is being read: it will not be run */
    RUNNING,
    LEAVING, /* exit_shell(), with an EXIT trap that runs */
};

static char dir[PATH_ROOM];
static long own_pid;
static volatile enum phase phase;
static volatile bool stopped;
static volatile int exit_status; /* with LEFT_BY_EXIT */

/* What stays open, unless a command has closed it, or put something else there. */
struct kept {
    const char *name;
    int flags, fd;
    dev_t dev;
    ino_t ino;
};
static struct kept home = {dir, O_PATH | O_DIRECTORY, -1, 0, 0};
static struct kept calls = {"c", O_RDWR, -1, 0, 0}, replies = {"s", O_RDWR, -1, 0, 0};

static bool is_there(const struct kept *k)
{
    struct stat st;

    return k->fd >= 0 && sys(SYS_fstat, k->fd, (long)&st, 0, 0) == 0 && st.st_dev == k->dev &&
           st.st_ino == k->ino;
}

static int move_up(int low)
{
    int fd, from = OURS_FROM;

    do { /* ulimit -n may leave no room up there */
        fd = (int)sys(SYS_fcntl, low, F_DUPFD_CLOEXEC, from, 0);
        from = from > 10 ? 10 : from - 1;
    } while (fd < 0 && from >= 3);
    close_fd(low);
    return fd;
}

/* Which one it is that is there now. */
static bool note(struct kept *k)
{
    struct stat st;

    if (sys(SYS_fstat, k->fd, (long)&st, 0, 0) < 0)
        return false;
    k->dev = st.st_dev;
    k->ino = st.st_ino;
    return true;
}

static int kept_fd(struct kept *k)
{
    if (is_there(k))
        return k->fd;
    k->fd = move_up(open_at(k == &home ? AT_FDCWD : kept_fd(&home), k->name, k->flags));
    if (!note(k))
        exit_shell(1);
    return k->fd;
}

/* At least `least` bytes, and what more there is. */
static size_t take(char *out, size_t least, size_t room)
{
    size_t n = 0;

    while (n < least) {
        long got = sys(SYS_read, kept_fd(&calls), (long)(out + n), (long)(room - n), 0);

        if (got == NEG_EINTR)
            continue;
        if (got <= 0)
            exit_shell(1);
        n += (size_t)got;
    }
    return n;
}

static void reply(char letter, int status)
{
    char text[8], *p = text + sizeof(text);
    unsigned left = (unsigned)status & 255;

    *--p = '\n';
    do
        *--p = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    *--p = letter;
    sys(SYS_write, kept_fd(&replies), (long)p, text + sizeof(text) - p, 0);
}

/* ---- stops ---- */

/* As Ctrl-C does to a script. What comes too late for a call comes before the next. */
static void on_stop(int sig)
{
    if (phase == WAITING)
        return;
    stopped = true;
    if (phase != TAKING)
        sigint_sighandler(sig);
}

/* A child that bash forks is none of us: it ends as it would. */
static bool is_the_shell(void)
{
    return sys(SYS_getpid, 0, 0, 0, 0) == own_pid;
}

/* Our own top_level: what is inside a command has others. */
static char top[JUMP_SIZE];
static bool goes_on; /* SHELL_GOES_ON */

/* Between where bash jumps to its top and here others wait, to go on from there. They must not
 * if there is nothing left that they know: a stop and errors outside of `eval` have undone all,
 * and `time` would write to a command that is no more. Nor if the command is left for good: an
 * `eval` would not undo what the functions below it began, for bash was to end there. Whoever
 * waits in an EXIT trap is let. */
static bool is_straight(int value)
{
    if (stopped)
        return true;
    if (parse_and_execute_level == 0)
        return value == FORCE_EOF || value == DISCARD;
    return value == ERREXIT || (value == EXITBLTIN && goes_on);
}

static bool is_for_us(const void *env, int value)
{
    return env == top_level && phase == RUNNING && is_the_shell() && is_straight(value) &&
           !signal_in_progress(0);
}

/* In the place of libc's, which has the same under other names. */
__attribute__((noreturn, visibility("default"))) void siglongjmp(void *env, int value)
{
    longjmp(is_for_us(env, value) ? top : env, value);
}

__attribute__((noreturn, visibility("default"))) void __longjmp_chk(void *env, int value)
{
    siglongjmp(env, value);
}

/* In the place of libc's: bash has nothing that would have to be done there but this. */
__attribute__((noreturn, visibility("default"))) void exit(int status)
{
    if (phase == RUNNING && is_the_shell()) {
        exit_status = status;
        longjmp(top, LEFT_BY_EXIT);
    }
    fflush(NULL);
    for (;;)
        sys(SYS_exit_group, status, 0, 0, 0);
}

static volatile bool put_off; /* the stop of a `wait` */

/* In the place of libc's: a `wait` that is stopped is left where bash looks at that next, and
 * that would be before what it has just heard of a child: to it, that one would run for ever. */
__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int *status, int options)
{
    long ret = sys(SYS_wait4, pid, (long)status, options | (put_off ? WNOHANG : 0), 0);

    if (ret > 0 && wait_signal_received == SHELL_STOP_SIGNAL) {
        wait_signal_received = 0;
        put_off = true;
    } else if (ret <= 0 && put_off) {
        wait_signal_received = SHELL_STOP_SIGNAL;
        put_off = false;
        ret = ret == 0 ? NEG_EINTR : ret;
    }
    if (ret >= 0)
        return (pid_t)ret;
    errno = (int)-ret;
    return -1;
}

/* ---- what a call brings along ---- */

static struct var_context *scope;
static char *scope_env;
static size_t scope_len;

/* Some variables mean something to bash itself, as IFS does: now they have another value. */
static void heed_variables(void)
{
    for (char *v = scope_env; v < scope_env + scope_len; v += strlen(v) + 1) {
        char *eq = strchr(v, '=');

        *eq = '\0';
        stupidly_hack_special_variables(v);
        *eq = '=';
    }
}

static void leave_scope(void *arg)
{
    (void)arg;
    if (shell_variables == scope)
        pop_scope(0);
    heed_variables();
}

/* As variables before a builtin. One that is readonly says so, and the others are there. */
static void enter_scope(char *env, size_t n)
{
    int traced = echo_command_at_execute;

    if (temporary_env != NULL) /* of a command that did not come to be */
        dispose_used_env_vars();
    echo_command_at_execute = 0;
    for (char *v = env; v < env + n; v += strlen(v) + 1)
        assign_in_env(&(struct word_desc){v, 0}, 0);
    echo_command_at_execute = traced;
    if (temporary_env == NULL)
        return;
    scope = push_scope(VC_BLTNENV, temporary_env);
    scope_env = env;
    scope_len = n;
    temporary_env = NULL;
    begin_unwind_frame("cove");
    add_unwind_protect(leave_scope, NULL);
    heed_variables();
}

/* Where the shell was, if the call is somewhere else. */
static struct {
    bool moved;
    struct kept place;
    char *cwd, *pwd, *old;
} was;

static char *copy(const char *s)
{
    size_t n = s != NULL ? strlen(s) + 1 : 0;
    char *p = n > 0 ? malloc(n) : NULL;

    return p != NULL ? memcpy(p, s, n) : NULL;
}

static bool go(char *path)
{
    struct word_desc words[] = {{(char[]){"--"}, 0}, {path, 0}};
    struct word_list second = {NULL, &words[1]}, first = {&second, &words[0]};

    was.place = (struct kept){.fd = move_up(open_at(AT_FDCWD, ".", O_PATH | O_DIRECTORY))};
    note(&was.place);
    was.cwd = get_working_directory("cd");
    was.pwd = copy(get_string_value("PWD"));
    was.old = copy(get_string_value("OLDPWD"));
    was.moved = true;
    this_command_name = "cd";
    return cd_builtin(&first) == 0;
}

static void put_variable(const char *name, char *value)
{
    if (value != NULL)
        bind_variable(name, value, 0);
    else
        unbind_variable(name);
}

static void go_back(void)
{
    bool there = is_there(&was.place);

    if (!was.moved)
        return;
    was.moved = false;
    if (!there || sys(SYS_fchdir, was.place.fd, 0, 0, 0) < 0)
        sys(SYS_chdir, (long)was.cwd, 0, 0, 0);
    if (there)
        close_fd(was.place.fd);
    if (was.cwd != NULL)
        set_working_directory(was.cwd);
    put_variable("PWD", was.pwd);
    put_variable("OLDPWD", was.old);
    free(was.cwd);
    free(was.pwd);
    free(was.old);
}

static void put_stdio(int want, int at, const char *path, int flags)
{
    int fd = open_at(at, path, flags);

    if (fd < 0 && want > 0) /* whoever has no room for these cannot be heard */
        exit_shell(1);
    if (fd < 0 || fd == want)
        return;
    sys(SYS_dup3, fd, want, 0, 0);
    close_fd(fd);
}

static void open_stdio(const char *input)
{
    int at = kept_fd(&home);

    if (input[0] != '\0')
        put_stdio(0, at, input, O_RDONLY);
    put_stdio(1, at, "1", O_WRONLY);
    put_stdio(2, at, "2", O_WRONLY);
}

/* Nobody has these between calls: whoever waits for their end sees it. */
static void close_output(void)
{
    fflush(NULL);
    close_fd(1);
    close_fd(2);
}

/* While nobody waits for us: what every call needs, whatever the last one did to it. */
static void prepare(void)
{
    close_fd(0);
    put_stdio(0, AT_FDCWD, "/dev/null", O_RDONLY);
    set_signal_handler(SHELL_STOP_SIGNAL, on_stop);
}

/* ---- a call ---- */

static struct command *current; /* what runs, until it is disposed of */

static void dispose_current(void)
{
    struct command *c = current;

    current = NULL;
    if (c != NULL)
        dispose_command(c);
}

static void run(char *text)
{
    line_number = 0;
    with_input_from_string(text, "bash");
    EOF_Reached = 0;
    while (EOF_Reached == 0) {
        executing = 0;
        if (temporary_env != NULL)
            dispose_used_env_vars();
        if (read_command() != 0) {
            last_command_exit_value = STATUS_UNREADABLE;
            set_pipestatus_from_exit(STATUS_UNREADABLE);
            break;
        }
        current = global_command;
        global_command = NULL;
        if (current != NULL && !read_but_dont_execute) {
            executing = 1;
            stdin_redir = 0;
            execute_command(current);
        }
        dispose_current();
    }
    EOF_Reached = 0;
    reset_parser();
}

/* What bash says while it undoes things twice is nobody's. */
static void tidy_up(void)
{
    static char heap[512];
    bool mute = funcnest > 0 && variable_context == 0;

    interrupt_state = 0;
    stop_making_children(); /* else the next command's status is theirs */
    cleanup_the_pipeline();
    if (expanding_redir)
        undo_partial_redirects();
    expanding_redir = assigning_in_environment = executing_builtin = 0;
    if (mute)
        setvbuf(stderr, heap, _IOFBF, sizeof(heap));
    top_level_cleanup();
    running_trap = 0;
    for (int sig = 0; sig < TRAPS; sig++) /* they may have been run, one within another */
        run_trap_cleanup(sig);
    variable_context = 0;
    if (shell_variables != global_variables && reset_local_contexts != NULL)
        reset_local_contexts();
    shell_variables = global_variables;
    dispose_current();
    reset_parser();
    restore_sigmask();
    if (mute) {
        __fpurge(stderr);
        setvbuf(stderr, NULL, _IONBF, 0);
    }
}

/* 0: to its end; else why not. */
static int attempt(char *text)
{
    int why = __sigsetjmp(top_level, 0);

    if (why == 0) {
        memcpy(top, top_level, sizeof(top));
        phase = RUNNING;
        if (!stopped)
            run(text);
    }
    phase = WAITING;
    return why;
}

static bool is_exit(int why)
{
    return why == EXITBLTIN || (why == EXITPROG && this_shell_builtin == exit_builtin);
}

/* A child that failed before it was anything else. */
static void end_child(void)
{
    if (!is_the_shell())
        exit_shell(last_command_exit_value);
}

static void leave(char letter)
{
    phase = LEAVING;
    reply(letter, last_command_exit_value);
    exit_shell(last_command_exit_value);
}

/* It was left, and goes on. */
static void come_back(int why)
{
    if (why == LEFT_BY_EXIT)
        last_command_exit_value = exit_status;
    else if (why == DISCARD && last_command_exit_value == 0)
        last_command_exit_value = 1;
    tidy_up();
    if (why == LEFT_BY_EXIT) { /* an `exec` has let go of them, and EXIT's was run */
        initialize_signals(1);
        if (restore_traps != NULL)
            restore_traps();
    }
}

static void run_call(const struct shell_call *call, char *bytes)
{
    char *env = bytes + call->cwd, *text = env + call->env;
    bool here;
    int why = 0;

    goes_on = (call->flags & SHELL_GOES_ON) != 0;
    open_stdio(call->input);
    if (last_command_exit_value != call->status) {
        last_command_exit_value = call->status;
        set_pipestatus_from_exit(call->status);
    }
    line_number = 1;
    here = call->cwd == 0 || go(bytes);
    if ((call->flags & SHELL_DUMP) != 0) {
        last_command_exit_value = dump() ? 0 : 1;
    } else if (here) {
        enter_scope(env, call->env);
        why = attempt(text);
    } else {
        last_command_exit_value = 1;
    }
    if (why != 0)
        end_child();
    if (is_exit(why) && !stopped && !goes_on)
        leave('e');
    if (why != 0)
        come_back(why);
    interrupt_state = wait_signal_received = 0;
    put_off = false;
    make_funcname_visible(0); /* an error below an `eval` leaves it so */
    run_unwind_protects();
    close_output();
    go_back();
    if (read_but_dont_execute)
        leave('q');
    reply(why == 0 || why == DISCARD ? 'n' : 'x', last_command_exit_value);
}

static void serve(void)
{
    static char small[KEEP_MAX];
    size_t have = 0; /* bytes in it: init is made to send two calls by a reply that is a lie */

    for (;; prepare()) {
        struct shell_call call;
        char *bytes = small;
        size_t n;

        stopped = false;
        if (have < sizeof(call))
            have += take(small + have, sizeof(call) - have, sizeof(small) - have);
        phase = TAKING;
        memcpy(&call, small, sizeof(call));
        n = sizeof(call) + call.cwd + call.env + call.text;
        if (n > sizeof(small)) {
            bytes = malloc(n);
            if (bytes == NULL)
                exit_shell(1);
            memcpy(bytes, small, have);
            have += take(bytes + have, n - have, n - have);
        } else if (have < n) {
            have += take(small + have, n - have, sizeof(small) - have);
        }
        run_call(&call, bytes + sizeof(call));
        have -= n;
        if (bytes != small)
            free(bytes);
        else
            memmove(small, small + n, have);
    }
}

/* ---- how it begins ---- */

static struct kept object = {.fd = SHELL_OBJECT_FD};

#define PRELOAD "LD_PRELOAD="

/* Without what is ours; false: that was all. /proc/PID/environ shows these bytes, too. */
static bool forget_ours(char *variable)
{
    static const char ours[] = PRELOAD SHELL_OBJECT;
    char *value = variable + sizeof(PRELOAD) - 1, *rest = variable + sizeof(ours) - 1;
    size_t n;

    if (strncmp(variable, ours, sizeof(ours) - 1) != 0)
        return true;
    if (*rest != ':') {
        memset(variable, 0, strlen(variable));
        return false;
    }
    n = strlen(++rest);
    memmove(value, rest, n);
    memset(value + n, 0, (size_t)(rest - value));
    return true;
}

/* It is for bash only, not for what that starts; somebody else's may stand behind it. */
__attribute__((constructor)) static void forget_preload(void)
{
    char **to = environ;

    note(&object);
    for (char **from = environ; *from != NULL; from++)
        if (forget_ours(*from))
            *to++ = *from;
    *to = NULL;
}

static void hide_name(void)
{
    struct word_desc words[] = {{(char[]){"-d"}, 0}, {(char[]){SHELL_BUILTIN}, 0}};
    struct word_list second = {NULL, &words[1]}, first = {&second, &words[0]};

    enable_builtin(&first);
}

/* The script has the name of its file, which is ours: $0, and what stands before an error. */
static void take_name(void)
{
    static const char name[] = "bash";
    struct variable *source = find_variable("BASH_SOURCE");

    dollar_vars[0] = copy(name);
    if (source != NULL && (source->attributes & ATT_ARRAY) != 0)
        array_insert(source->value, 0, name);
}

/* It does not return, so bash's own top and its script are not needed any more. */
static int start(struct word_list *list)
{
    if (list == NULL || strlen(list->word->word) >= sizeof(dir))
        return 1;
    strcpy(dir, list->word->word);
    own_pid = sys(SYS_getpid, 0, 0, 0, 0);
    run_unwind_protects();
    hide_name();
    take_name();
    if (is_there(&object)) /* BASH_ENV may have put something of its own there */
        close_fd(object.fd);
    close_buffered_fd(default_buffered_input);
    default_buffered_input = -1;
    last_command_exit_value = 0;
    set_pipestatus_from_exit(0);
    close_output();
    prepare(); /* before anybody can ask for a stop */
    reply('r', 0);
    serve();
    return 0;
}

__attribute__((visibility("default"))) struct builtin cove_session_struct = {
    SHELL_BUILTIN, start, BUILTIN_ENABLED, (const char *const[]){NULL}, SHELL_BUILTIN, NULL};
