/* upload.c - POST /files: a body into one file, or a form into several.
 *
 * Only the current piece is held: files go to the engine one after the other, and while one is being
 * finished the client waits. A file appears whole or not at all; if a form breaks off, the files
 * before stay. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/entry.h"
#include "front/planes/e2b/files.h"
#include "front/planes/e2b/metadata.h"
#include "http/multipart.h"
#include "mem/mem.h"
#include "json/write.h"

#define UPLOAD_PARTS_MAX 10000u       /* of one form */
#define UPLOAD_PENDING_MAX (4u << 20) /* one piece of a body, and a little */
#define UPLOAD_ANSWER_MAX (16u << 20)

struct seen { /* a path of this form */
    struct map_node node;
    struct seen *next;
    char path[];
};

struct upload {
    struct call *c;
    struct multipart *form; /* NULL: the body is the file */
    struct file_write *write;
    bool closing;      /* all of it was given, and it is not yet there */
    bool full;         /* the engine has enough for now */
    bool ended, over;  /* the body; the form in it */
    bool named, fixed; /* a user; a path for whatever comes */
    struct buf pending, answers;
    struct map seen;
    struct seen *paths;
    size_t parts;
    struct metadata metadata;
    struct file_write_opts opts;
    char path[E2B_PATH_MAX + 1], user[E2B_USER_MAX + 1];
};

static void drop(void *state)
{
    struct upload *u = state;

    while (u->paths != NULL) {
        struct seen *s = u->paths;

        u->paths = s->next;
        free(s);
    }
    map_free(&u->seen);
    metadata_free(&u->metadata);
    buf_free(&u->pending);
    buf_free(&u->answers);
    free(u->form);
}

static void cancel(void *handle)
{
    struct upload *u = handle;

    file_write_cancel(take_ptr(&u->write));
}

static const struct call_source source = {.take_back = cancel};

static void refuse(struct upload *u, enum err_kind kind, const char *why)
{
    struct err e;

    err_set(&e, kind, "%s", why);
    call_fail(u->c, &e);
}

/* ---- one file ---- */

static void pump(struct upload *u);

static void written(void *arg, const struct file_info *f, const struct err *e)
{
    struct upload *u = arg;
    char path[E2B_PATH_MAX + 1];
    struct json_w w;

    u->write = NULL;
    u->closing = u->full = false;
    if (!call_told(u->c))
        return;
    if (e != NULL) {
        call_fail(u->c, e);
        return;
    }
    e2b_clean(u->path[0] == '/' ? u->path : f->path, path);
    buf_addc(&u->answers, u->answers.len == 0 ? '[' : ',');
    jw_init(&w, &u->answers);
    jw_open(&w);
    jw_kstr(&w, "path", path);
    jw_kstr(&w, "name", entry_name(path));
    jw_kstr(&w, "type", "file");
    metadata_write(&w, &u->metadata);
    jw_close(&w);
    if (u->answers.failed)
        refuse(u, ERR_TOO_LARGE, "the names in this form are too long together; they are written");
    else
        pump(u);
}

static void drained(void *arg)
{
    struct upload *u = arg;

    u->full = false;
    pump(u);
}

static void begin(struct upload *u)
{
    static const struct file_write_ops ops = {.on_drain = drained, .on_done = written};
    struct file_at at = e2b_at(u->c, u->path, u->named ? u->user : NULL);

    u->write = file_write(&at, &u->opts, &ops, u);
    call_expect(u->c, &source, u);
}

static void feed(struct upload *u, const char *p, size_t n, bool last)
{
    if (u->write == NULL)
        return;
    u->closing = last;
    u->full = file_feed(u->write, p, n, last) > FILE_FEED_HIGH;
}

/* ---- a form ---- */

static int remember(struct upload *u, struct err *e)
{
    struct seen *s;

    if (map_get(&u->seen, u->path) != NULL)
        return err_set(e, ERR_INVALID, "%.200s: you cannot upload multiple files to the same path",
                       u->path);
    s = mem_zeroed(1, sizeof(*s) + strlen(u->path) + 1);
    strcpy(s->path, u->path);
    s->next = u->paths;
    u->paths = s;
    mem_put(&u->seen, &s->node, s->path);
    return 0;
}

/* Other parts than files mean nothing. */
static void begin_part(struct upload *u)
{
    struct err e;

    if (u->parts++ == UPLOAD_PARTS_MAX) {
        refuse(u, ERR_INVALID, "a form has too many parts");
        return;
    }
    if (strcmp(u->form->name, "file") != 0)
        return;
    if (!u->fixed && (!u->form->has_filename || u->form->filename[0] == '\0')) {
        refuse(u, ERR_INVALID, "a part without a filename, and no path in the query");
        return;
    }
    if ((!u->fixed && e2b_path(u->form->filename, u->path, &e) < 0) || remember(u, &e) < 0)
        call_fail(u->c, &e);
    else
        begin(u);
}

static void take_form(struct upload *u)
{
    struct http_str data;
    struct http_fault f;
    size_t used;

    switch (multipart_next(u->form, buf_data(&u->pending), u->pending.len, &used, &data, &f)) {
    case MULTIPART_PART:
        begin_part(u);
        break;
    case MULTIPART_DATA:
        feed(u, data.p, data.len, false);
        break;
    case MULTIPART_PART_END:
        feed(u, NULL, 0, true);
        break;
    case MULTIPART_END:
        u->over = true;
        break;
    case MULTIPART_BAD:
        refuse(u, ERR_INVALID, f.why);
        break;
    default:
        break;
    }
    buf_consume(&u->pending, used);
}

/* ---- the body ---- */

static void take_raw(struct upload *u)
{
    feed(u, buf_data(&u->pending), u->pending.len, false);
    buf_clear(&u->pending);
}

static void finish(struct upload *u)
{
    if (u->form == NULL && u->write != NULL) {
        feed(u, NULL, 0, true);
        return;
    }
    if (u->form != NULL && !u->over) {
        refuse(u, ERR_INVALID, "multipart: the body ended early");
        return;
    }
    buf_adds(&u->answers, u->answers.len == 0 ? "[]" : "]");
    call_reply(u->c, 200, "application/json", &u->answers);
}

/* Goes on as far as it can. */
static void pump(struct upload *u)
{
    while (u->c->r != NULL && !u->closing && u->pending.len > 0)
        (u->form != NULL ? take_form : take_raw)(u);
    if (u->c->r != NULL && u->ended && !u->closing)
        finish(u);
    if (u->c->r != NULL && !u->ended)
        http_body_pause(u->c->r, u->closing || u->full);
}

static void body_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct upload *u = arg;

    (void)r;
    if (buf_add(&u->pending, p, n) < 0)
        refuse(u, ERR_INTERNAL, "out of memory");
    else
        pump(u);
}

static void body_end(struct http_req *r, void *arg)
{
    struct upload *u = arg;

    (void)r;
    u->ended = true;
    pump(u);
}

/* ---- the request ---- */

static bool is_type(const char *type, const char *want)
{
    size_t n = strcspn(type, "; \t");

    return n == strlen(want) && strncasecmp(type, want, n) == 0;
}

static int read_form(struct upload *u, const char *type, struct err *e)
{
    struct http_fault f;

    if (u->opts.gzip)
        return err_set(e, ERR_INVALID, "Content-Encoding: not supported for forms");
    u->form = mem_zeroed(1, sizeof(*u->form));
    return multipart_init(u->form, type, &f) < 0 ? err_set(e, ERR_INVALID, "%s", f.why) : 0;
}

static int read_headers(struct upload *u, const struct files_in *in, struct err *e)
{
    const char *coding = http_header(u->c->r, "Content-Encoding");
    const char *type = http_header(u->c->r, "Content-Type");

    u->opts = (struct file_write_opts){.mode = FILE_MODE_KEEP, .parents = true};
    u->opts.gzip = coding != NULL && strcasecmp(coding, "gzip") == 0;
    if (coding != NULL && !u->opts.gzip && strcasecmp(coding, "identity") != 0)
        return err_set(e, ERR_INVALID, "Content-Encoding: unsupported: %.60s", coding);
    if (metadata_read(&u->metadata, u->c->r, e) < 0)
        return -1;
    u->opts.xattr_prefix = ENTRY_XATTR;
    u->opts.xattrs = buf_cstr(&u->metadata.lines);
    if (type != NULL && is_type(type, "multipart/form-data"))
        return read_form(u, type, e);
    if (type == NULL || !is_type(type, "application/octet-stream"))
        return err_set(e, ERR_INVALID,
                       "Content-Type: expected multipart/form-data or application/octet-stream");
    return in->path == NULL || *in->path == '\0'
               ? err_set(e, ERR_INVALID, "path: required with application/octet-stream")
               : 0;
}

static int prepare(struct upload *u, const struct files_in *in, struct err *e)
{
    const char *user = files_user(in);

    u->named = user != NULL;
    if (u->named)
        strcpy(u->user, user);
    u->fixed = in->path != NULL && *in->path != '\0';
    if (files_check(u->c, in, "write", e) < 0 || read_headers(u, in, e) < 0)
        return -1;
    return u->fixed ? e2b_path(in->path, u->path, e) : 0;
}

void files_post(struct call *c, const void *in)
{
    struct upload *u = call_state(c, sizeof(*u), drop);
    struct err e;

    u->c = c;
    map_init(&u->seen);
    buf_init(&u->pending, UPLOAD_PENDING_MAX);
    buf_init(&u->answers, UPLOAD_ANSWER_MAX);
    if (prepare(u, in, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (u->form == NULL)
        begin(u);
    http_body_stream(c->r, body_data, body_end, u);
}
