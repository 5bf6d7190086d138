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

static void take_zeroed(void)
{
    free(mem_zeroed(2, 8));
}

static void take_text(void)
{
    free(mem_text("x"));
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

TEST(memory_is_zeroed_and_text_is_copied)
{
    char *p = mem_zeroed(2, 8), *text = mem_text("abc");

    for (int i = 0; i < 16; i++)
        CHECK_INT(p[i], 0);
    CHECK_STR(text, "abc");
    free(p);
    free(text);
}

TEST(without_memory_the_process_ends_with_a_message_and_the_status_of_internal)
{
    static void (*const takes[])(void) = {take_zeroed, take_text, take_json};
    char out[64];

    mem_for_json();
    for (size_t i = 0; i < ARRAY_LEN(takes); i++) {
        CHECK_INT(without_memory(takes[i], out), err_exit(ERR_INTERNAL));
        CHECK_STR(out, "cove: out of memory\n");
    }
}
