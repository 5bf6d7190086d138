/* bash.h - the functions and variables of bash that we use; its headers are not installed with it.
 *
 * These names and shapes are the same from bash 5.1 to 5.3: tried with 5.1.4, 5.2.15, 5.2.37
 * and 5.3.15, with glibc and musl, with bash's own malloc and without. 5.0 has no
 * restore_sigmask(). A bash that lacks one that is not weak does not load the object, and the
 * session does not start: the object is linked with -z now, so that this shows at once. */
#ifndef SHELL_BASH_H
#define SHELL_BASH_H

#include <stddef.h>

struct word_desc {
    char *word;
    int flags;
};

struct word_list {
    struct word_list *next;
    struct word_desc *word;
};

struct builtin {
    const char *name;
    int (*function)(struct word_list *);
    int flags;
    const char *const *long_doc;
    const char *short_doc;
    char *handle;
};
#define BUILTIN_ENABLED 1

/* Why bash jumps to top_level. */
enum {
    FORCE_EOF = 1, /* set -u, ${x:?} */
    DISCARD = 2,   /* an error that ends the current input line */
    EXITPROG = 3,  /* all other ways out; `exit`, before 5.2 */
    ERREXIT = 4,   /* set -e */
    EXITBLTIN = 6, /* `exit` */
};
extern char top_level[]; /* a sigjmp_buf */
extern int __sigsetjmp(void *env, int save) __attribute__((returns_twice));
extern void longjmp(void *env, int value) __attribute__((noreturn));
extern void siglongjmp(void *env, int value) __attribute__((noreturn));
extern void __longjmp_chk(void *env, int value) __attribute__((noreturn));

/* Parsing and running. */
struct command;
extern struct command *global_command;
extern int EOF_Reached, line_number, executing, stdin_redir, parse_and_execute_level;
extern int read_but_dont_execute, echo_command_at_execute;
extern int default_buffered_input, shell_eof_token;
int read_command(void);
int execute_command(struct command *);
void dispose_command(struct command *);
void with_input_from_string(char *text, const char *name);
void reset_parser(void);
int close_buffered_fd(int fd);

/* The status. */
extern volatile int last_command_exit_value;
extern int (*this_shell_builtin)(struct word_list *);
int exit_builtin(struct word_list *);
int enable_builtin(struct word_list *);
void set_pipestatus_from_exit(int status);
void exit_shell(int status) __attribute__((noreturn));

/* Signals and traps. */
extern volatile int interrupt_state;
extern int wait_signal_received;
extern int running_trap;
void sigint_sighandler(int sig);
void (*set_signal_handler(int sig, void (*handler)(int)))(int);
int signal_in_progress(int sig);
void run_trap_cleanup(int sig);
void initialize_signals(int again);
void restore_traps(void) __attribute__((weak)); /* from 5.2 on */
void restore_sigmask(void);

/* Unwinding. */
void begin_unwind_frame(const char *name);
void add_unwind_protect(void (*undo)(void *), void *arg);
void run_unwind_protects(void);
extern int expanding_redir, assigning_in_environment, executing_builtin;
void undo_partial_redirects(void);
void stop_making_children(void);
void cleanup_the_pipeline(void);
extern int pipeline_pgrp, shell_pgrp;             /* pid_t */
extern int job_control;                           /* set -m */
void close_pgrp_pipe(void) __attribute__((weak)); /* on systems where bash has it */
void top_level_cleanup(void);

/* Variables. */
struct variable {
    char *name, *value, *exported;
    void *look, *assign;
    int attributes;
};
#define ATT_ARRAY 0x4
struct variable *find_variable(const char *name);
int array_insert(void *array, long index, const char *value);
extern char *dollar_vars[];
struct var_context;
extern struct var_context *shell_variables, *global_variables;
extern void *temporary_env;
extern int variable_context, funcnest;
#define VC_BLTNENV 0x08
struct var_context *push_scope(int flags, void *vars);
void pop_scope(int special);
void reset_local_contexts(void) __attribute__((weak)); /* from 5.2 on */
void dispose_used_env_vars(void);
void stupidly_hack_special_variables(char *name);
void make_funcname_visible(int yes);
int assign_in_env(struct word_desc *, int flags);
void *bind_variable(const char *name, char *value, int flags);
int unbind_variable(const char *name);
char *get_string_value(const char *name);

/* Other builtins, by name, even if disabled. */
int (*builtin_address(char *name))(struct word_list *);
void *find_function(const char *name);
char *sh_single_quote(const char *text);

/* The working directory. */
extern const char *this_command_name;
int cd_builtin(struct word_list *);
char *get_working_directory(const char *who);
void set_working_directory(char *path);

#endif
