/* scope.c - see scope.h. */
#include "shell/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "shell/bash.h"
#include "shell/kept.h"
#include "shell/kernel.h"

static struct var_context *scope;
static char *scope_env;
static size_t scope_len;

/* Bash itself uses some variables, such as IFS: tell it that their values changed. */
static void apply_special_variables(void)
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
    apply_special_variables();
}

/* Like variables before a builtin. For a readonly one bash prints an error; the others are
 * set. */
void scope_enter(char *env, size_t n)
{
    int traced = echo_command_at_execute;

    if (temporary_env != NULL) /* of a command that was not run */
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
    apply_special_variables();
}

/* Where the shell was, if the call runs in another directory. */
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

bool scope_cd(char *path)
{
    struct word_desc words[] = {{(char[]){"--"}, 0}, {path, 0}};
    struct word_list second = {NULL, &words[1]}, first = {&second, &words[0]};

    kept_put(&was.place, open_at(AT_FDCWD, ".", O_PATH | O_DIRECTORY));
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

void scope_cd_back(void)
{
    bool there = kept_is_valid(&was.place);

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
