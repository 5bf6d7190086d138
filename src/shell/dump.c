/* dump.c - everything the shell knows, printed for another bash to take in.
 *
 * The builtins that print it are called by their address: no name is looked up that a command
 * could have taken or switched off, nothing is traced, and neither $? nor a trap notices. */
#include <stdio.h>
#include <stdlib.h>

#include "shell/bash.h"
#include "shell/dump.h"

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

/* In an order in which nothing changes what comes behind it: functions are read with the
 * shopts they were written with, set -e and set -k come late, aliases count from the end on.
 * Whoever takes it in does so by `builtin`. */
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
