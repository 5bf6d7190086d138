#include "unit.h"

#include <stdlib.h>

#include "base/buf.h"
#include "http/multipart.h"

static struct http_fault f;

/* What comes out, as text: "[name|filename]data" per part, "." at the end of each and
 * "!" at the end of all. */
static struct buf said = BUF_INIT(1u << 20);

static int take_apart(const char *type, const char *text, size_t n, size_t step)
{
    struct multipart *m = calloc(1, sizeof(*m));
    int r = multipart_init(m, type, &f);

    buf_clear(&said);
    for (size_t at = 0; r == 0 && at < n;) {
        struct http_str data;
        size_t used = 0, room = n - at < step ? n - at : step;
        enum multipart_event ev = multipart_next(m, text + at, room, &used, &data, &f);

        if (ev == MULTIPART_BAD)
            r = -1;
        else if (ev == MULTIPART_PART)
            buf_addf(&said, "[%s|%s]", m->name, m->has_filename ? m->filename : "-");
        else if (ev == MULTIPART_DATA)
            buf_add(&said, data.p, data.len);
        else if (ev == MULTIPART_PART_END)
            buf_adds(&said, ".");
        else if (ev == MULTIPART_END)
            r = 1;
        at += used;
    }
    free(m);
    return r;
}

#define TYPE "multipart/form-data; boundary=B"
#define DISPOSITION "Content-Disposition: form-data; "

/* However the bytes are cut, the outcome must be the same. */
static int judge(const char *text)
{
    size_t n = strlen(text);
    int whole = take_apart(TYPE, text, n, n);
    char *once = strdup(buf_cstr(&said));

    for (size_t step = 1; step < 9; step++) {
        CHECK_INT(take_apart(TYPE, text, n, step), whole);
        CHECK_STR(buf_cstr(&said), once);
    }
    free(once);
    return whole;
}

/* clang-format off */
static const struct {
    const char *text, *said;
    int end; /* 1: over, 0: more is wanted, -1: refused */
} cases[] = {
    {"--B--",                                                                "", 1},
    {"--B--\r\nwhatever follows",                                            "", 1},
    {"--B\r\n" DISPOSITION "name=\"file\"; filename=\"a/b c.txt\"\r\n"
     "Content-Type: text/plain\r\n\r\nhello\r\n--B--\r\n",                   "[file|a/b c.txt]hello.", 1},
    {"not ours\r\n--B\r\n" DISPOSITION "name=x\r\n\r\n\r\n--B--",            "[x|-].", 1},
    {"\r\n--B \t\r\n" DISPOSITION "name=x\r\n\r\n1\r\n--B\r\n"
     "content-disposition:form-data;name=\"y\" ; filename=z\r\n\r\n2\r\n--B--", "[x|-]1.[y|z]2.", 1},
    {"--B\r\n" DISPOSITION "name=x\r\n\r\n\r\r\n\r\n-\r\n--\r\n--b\n--B\r\n--B--", "[x|-]\r\r\n\r\n-\r\n--\r\n--b\n--B.", 1},
    {"--B\r\n" DISPOSITION "name=x; filename=\"%22%0d%0A%25\"\r\n\r\n\r\n--B--", "[x|\"\r\n%25].", 1},
    {"--B\r\n" DISPOSITION "name=x; filename=\"a\\\"b\\\\c\\d\"\r\n\r\n\r\n--B--", "[x|a\"b\\c\\d].", 1},
    {"--B\r\n" DISPOSITION "name=x; filename=\"\"\r\n\r\n\r\n--B--",         "[x|].", 1},
    {"--B\r\n" DISPOSITION "name=x\r\n\r\nunfinished",                       "[x|-]unfinished", 0},
    {"--B\r\n" DISPOSITION "na",                                             "", 0},
    {"no boundary at all",                                                   "", 0},
    {"",                                                                     "", 0},
    {"--Bx",                                                                 "", -1},
    {"--B\n",                                                                "", -1},
    {"--B-x",                                                                "", -1},
    {"--B\r\n\r\n",                                                          "", -1},
    {"--B\r\nContent-Type: a/b\r\n\r\n",                                     "", -1},
    {"--B\r\nno colon\r\n\r\n",                                              "", -1},
    {"--B\r\n" DISPOSITION "filename=x\r\n\r\n",                             "", -1},
    {"--B\r\n" DISPOSITION "name=x; name=y\r\n\r\n",                         "", -1},
    {"--B\r\n" DISPOSITION "name=\"x\r\n\r\n",                               "", -1},
    {"--B\r\n" DISPOSITION "name=x\r\n" DISPOSITION "name=x\r\n\r\n",        "", -1},
    {"--B\r\nContent-Disposition: attachment; name=x\r\n\r\n",               "", -1},
    {"--B\r\n" DISPOSITION "name=x\r\n folded\r\n\r\n",                      "", -1},
    {"--B\r\n" DISPOSITION "name=x\nA: b\r\n\r\n",                           "", -1},
    {"--B\r\n" DISPOSITION "name=\x01\r\n\r\n",                              "", -1},
    {"--B\r\n" DISPOSITION "name=x\r\n\r\n\r\n--Bx",                         "[x|-].", -1},
};
/* clang-format on */

TEST(a_body_is_parsed_the_same_for_any_cuts)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int r = judge(cases[i].text);

        if (r != cases[i].end || strcmp(buf_cstr(&said), cases[i].said) != 0)
            fail_msg("case %zu: %d \"%s\"", i, r, buf_cstr(&said));
    }
}

/* clang-format off */
static const struct {
    const char *type;
    int r;
} types[] = {
    {"multipart/form-data; boundary=B", 1},
    {"Multipart/Form-Data;boundary=\"B\"; charset=utf-8", 1},
    {"multipart/form-data ; BOUNDARY=B ", 1},
    {"multipart/form-data", -1},
    {"multipart/form-data; boundary=", -1},
    {"multipart/form-data; boundary=\"\"", -1},
    {"multipart/form-data; boundary=\"B", -1},
    {"multipart/form-data; boundary=B; boundary=B", -1},
    {"multipart/form-data, boundary=B", -1},
    {"multipart/mixed; boundary=B", -1},
    {"application/octet-stream", -1},
    {"multipart/form-data; boundary=" /* 71 */
     "00000000001111111111222222222233333333334444444444555555555566666666667", -1},
};
/* clang-format on */

TEST(a_type_without_a_boundary_is_refused)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (take_apart(types[i].type, "--B--", 5, 5) != types[i].r)
            fail_msg("%s", types[i].type);
    CHECK_INT(take_apart(NULL, "--B--", 5, 5), -1);
}

static int with_filename(size_t len)
{
    autobuf struct buf body = BUF_INIT(1u << 20);

    buf_adds(&body, "--B\r\n" DISPOSITION "name=x; filename=\"");
    for (size_t i = 0; i < len; i++)
        buf_addc(&body, 'a');
    buf_adds(&body, "\"\r\n\r\n\r\n--B--");
    return take_apart(TYPE, buf_data(&body), body.len, body.len);
}

TEST(a_filename_has_a_limit)
{
    CHECK_INT(with_filename(MULTIPART_FILENAME_MAX), 1);
    CHECK_INT(with_filename(MULTIPART_FILENAME_MAX + 1), -1);
}

TEST(the_head_of_a_part_has_a_limit)
{
    autobuf struct buf body = BUF_INIT(1u << 20);

    buf_adds(&body, "--B\r\nA: ");
    for (size_t i = 0; i < MULTIPART_HEAD_MAX; i++)
        buf_addc(&body, 'a');
    CHECK_INT(take_apart(TYPE, buf_data(&body), body.len, 1000), -1);
    CHECK_HAS(f.why, "too long");
}

TEST(a_nul_in_a_head_is_refused)
{
    static const char body[] = "--B\r\n" DISPOSITION "name=x\0y\r\n\r\n";

    CHECK_INT(take_apart(TYPE, body, sizeof(body) - 1, 3), -1);
}
