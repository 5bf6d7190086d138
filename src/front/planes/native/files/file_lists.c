/* file_lists.c - lists a directory, and searches a tree.
 *
 * Both may be long, so JSON is sent as records come in, and a slow client slows the work inside:
 * nothing is collected here. A failure after the first record cuts
 * the connection (an `error` event on a stream of events). */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/files/file.h"
#include "json/write.h"

#define LIST_LIMIT 1000u
#define LIST_LIMIT_MAX 100000u
#define SEARCH_LIMIT 1000u
#define SEARCH_LIMIT_MAX 100000u
#define SEARCH_SECONDS 60u
#define SEARCH_SECONDS_MAX 600u
#define CURSOR_MAX (2 * ENGINE_PATH_MAX)
#define RECORD_MAX (64u << 10) /* of JSON */
#define GATHER (16u << 10)     /* before it is written */

struct records {
    struct call *c;
    const char *head; /* what the document begins with */
    struct buf out;
    bool begun, any;
};

static void drop(void *state)
{
    buf_free(&((struct records *)state)->out);
}

static struct records *records_new(struct call *c, const char *head)
{
    struct records *r = call_state(c, sizeof(*r), drop);

    r->c = c;
    r->head = head;
    buf_init(&r->out, RECORD_MAX + GATHER);
    return r;
}

static void flush(struct records *r)
{
    if (r->out.len > 0)
        call_write(r->c, buf_data(&r->out), r->out.len);
    buf_clear(&r->out);
}

static void begin(struct records *r)
{
    if (r->begun)
        return;
    r->begun = true;
    if (call_accept(r->c) == CALL_SSE) {
        call_begin(r->c, CALL_SSE);
        return;
    }
    call_begin_bytes(r->c, "application/json");
    buf_adds(&r->out, r->head);
}

static void put(struct records *r, const char *event, const struct shape *shape, const void *from)
{
    struct json_w w;

    if (r->c->r == NULL)
        return;
    begin(r);
    if (r->c->events) {
        call_event_shape(r->c, NULL, event, shape, from);
        return;
    }
    if (r->any)
        buf_addc(&r->out, ',');
    r->any = true;
    jw_init(&w, &r->out);
    shape_write(&w, shape, from);
    if (r->out.len >= GATHER)
        flush(r);
}

/* The rest of the document: `tail` after the list. */
static void finish(struct records *r, const struct shape *shape, const void *tail)
{
    if (r->c->r == NULL)
        return;
    begin(r);
    if (r->c->events) {
        call_event_shape(r->c, NULL, "done", shape, tail);
    } else {
        autobuf struct buf text = BUF_INIT(RECORD_MAX);
        struct json_w w;

        jw_init(&w, &text);
        shape_write(&w, shape, tail);
        buf_addf(&r->out, "],%s", buf_cstr(&text) + 1); /* its fields, without the brace */
        flush(r);
    }
    call_end(r->c);
}

static void got_entry(void *arg, const struct file_info *f)
{
    struct file_view v;

    file_view(&v, f);
    put(arg, "file", &file_shape, &v);
}

/* ---- list ---- */

struct list_in {
    struct file_in at;
    uint64_t depth, limit;
    bool hidden, reverse;
    const char *sort, *after;
};
/* clang-format off */
static const struct json_field list_fields[] = {
    FILE_PATH_FIELD(struct list_in, "Directory."),
    FILE_USER_FIELD(struct list_in),
    {"depth", JSON_FIELD_U64, offsetof(struct list_in, depth), 1, 400, false, "Levels to descend. Default: 1, the directory only."},
    {"hidden", JSON_FIELD_BOOL, offsetof(struct list_in, hidden), 0, 0, false, "Include names that begin with a dot. Default: true."},
    {"sort", JSON_FIELD_STR, offsetof(struct list_in, sort), 1, 16, false, "name (default: each directory before its contents), size or modified."},
    {"reverse", JSON_FIELD_BOOL, offsetof(struct list_in, reverse), 0, 0, false, "Largest or newest first. Only with sort size or modified."},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, LIST_LIMIT_MAX, false, "Maximum number of entries. Default: 1000."},
    {"after", JSON_FIELD_STR, offsetof(struct list_in, after), 1, CURSOR_MAX, false, "`next` of the previous page."},
};

struct list_tail {
    const char *next;
};
static const struct shape_field list_tail_fields[] = {
    {"next", SHAPE_STR, offsetof(struct list_tail, next), "Pass it as `after` to get the next page; null on the last page.", SHAPE_NULLABLE},
};
static SHAPE(list_tail_shape, "FileListEnd", "The last event of a list of files.", list_tail_fields);
struct list_view {
    struct shape_bytes files;
    const char *next;
};
static const struct shape_field list_view_fields[] = {
    {"files", SHAPE_LIST, offsetof(struct list_view, files), "Entries.", SHAPE_ALWAYS, &file_shape},
    {"next", SHAPE_STR, offsetof(struct list_view, next), "Pass it as `after` to get the next page; null on the last page.", SHAPE_NULLABLE},
};
static SHAPE(list_shape, "FileList", "Files of a directory or tree.", list_view_fields);
/* clang-format on */

static void list_defaults(void *in, const struct config *config)
{
    struct list_in *l = in;

    (void)config;
    l->depth = 1;
    l->limit = LIST_LIMIT;
    l->hidden = true;
}

static const struct surface_input list_input = {SURFACE_INPUT(list_fields, struct list_in),
                                                .defaults = list_defaults};

static void listed(void *arg, const struct file_result *d, const struct err *e)
{
    struct records *r = arg;
    autobuf struct buf next = BUF_INIT(CURSOR_MAX);
    struct list_tail tail = {0};

    if (!call_told(r->c))
        return;
    if (e != NULL) {
        call_fail(r->c, e);
        return;
    }
    if (d->more) {
        str_base64(&next, d->after, strlen(d->after));
        tail.next = buf_cstr(&next);
    }
    finish(r, &list_tail_shape, &tail);
}

static const struct file_work_ops list_ops = {.on_entry = got_entry, .on_done = listed};

static int parse_sort(const char *text, enum file_sort *ret, struct err *e)
{
    static const char *const names[] = {"name", "size", "modified"};

    *ret = FILE_SORT_NAME;
    for (size_t i = 0; text != NULL && i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], text) == 0) {
            *ret = (enum file_sort)i;
            return 0;
        }
    }
    return text == NULL ? 0 : err_set(e, ERR_INVALID, "sort: expected name, size or modified");
}

static int parse_cursor(struct buf *out, const char *text, struct err *e)
{
    if (text == NULL)
        return 0;
    if (str_unbase64(out, text, strlen(text)) < 0 || out->len > FILE_CURSOR_MAX ||
        memchr(buf_data(out), '\0', out->len) != NULL)
        return err_set(e, ERR_INVALID, "after: expected `after` of the previous page");
    return 0;
}

static void on_list(struct call *c, const void *input)
{
    const struct list_in *in = input;
    autobuf struct buf after = BUF_INIT(CURSOR_MAX);
    struct file_list_opts o = {.depth = (unsigned)in->depth,
                               .hidden = in->hidden,
                               .reverse = in->reverse,
                               .limit = in->limit};
    struct file_at at = file_at_of(c, &in->at);
    struct records *r;
    struct err e;

    if (parse_sort(in->sort, &o.sort, &e) < 0 || parse_cursor(&after, in->after, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (o.reverse && o.sort == FILE_SORT_NAME) {
        err_set(&e, ERR_INVALID, "reverse: only with sort size or modified");
        call_fail(c, &e);
        return;
    }
    if (in->after != NULL)
        o.after = buf_cstr(&after);
    r = records_new(c, "{\"files\":[");
    if (r != NULL)
        call_expect(c, &file_source, file_list(&at, &o, &list_ops, r));
}

/* ---- search ---- */

struct search_in {
    struct file_in at;
    const char *name, *text, *regex;
    bool ignore_case, hidden;
    uint64_t depth, context, limit, timeout;
};
/* clang-format off */
static const struct json_field search_fields[] = {
    FILE_PATH_FIELD(struct search_in, "Directory to search."),
    FILE_USER_FIELD(struct search_in),
    {"name", JSON_FIELD_PATH, offsetof(struct search_in, name), 1, 1024, false, "Glob for names (*.c) or, with a slash, for paths relative to the directory (src/**/*.c)."},
    {"text", JSON_FIELD_PATH, offsetof(struct search_in, text), 1, 4096, false, "Find lines that contain this text."},
    {"regex", JSON_FIELD_PATH, offsetof(struct search_in, regex), 1, 4096, false, "Find lines that match this POSIX extended regular expression."},
    {"ignore_case", JSON_FIELD_BOOL, offsetof(struct search_in, ignore_case), 0, 0, false, "Ignore case in text or regex."},
    {"hidden", JSON_FIELD_BOOL, offsetof(struct search_in, hidden), 0, 0, false, "Include names that begin with a dot."},
    {"depth", JSON_FIELD_U64, offsetof(struct search_in, depth), 0, 400, false, "Levels to descend. Default: 0, no limit."},
    {"context", JSON_FIELD_U64, offsetof(struct search_in, context), 0, 10, false, "Lines to show before and after each match."},
    {"limit", JSON_FIELD_U64, offsetof(struct search_in, limit), 1, SEARCH_LIMIT_MAX, false, "Maximum number of matches. Default: 1000."},
    {"timeout", JSON_FIELD_U64, offsetof(struct search_in, timeout), 1, SEARCH_SECONDS_MAX, false, "Time limit in seconds. Default: 60."},
};

struct line_view {
    struct shape_bytes path, text;
    const char *kind;
    uint64_t line, column;
    bool cut;
};
static const struct shape_field line_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct line_view, path), "Path of the file."},
    {"line", SHAPE_U64, offsetof(struct line_view, line), "Line number, from 1."},
    {"kind", SHAPE_STR, offsetof(struct line_view, kind), "match, or before or after for context lines."},
    {"column", SHAPE_U64, offsetof(struct line_view, column), "Column of the first byte of a match, from 1.", SHAPE_OMITTED},
    {"text", SHAPE_BYTES, offsetof(struct line_view, text), "Text of the line, without its newline."},
    {"cut", SHAPE_BOOL, offsetof(struct line_view, cut), "The text was truncated.", SHAPE_OMITTED},
};
static SHAPE(line_shape, "FileLine", "A line that matched, or a context line.", line_fields);

struct search_tail {
    uint64_t count;
    bool truncated;
};
static const struct shape_field search_tail_fields[] = {
    {"count", SHAPE_U64, offsetof(struct search_tail, count), "Number of matches."},
    {"truncated", SHAPE_BOOL, offsetof(struct search_tail, truncated), "The limit was reached; there are more matches."},
};
static SHAPE(search_tail_shape, "FileSearchEnd", "The last event of a search.", search_tail_fields);
struct search_view {
    struct shape_bytes files, lines;
    uint64_t count;
    bool truncated;
};
static const struct shape_field found_fields[] = {
    {"files", SHAPE_LIST, offsetof(struct search_view, files), "Files whose name matches.", SHAPE_ALWAYS, &file_shape},
    {"count", SHAPE_U64, offsetof(struct search_view, count), "Number of matches."},
    {"truncated", SHAPE_BOOL, offsetof(struct search_view, truncated), "The limit was reached; there are more matches."},
};
static SHAPE(found_shape, "FilesFound", "Result of a search by name.", found_fields);
static const struct shape_field lines_fields[] = {
    {"lines", SHAPE_LIST, offsetof(struct search_view, lines), "Lines that match, in directory order.", SHAPE_ALWAYS, &line_shape},
    {"count", SHAPE_U64, offsetof(struct search_view, count), "Number of matches."},
    {"truncated", SHAPE_BOOL, offsetof(struct search_view, truncated), "The limit was reached; there are more matches."},
};
static SHAPE(lines_shape, "LinesFound", "Result of a search by content.", lines_fields);
/* clang-format on */

static void search_defaults(void *in, const struct config *config)
{
    struct search_in *s = in;

    (void)config;
    s->limit = SEARCH_LIMIT;
    s->timeout = SEARCH_SECONDS;
}

static const struct surface_input search_input = {SURFACE_INPUT(search_fields, struct search_in),
                                                  .defaults = search_defaults};

static void got_line(void *arg, const struct file_match *l)
{
    static const char *const kinds[] = {"before", "match", "after"};
    struct line_view v = {.path = {l->path, strlen(l->path)},
                          .text = {l->text.p, l->text.len},
                          .kind = kinds[l->kind],
                          .line = l->line,
                          .column = l->column,
                          .cut = l->cut != 0};

    put(arg, "line", &line_shape, &v);
}

static void searched(void *arg, const struct file_result *d, const struct err *e)
{
    struct records *r = arg;
    struct search_tail tail = {0};

    if (!call_told(r->c))
        return;
    if (e != NULL) {
        call_fail(r->c, e);
        return;
    }
    tail.count = d->count;
    tail.truncated = d->more != 0;
    finish(r, &search_tail_shape, &tail);
}

static const struct file_work_ops name_ops = {.on_entry = got_entry, .on_done = searched};
static const struct file_work_ops line_ops = {.on_line = got_line, .on_done = searched};

static void on_search(struct call *c, const void *input)
{
    const struct search_in *in = input;
    bool lines = in->text != NULL || in->regex != NULL;
    struct file_search_opts o = {.name = in->name,
                                 .text = in->text,
                                 .regex = in->regex,
                                 .nocase = in->ignore_case,
                                 .hidden = in->hidden,
                                 .depth = (unsigned)in->depth,
                                 .context = (unsigned)in->context,
                                 .timeout_s = (unsigned)in->timeout,
                                 .limit = in->limit};
    struct file_at at = file_at_of(c, &in->at);
    struct records *r;
    struct err e;

    if ((in->text != NULL && in->regex != NULL) || (!lines && in->name == NULL)) {
        err_set(&e, ERR_INVALID,
                "name, text or regex is required, and at most one of text and regex is allowed");
        call_fail(c, &e);
        return;
    }
    http_eof_is_gone(c->r); /* a search may be silent for long; end it if the client leaves */
    r = records_new(c, lines ? "{\"lines\":[" : "{\"files\":[");
    if (r != NULL)
        call_expect(c, &file_source, file_search(&at, &o, lines ? &line_ops : &name_ops, r));
}

/* clang-format off */
const struct surface_row surface_file_lists[] = {
    {{"GET", "/v1/sandboxes/{id}/files/list"}, SCOPE_READ, on_list, "listFiles",
     "Lists a directory or, with depth, a tree. Unreadable directories are skipped.",
     .query = &list_input, .status = 200, .answers = {&list_shape},
     .events = "file (File); at last done (FileListEnd) or error (Error)",
     .event_shapes = {&list_tail_shape}},
    {{"POST", "/v1/sandboxes/{id}/files/search"}, SCOPE_READ, on_search, "searchFiles",
     "Searches a tree by name, by content, or both. Binary files, other filesystems and unreadable files are skipped. The search ends when the client disconnects.",
     .query = &search_input, .status = 200, .answers = {&found_shape, &lines_shape},
     .events = "file (File) or line (FileLine); at last done (FileSearchEnd) or error (Error)",
     .event_shapes = {&search_tail_shape}},
    {.op = NULL},
};
/* clang-format on */
