/* dump.c - prints the state of the shell as text that another bash can eval.
 *
 * The builtins that print it are called by their address: no name is looked up that a command
 * could have redefined or disabled, nothing is traced, and $? and traps are not affected. */
#include <stdio.h>
#include <stdlib.h>

#include "shell/bash.h"
#include "shell/loop.h"

static bool call(const char *name, const char *option, const char *arg)
{
    struct word_desc words[] = {{(char *)option, 0}, {(char *)arg, 0}};
    struct word_list second = {NULL, &words[1]};
    struct word_list first = {arg != NULL ? &second : NULL, &words[0]};
    int (*function)(struct word_list *) = builtin_address((char *)name);

    this_command_name = name;
    return function != NULL && function(&first) == 0;
}

static bool say(const char *a, const char *b)
{
    return a != NULL && b != NULL && fputs(a, stdout) >= 0 && fputs(b, stdout) >= 0 &&
           fputs("\n", stdout) >= 0;
}

static bool say_cwd(void)
{
    char *cwd = get_working_directory("cd");
    char *word = cwd != NULL ? sh_single_quote(cwd) : NULL;
    bool ok = word != NULL && say("\\builtin cd -- ", word);

    free(word);
    free(cwd);
    return ok;
}

/* In an order in which no part changes how the next is read: functions are read with the shopts
 * they were defined with, set -e and set -k come late, aliases are expanded only at the end.
 * The reader uses `builtin`, so a function of that name prevents the dump. */
bool dump(void)
{
    static const struct {
        const char *name, *option;
    } steps[] = {{"umask", "-p"}, {"declare", "-p"}, {"shopt", "-p"},   {NULL, NULL},
                 {"alias", "-p"}, {"declare", "-f"}, {"export", "-fp"}, {"set", "+o"}};
    bool ok = find_function("builtin") == NULL && say_cwd();

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        ok &= steps[i].name != NULL ? call(steps[i].name, steps[i].option, NULL)
                                    : say("\\builtin shopt -u ", "expand_aliases");
    if (call("shopt", "-q", "expand_aliases"))
        ok &= say("\\builtin shopt -s ", "expand_aliases");
    return fflush(stdout) == 0 && ok;
}
