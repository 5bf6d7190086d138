/* script.c - see script.h. Every line here was tried against bash 5.2 with what a
 * command may do to its shell; tests/api/43-session-torture.test.mjs is that list. */
#include "init/script.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"

/* In these texts % stands for the directory. A status is always one to be looked up: by that
 * reply.c knows our text from what bash says about it. */
#define SAY(kind, status, pid) "{ if 2<&\"%/-/" kind status "." pid ".\"; then [[ 1 ]]; fi; } 2>%/s"
#define NO_PID ""
#define ITS_PID "${BASHPID-}"

/* The first name in FUNCNAME may be `main` where no function is, but there is no second. */
#define INSIDE "'FUNCNAME[1]'"
/* What a function named `builtin` cannot also be: one of these is true, the other false,
 * and neither is run inside a function. */
#define IS_ONE(name) "\\" name " test ! -v " INSIDE " && ! \\" name " test -v " INSIDE
#define BUILTIN_IS_ONE IS_ONE("builtin")
#define COMMAND_IS_ONE IS_ONE("command")
/* The same in fewer words, for every command, and nothing that we need was switched off. The
 * end is neither of those: with set -e bash exits when one fails there, be it in a condition.
 * Nor is it what should be false: the command is to find a PIPESTATUS of 0. */
#define ALL_IS_WELL                                                                                \
    "! \\builtin test -v " INSIDE " && \\builtin command && \\builtin eval && [[ 1 ]]"

/* With set -v the text is shown, too, on what is stderr when it is read. */
#define STDIO " </dev/null >%/1 2>%/2v"

/* The inner loop is what `break` leaves, the outer one goes on. Both end when s cannot be
 * opened, when nothing is done any more (set -n), and when a DEBUG trap forbids it all. Not
 * `until ! { } 2>s`: what `!` turns around is not how a redirection went. Names that hide
 * `builtin` are got around by posix mode, in which special builtins come before functions;
 * a line is spent to leave it again. */
#define UNLESS(it) "until if " it "; then [[ ! 1 ]]; fi; do "
#define LOOP                                                                                       \
    UNLESS("{ [[ 1 ]]; } 2>%/s")                                                                   \
    UNLESS(SAY("n", "$?", NO_PID))                                                                 \
    "if " ALL_IS_WELL "; then \\builtin eval \"$(<%/c)\"" STDIO                                    \
    "; else \\enable builtin command eval; \\set -o posix; [[ -o posix ]] || POSIXLY_CORRECT=1; "  \
    "\\eval \"\\\\set +o posix;\\\\shopt -s expand_aliases\n$(<%/c)\"" STDIO "; fi; done; done"

/* By two names, in case one is not what it should be. */
#define BOTH(command) "\\builtin " command "; \\command " command "; "

/* clang-format off */
/* By an error of arithmetic in an index all functions, loops and evals are left, and bash goes
 * on with the next line of its script. No command can make something else of that array. */
#define LEAVE_ALL "${BASH_VERSINFO[1+]}"

/* A command that is stopped is left so, but one that is exiting already goes on with that. */
#define STOP                                                                                       \
    "'{ if [[ ! -v __cove_status ]]; then " SAY("k", "$?", NO_PID) "; [[ " LEAVE_ALL " ]]; fi; } 2>&-'"

/* A child has no next line: it would end. So it does as with set -e, the one way to exit that
 * leaves functions, too. What fails is not shown by set -x, and not in a { } with a
 * redirection, which would not always be undone. */
#define STOP_CHILD                                                                                 \
    "\"if { if [[ -v __cove_status ]]; then [[ ! 1 ]]; else " BOTH("trap -- \\\"\\$(<%/y)\\\" EXIT")   \
    "__cove_flags=\\$-; " BOTH("set -e") "[[ 1 ]]; fi; } >&- 2>&-; then 2>&- 2<%/-/; fi\""

/* FUNCNAME stays visible when functions are left by an error, until one is left as usual. */
#define HIDE_FUNCNAME                                                                              \
    "if [[ -v FUNCNAME ]]; then __cove() { [[ 1 ]]; }; __cove; " BOTH("unset -f __cove") "fi; "

/* What a shell begins with; set -e has no say in it. */
#define SETTLE(stop)                                                                               \
    "if { if [[ ${__cove_flags-e} != *e* ]]; then " BOTH("set +e") "fi; "                          \
    "\\unset __cove_status __cove_pipe __cove_flags; " HIDE_FUNCNAME                                             \
    BOTH("trap -- \"$(<%/x)\" EXIT") BOTH("trap -- " stop " RTMAX") "} >&- 2>&-; then [[ 1 ]]; fi; "

/* Left so out of a trap, bash takes itself to be in that trap for good: `return` says what $?
 * was when it began, and jobs are named after the command of then, which BASH_COMMAND stays: it
 * is never both of these. What bash does about a trap when a child has ended puts it right.
 * Not while those of the command are killed: one that ends as that trap is run, or taken away,
 * ends the shell when it is told to stop again. */
#define OUT_OF_TRAP                                                                                \
    "if { if [[ ${BASH_COMMAND-} != *__cove_1* ]] || [[ ${BASH_COMMAND-} != *__cove_2* ]]; then "  \
    "( [[ 1 ]] ); \\builtin trap -p CHLD >|%/t; if [[ ! -s %/t ]]; then "                          \
    BOTH("trap -- \"[[ 1 ]]\" CHLD") "( [[ 1 ]] ); [[ 1 ]]; " BOTH("trap - CHLD") "fi; fi; "       \
    "} >&- 2>&-; then [[ 1 ]]; fi; "
/* clang-format on */

/* In the traps of EXIT $? is wanted twice, and nothing but a variable keeps it. */
#define STATUS "${__cove_status}"
#define PIPE "${__cove_pipe}"
#define KEEP "__cove_status=$? __cove_pipe=\" ${PIPESTATUS[@]} \"; "

/* A child has no traps until it sets one, but is told those of its parent. Not DEBUG, which is
 * what ended many a shell with set -e. A function of that name is not to be called. By way of
 * a file: a fork would be taken for a process of the command that was stopped, and killed. */
#define TRAPS                                                                                      \
    "if \\builtin test 1 = 1 && ! \\builtin test 1 = 2 && "                                        \
    "! \\builtin declare -F trap >/dev/null; then \\builtin trap -p ERR HUP INT QUIT USR1 USR2 "   \
    "PIPE ALRM TERM CHLD WINCH >|%/t; \\builtin eval \"$(<%/t)\"; fi; "

/* `exit` leaves no function: a child that is still in one, with its locals, does as if it were
 * stopped, and so has a child in its turn. The eval is what takes them away. */
#define IN_FUNCTION "[[ -v " INSIDE " ]]"
#define LEAVE                                                                                      \
    BOTH("trap -- \"$(<%/y)\" EXIT")                                                               \
    "__cove_flags=$-; " BOTH("set -e") BOTH("eval \"[[ ! 1 ]]\"") "[[ ! 1 ]]"

/* A shell that exits goes on in a child that has all of its state, but for what its command
 * had for fds 0 to 2. It is born outside of every { } with a redirection: what such a one
 * puts aside it would keep. */
#define BIRTH SAY("b", STATUS, NO_PID)
#define CHILD(begin) "( if " SAY("x", STATUS, ITS_PID) "; then " TRAPS begin "; fi ) <&- >&- 2>&-"

/* Was it `exit`, or set -e, set -u, ${x:?} and their like? With set -e a status that some part
 * of the last pipeline had is its doing, and 1 too, since [[ ]] is in no pipeline, and 2,
 * that of a text bash cannot read; else 126 and 127 are not from `exit`, nor in posix
 * mode 1 and 2. What is not set is 1, also as the last pipeline's status, and leaves all
 * functions, which `exit` does not. Where it cannot be known, the session goes on. */
#define WAS_EXIT                                                                                   \
    "[[ -o errexit && \"" PIPE "1 2 \" != *\" " STATUS " \"* || "                                  \
    "! -o errexit && " STATUS " != 12[67] && "                                                     \
    "! ( -o posix && " STATUS " == [12] ) && "                                                     \
    "! ( " STATUS " == 1 && " PIPE " == *\" 1 \"* && ( ${BASH_SUBSHELL-0} != 0 || "                \
    "${FUNCNAME-main} == main && ( ! -e %/q || -o nounset || -v FUNCNAME ) ) ) ]]"

static void put(struct buf *out, const char *text, const char *dir)
{
    for (const char *at = text, *end;; at = end + 1) {
        end = strchrnul(at, '%');
        buf_add(out, at, (size_t)(end - at));
        if (*end == '\0')
            return;
        buf_adds(out, dir);
    }
}

void script_main(struct buf *out, const char *dir, const char *cwd)
{
    put(out, "\\builtin shopt -s expand_aliases; \\builtin cd -P -- ", dir);
    script_quote(out, cwd, strlen(cwd));
    /* Without fds 0 to 2 bash has none to put aside for a command. Not `builtin exec`:
     * what that closes comes back. */
    put(out,
        "; \\builtin unset OLDPWD; \\builtin export OLDPWD; " SETTLE(
            STOP) "\\exec <&- >&- 2>&-; " LOOP,
        dir);
}

void script_first(struct buf *out, const char *dir)
{
    put(out, "\\builtin eval \"$(<%/b)\"\n", dir);
}

/* For who was left by such an error, be it the command's own. An assignment to LINENO that one
 * leaves is not undone: the line behind it is the first, by which those of commands are
 * counted. */
void script_next(struct buf *out, const char *dir)
{
    put(out, "LINENO=0 __cove_pwd=" LEAVE_ALL "\n", dir);
    put(out, SAY("d", "$?", NO_PID) "; " OUT_OF_TRAP HIDE_FUNCNAME LOOP "\n", dir);
}

/* With set -x none of it is traced to what is stderr at that moment. All of it is one
 * line, by which those of a command are counted. */
void script_exit(struct buf *out, const char *dir, enum script_exit kind)
{
    put(out, "if { " KEEP, dir);
    if (kind == SCRIPT_EXIT_ENDS)
        put(out, "if " WAS_EXIT "; then " SAY("e", STATUS, NO_PID) "; [[ ! 1 ]]; else ", dir);
    put(out, kind == SCRIPT_EXIT_ENDS ? BIRTH "; fi; } 2>&-; " : BIRTH "; } 2>&-; ", dir);
    put(out, "then ", dir);
    if (kind == SCRIPT_EXIT_GOES_ON)
        put(out, CHILD("if " IN_FUNCTION "; then " LEAVE "; fi; " SETTLE(STOP_CHILD) LOOP), dir);
    else
        put(out, CHILD(SETTLE(STOP_CHILD) LOOP), dir);
    put(out, "; fi", dir);
}

void script_quote(struct buf *out, const char *p, size_t n)
{
    buf_addc(out, '\'');
    while (n > 0) {
        const char *q = memchr(p, '\'', n);
        size_t len = q != NULL ? (size_t)(q - p) : n;

        buf_add(out, p, len);
        if (q == NULL)
            break;
        buf_adds(out, "'\\''");
        p = q + 1;
        n -= len + 1;
    }
    buf_addc(out, '\'');
}

bool script_is_variable(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strspn(s, letters);

    return n > 0 && (s[0] < '0' || s[0] > '9') && s[n] == '=';
}

static void quote_env(struct buf *out, const struct wire_strv *env)
{
    uint32_t at = 0;
    const char *s;

    while ((s = wire_strv_next(env, &at)) != NULL) {
        const char *eq = strchr(s, '=') + 1;

        buf_add(out, s, (size_t)(eq - s));
        script_quote(out, eq, strlen(eq));
        buf_addc(out, ' ');
    }
}

/* By the first name that still is what it should be; the last is not asked. With variables
 * before it `builtin` alone does not do: they would not be seen; and plain `eval` leaves them
 * behind in posix mode. */
static const struct way {
    const char *check, *eval;
} plain_ways[SCRIPT_WAYS] = {{BUILTIN_IS_ONE, "\\builtin eval "}, {NULL, "\\command eval "}},
  env_ways[SCRIPT_WAYS] = {{COMMAND_IS_ONE, "\\command eval "},
                           {BUILTIN_IS_ONE, "\\builtin command eval "},
                           {NULL, "\\eval "}};

static size_t put_eval(struct buf *out, const struct script_call *c, const char *eval, bool asks)
{
    size_t status_at = out->len;

    if (asks)
        buf_adds(out, "[[ 1 ]] &&             "); /* room for script_status() */
    quote_env(out, c->env);
    buf_adds(out, eval);
    script_quote(out, c->text->p, c->text->len);
    if (c->input[0] != '\0') {
        put(out, " <%/", c->dir);
        buf_adds(out, c->input);
    }
    put(out, " >%/1 2>%/2; ", c->dir);
    return asks ? status_at : SIZE_MAX;
}

/* PWD is a variable as any other, and may be wrong. */
static void put_cd(struct buf *out, const struct script_call *c)
{
    static const char *const names[] = {"\\builtin ", "\\command "};

    buf_adds(out, "__cove_pwd=${PWD-} __cove_old=${OLDPWD-}; { if " BUILTIN_IS_ONE "; then ");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (i > 0)
            buf_adds(out, "; else ");
        buf_adds(out, names[i]);
        buf_adds(out, "test \"$__cove_pwd\" -ef . || __cove_pwd=$(");
        buf_adds(out, names[i]);
        buf_adds(out, "pwd); ");
        buf_adds(out, names[i]);
        buf_adds(out, "cd -- ");
        script_quote(out, c->cwd, strlen(c->cwd));
        put(out, " 2>%/2", c->dir);
    }
    buf_adds(out, "; fi; } && ");
}

/* The text itself, unless something has to come before it: then it is a word of an eval,
 * whatever quotes it leaves open. Nothing but that eval has a stdout, which a DEBUG trap
 * may use, nor with set -x a stderr: none of ours is shown. */
struct script_slots script_command(struct buf *out, const struct script_call *c)
{
    const struct wire_bytes *t = c->text;
    const struct way *ways = c->env->count > 0 ? env_ways : plain_ways;
    bool asks = memmem(t->p, t->len, "$?", 2) != NULL;
    struct script_slots slots = SCRIPT_NO_SLOTS;

    if (c->cwd[0] == '\0' && c->env->count == 0 && c->input[0] == '\0' && !asks) {
        buf_add(out, t->p, t->len);
        return slots;
    }
    slots.around = true;
    buf_adds(out, "{ ");
    if (c->cwd[0] != '\0')
        put_cd(out, c);
    for (size_t i = 0; i < SCRIPT_WAYS && ways[i].eval != NULL; i++) {
        buf_adds(out, ways[i].check == NULL ? "else " : i == 0 ? "if " : "elif ");
        if (ways[i].check != NULL) {
            buf_adds(out, ways[i].check);
            buf_adds(out, "; then ");
        }
        slots.by[i] = ways[i].eval;
        slots.at[i] = put_eval(out, c, ways[i].eval, asks);
    }
    put(out, "fi; } >%/2x 2>\"%/2${-//[!x]/}\"", c->dir);
    return slots;
}

/* A child that exits so, and no `set -e` on this side of ||. */
void script_status(struct buf *script, const struct script_slots *slots, unsigned status)
{
    char text[24];

    for (size_t i = 0; i < ARRAY_LEN(slots->at); i++) {
        if (status == 0 || slots->at[i] == SIZE_MAX)
            continue;
        str_fmt(text, sizeof(text), "(%.8s exit %3u) ||", slots->by[i], status & 255);
        memcpy(buf_data(script) + slots->at[i], text, strlen(text));
    }
}

void script_back(struct buf *out, const char *dir)
{
    (void)dir;
    buf_adds(out, "if " BUILTIN_IS_ONE "; then \\builtin cd -- \"$__cove_pwd\"; "
                  "else \\command cd -- \"$__cove_pwd\"; fi; OLDPWD=$__cove_old; "
                  "\\unset __cove_pwd __cove_old");
}

/* A `[[` that found no end is taken for open by the next text with one, unless an error
 * comes first that bash tidies up after. */
void script_mend(struct buf *out, const char *dir)
{
    (void)dir;
    buf_adds(out, "\\command eval \")\" || \\command true");
}

/* A command that set a trap of its own for EXIT, and then took it away, has none of ours. */
void script_trap(struct buf *out, const char *dir)
{
    put(out,
        "\\builtin trap -p EXIT >|%/t; if [[ ! -s %/t ]]; then " BOTH(
            "trap -- \"$(<%/x)\" EXIT") "[[ 1 ]]; fi",
        dir);
}

/* In an order in which nothing changes what comes behind it: functions are read with the
 * shopts they were written with, set -e and set -k come late, aliases count from the end on.
 * It ends with 0 only if `builtin` can be relied on and all of it was printed. */
void script_dump(struct buf *out, const char *dir)
{
    (void)dir;
    buf_adds(out, "\\builtin test 1 = 1 && ! \\builtin test 1 = 2 && "
                  "\\builtin printf \"%s %q\\n\" \"\\\\builtin cd --\" \"$(\\builtin pwd)\" && "
                  "\\builtin umask -p && \\builtin declare -p && \\builtin shopt -p && "
                  "\\builtin printf \"%s\\n\" \"\\\\builtin shopt -u expand_aliases\" && "
                  "\\builtin alias -p && \\builtin declare -f && \\builtin export -fp && "
                  "\\builtin set +o && if \\builtin shopt -q expand_aliases; then "
                  "\\builtin printf \"%s\\n\" \"\\\\builtin shopt -s expand_aliases\"; fi");
}
