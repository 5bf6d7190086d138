/* transfer.c - see transfer.h. */
#include "front/plane/transfer.h"

#include "base/own.h"
#include "base/str.h"
#include "front/plane/surface.h"

#define NAME_SHOWN 255u

/* ---- read ---- */

static void cancel_file(void *handle)
{
    file_cancel(handle);
}

static void pause_file(void *handle, bool paused)
{
    file_pause(handle, paused);
}

const struct call_source file_source = {.take_back = cancel_file, .pause = pause_file};

struct reading {
    struct call *c;
    enum download_as as;
    char name[ENGINE_PATH_MAX + 1];
};

static void read_content(void *arg, const struct file_content *f)
{
    struct reading *r = arg;

    if (f->entry != NULL) {
        call_told(r->c);
        download_reply(r->c, f, r->name, r->as);
    } else if (r->c->r != NULL) {
        download_stream_headers(r->c, r->name, r->as);
        call_begin_bytes(r->c, download_type(r->name));
    }
}

static void read_data(void *arg, const char *p, size_t n)
{
    struct reading *r = arg;

    call_write(r->c, p, n);
}

static void read_done(void *arg, const struct err *e)
{
    struct reading *r = arg;

    if (!call_told(r->c))
        return;
    if (e != NULL)
        call_fail(r->c, e);
    else
        call_end(r->c);
}

void transfer_read(struct call *c, const struct file_at *at, const char *name, enum download_as as)
{
    static const struct file_read_ops ops = {
        .on_content = read_content, .on_data = read_data, .on_done = read_done};
    struct reading *r = call_state(c, sizeof(*r), NULL);

    r->c = c;
    r->as = as;
    str_fmt(r->name, sizeof(r->name), "%.*s", (int)ENGINE_PATH_MAX, name);
    call_expect(c, &file_source, file_read(at, &ops, r));
}

/* ---- write ---- */

struct writing {
    struct call *c;
    void (*done)(struct call *c, const struct file_info *f);
    bool paused;
};

static void cancel_write(void *handle)
{
    file_write_cancel(handle);
}

static const struct call_source call_write_file = {.take_back = cancel_write};

static void written(void *arg, const struct file_info *f, const struct err *e)
{
    struct writing *w = arg;

    if (!call_told(w->c))
        return;
    if (e != NULL)
        call_fail(w->c, e);
    else
        w->done(w->c, f);
}

static void write_drain(void *arg)
{
    struct writing *w = arg;

    if (w->c->r != NULL && w->paused)
        http_body_pause(w->c->r, w->paused = false);
}

static void write_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct writing *w = arg;

    if (w->c->source == &call_write_file && file_feed(w->c->handle, p, n, false) > FILE_FEED_HIGH)
        http_body_pause(r, w->paused = true);
}

static void write_end(struct http_req *r, void *arg)
{
    struct writing *w = arg;

    (void)r;
    if (w->c->source == &call_write_file)
        file_feed(w->c->handle, NULL, 0, true);
}

void transfer_write(struct call *c, const struct file_at *at, const struct file_write_opts *o,
                    void (*done)(struct call *c, const struct file_info *f))
{
    static const struct file_write_ops ops = {.on_drain = write_drain, .on_done = written};
    struct writing *w = call_state(c, sizeof(*w), NULL);

    w->c = c;
    w->done = done;
    call_expect(c, &call_write_file, file_write(at, o, &ops, w));
    http_body_stream(c->r, write_data, write_end, w);
}

/* ---- a directory, out ---- */

static void close_work(void *handle)
{
    work_close(handle);
}

static void pause_work(void *handle, bool paused)
{
    work_pause(handle, paused);
}

static const struct call_source call_work = {close_work, pause_work};

struct packing {
    struct call *c;
    enum archive_format format;
    char name[NAME_SHOWN + 1]; /* "": nothing is said of it */
};

static void pack_data(void *arg, const char *p, size_t n)
{
    struct packing *g = arg;

    if (g->c->r == NULL)
        return;
    if (!g->c->streaming) {
        char value[sizeof(g->name) + 32];

        if (*g->name != '\0') {
            str_fmt(value, sizeof(value), "attachment; filename=\"%s\"", g->name);
            http_reply_header(g->c->r, "Content-Disposition", value);
        }
        call_begin_bytes(g->c, archive_format_type(g->format));
    }
    call_write(g->c, p, n);
}

static void pack_done(void *arg, const struct err *e)
{
    struct packing *g = arg;
    struct err none;

    if (!call_told(g->c))
        return;
    if (e == NULL && !g->c->streaming)
        e = (err_set(&none, ERR_INTERNAL, "cove-helper sent nothing"), &none);
    if (e != NULL)
        call_fail(g->c, e);
    else
        call_end(g->c);
}

void transfer_pack(struct call *c, const struct archive_pack_opts *o, const char *name)
{
    static const struct work_ops ops = {.on_data = pack_data, .on_done = pack_done};
    struct packing *g = call_state(c, sizeof(*g), NULL);

    g->c = c;
    g->format = o->format;
    if (name != NULL)
        str_fmt(g->name, sizeof(g->name), "%.*s", (int)NAME_SHOWN, name);
    call_expect(c, &call_work, archive_pack(c->ref, o, &ops, g));
}

/* ---- and in ---- */

struct unpacking {
    struct call *c;
    void (*done)(struct call *c, const struct archive_result *r);
    bool reading; /* the body was asked for */
    struct buf line;
};

static void unpack_drop(void *state)
{
    buf_free(&((struct unpacking *)state)->line);
}

static void unpack_said(void *arg, const char *p, size_t n)
{
    buf_add(&((struct unpacking *)arg)->line, p, n);
}

static void unpack_done(void *arg, const struct err *e)
{
    struct unpacking *u = arg;
    struct archive_result got;
    struct err bad;

    if (!call_told(u->c))
        return;
    if (e == NULL && archive_result(buf_cstr(&u->line), u->line.len, &got, &bad) < 0)
        e = &bad;
    if (e != NULL)
        call_fail(u->c, e);
    else
        u->done(u->c, &got);
}

static void body_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct unpacking *u = arg;

    if (u->c->source == &call_work && work_feed(u->c->handle, p, n, false) > PROCESS_FEED_HIGH)
        http_body_pause(r, true);
}

static void body_end(struct http_req *r, void *arg)
{
    struct unpacking *u = arg;

    (void)r;
    if (u->c->source == &call_work)
        work_feed(u->c->handle, NULL, 0, true);
}

/* The body is asked for when the helper runs: a client that waits for 100 Continue
 * has sent nothing to a sandbox that is not there. */
static void unpack_drain(void *arg)
{
    struct unpacking *u = arg;

    if (u->c->r == NULL)
        return;
    if (u->reading)
        http_body_pause(u->c->r, false);
    else
        http_body_stream(u->c->r, body_data, body_end, u);
    u->reading = true;
}

void transfer_unpack(struct call *c, const struct archive_unpack_opts *o,
                     void (*done)(struct call *c, const struct archive_result *r))
{
    static const struct work_ops ops = {
        .on_data = unpack_said, .on_drain = unpack_drain, .on_done = unpack_done};
    struct unpacking *u = call_state(c, sizeof(*u), unpack_drop);

    u->c = c;
    u->done = done;
    buf_init(&u->line, ARCHIVE_RESULT_MAX);
    call_expect(c, &call_work, archive_unpack(c->ref, o, &ops, u));
}
