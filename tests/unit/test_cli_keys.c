#include "unit.h"

#include "cli/terminal/keys.h"

static struct keys k;
static struct err e;

/* What the program gets of `text`; a '!' at the end: the detach keys were found. */
static const char *typed(const char *keys, const char *text)
{
    static struct buf out = BUF_INIT(256);

    buf_clear(&out);
    CHECK_INT(keys_parse(&k, keys, &e), 0);
    /* byte by byte, as a person types */
    for (const char *p = text; *p != '\0'; p++)
        if (keys_filter(&k, p, 1, &out)) {
            buf_addc(&out, '!');
            break;
        }
    return buf_cstr(&out);
}

TEST(typed_text_passes_and_the_detach_keys_do_not)
{
    CHECK_STR(typed("ctrl-],d", "hello"), "hello");
    CHECK_STR(typed("ctrl-],d", "he\035d"), "he!");
    CHECK_STR(typed("ctrl-p,ctrl-q", "a\020\021"), "a!");
    CHECK_STR(typed("none", "\035d"), "\035d");
}

TEST(a_beginning_of_the_detach_keys_is_passed_on_after_another_key)
{
    CHECK_STR(typed("ctrl-],d", "\035x"), "\035x");
    CHECK_STR(typed("ctrl-],d", "\035\035d"), "\035!");
    CHECK_STR(typed("a,a,b", "aaab"), "a!");
    CHECK_STR(typed("a,b,a,c", "ababac"), "ab!");
    CHECK_STR(typed("ctrl-],d", "\035"), ""); /* held until the next key decides */
}

TEST(keys_after_the_detach_keys_are_dropped)
{
    autobuf struct buf out = BUF_INIT(64);

    CHECK_INT(keys_parse(&k, "ctrl-],d", &e), 0);
    CHECK(keys_filter(&k, "ab\035dcd", 6, &out));
    CHECK_STR(buf_cstr(&out), "ab");
}

TEST(malformed_detach_keys_are_refused)
{
    static const char *const bad[] = {"",      "ctrl-", "ctrl-1", "ctrl-ab",
                                      "alt-x", "a,",    ",a",     "a,b,c,d,e,f,g,h,i"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(keys_parse(&k, bad[i], &e), -1);
        CHECK_HAS(e.msg, "is not a list");
    }
    CHECK_INT(keys_parse(&k, "a,b,c,d,e,f,g,h", &e), 0);
}
