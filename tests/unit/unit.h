/* unit.h - included by every unit test.
 *
 * TEST(a_sentence_that_must_hold) { ... } registers itself; CHECK fails the case
 * with its file and line. One file is one program, and its main() is here. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first */
#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"

#define UNIT_TESTS_MAX 128

static struct CMUnitTest unit_tests[UNIT_TESTS_MAX];
static size_t unit_count;

#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void unit_register_##name(void)                            \
    {                                                                                              \
        if (unit_count < UNIT_TESTS_MAX)                                                           \
            unit_tests[unit_count] = (struct CMUnitTest){#name, name, NULL, NULL, NULL};           \
        unit_count++;                                                                              \
    }                                                                                              \
    static void name(void **state __attribute__((unused)))

#define CHECK(what) assert_true(what)
#define CHECK_INT(a, b) assert_int_equal(a, b)
#define CHECK_STR(a, b) assert_string_equal(a, b)
#define CHECK_HAS(text, part) unit_has(text, part, __FILE__, __LINE__)

static inline void unit_has(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part) == NULL) {
        print_error("\"%s\" is not in \"%s\"\n", part, text);
        _fail(file, line);
    }
}

int main(void)
{
    if (unit_count > UNIT_TESTS_MAX)
        return 99; /* raise UNIT_TESTS_MAX */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("unit", unit_tests, unit_count, NULL, NULL);
}

#endif
