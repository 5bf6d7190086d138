/* test_mem.c - the end of a process without memory. */
#include "unit.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/mem.h"

static bool none;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
int __wrap_vasprintf(char **text, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
int __wrap___vasprintf_chk(char **text, int flag, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

void *__wrap_calloc(size_t n, size_t size)
{
    return none ? NULL : __real_calloc(n, size);
}

char *__wrap_strdup(const char *s)
{
    return none ? NULL : __real_strdup(s);
}

void *__wrap_malloc(size_t n)
{
    return none ? NULL : __real_malloc(n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return none ? NULL : __real_reallocarray(p, n, size);
}

/* With _FORTIFY_SOURCE the compiler calls the second of these. */
int __wrap_vasprintf(char **text, const char *fmt, va_list ap)
{
    return none ? -1 : vsnprintf(*text = __real_malloc(64), 64, fmt, ap);
}

int __wrap___vasprintf_chk(char **text, int flag, const char *fmt, va_list ap)
{
    (void)flag;
    return __wrap_vasprintf(text, fmt, ap);
}

static void take_zeroed(void)
{
    free(mem_zeroed(2, 8));
}

static void take_text(void)
{
    free(mem_text("x"));
}

static void take_again(void)
{
    free(mem_again(NULL, 2, 8));
}

static void take_place(void)
{
    struct map_node node;
    struct map m;

    map_init(&m);
    mem_put(&m, &node, "x");
}

static void take_format(void)
{
    free(mem_format("%d", 1));
}

static void take_json(void)
{
    json_decref(json_object());
}

/* What a child prints that has no memory for `take`, and its exit status. */
static int without_memory(void (*take)(void), char out[64])
{
    int fds[2], status;
    ssize_t n;
    pid_t pid;

    CHECK_INT(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        none = true;
        take();
        _exit(0);
    }
    close(fds[1]);
    n = read(fds[0], out, 63);
    out[n > 0 ? n : 0] = '\0';
    close(fds[0]);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(memory_is_zeroed_and_text_is_copied_or_formatted)
{
    char *p = mem_zeroed(2, 8), *text = mem_text("abc"), *line = mem_format("%s-%d", "a", 1);

    for (int i = 0; i < 16; i++)
        CHECK_INT(p[i], 0);
    CHECK_STR(text, "abc");
    CHECK_STR(line, "a-1");
    CHECK(mem_text(NULL) == NULL);
    free(line);
    free(p);
    free(text);
}

TEST(without_memory_the_process_ends_with_a_message_and_the_status_of_internal)
{
    static void (*const takes[])(void) = {take_zeroed, take_text,   take_again,
                                          take_place,  take_format, take_json};
    char out[64];

    mem_for_json();
    for (size_t i = 0; i < ARRAY_LEN(takes); i++) {
        CHECK_INT(without_memory(takes[i], out), err_exit(ERR_INTERNAL));
        CHECK_STR(out, "cove: out of memory\n");
    }
}
