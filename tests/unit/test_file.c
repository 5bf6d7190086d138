/* Files, with an init and a helper that the test plays, and that lie when it suits. */
#include "engine_rig.h"

#include "front/engine/file.h"
#include "wire/file.h"

struct scene {
    struct rig r;
    int listen;
    struct peer monitor, p;
    struct told t;
    char path[64], data[64];
    uint64_t size, entries, lines;
    struct file_call *call;
    bool cancel; /* in the callback */
};

static void scene_open(struct scene *s)
{
    *s = (struct scene){0};
    rig_new(&s->r);
    rig_join(&s->r, rig_start(&s->r));
    rig_create(&s->r, "sb1", 0, SANDBOX_END_DELETE, &s->listen, &s->monitor);
    s->p.fd = -1;
}

static void scene_close(struct scene *s)
{
    rig_settle(&s->r);
    if (s->p.fd >= 0)
        peer_close(&s->p);
    peer_close(&s->monitor);
    close(s->listen);
    rig_free(&s->r);
}

/* The next conversation; requests that follow come on the same connection. */
static void scene_accept(struct scene *s)
{
    if (s->p.fd >= 0)
        return;
    s->p = init_accept(&s->r, s->listen);
    init_hello_to(&s->p);
}

static uint32_t scene_hear(struct scene *s, uint16_t type, union rig_msg *m)
{
    scene_accept(s);
    return init_hear(&s->r, &s->p, type, m);
}

static struct file_at at(const char *path, const char *user)
{
    return (struct file_at){.ref = {.key = KEY, .id = "sb1"}, .path = path, .user = user};
}

static const struct file_at *in(struct scene *s, struct file_at *a)
{
    a->ref.engine = s->r.g;
    return a;
}

static void on_entry(void *arg, const struct file_info *f, const struct err *e)
{
    struct scene *s = arg;

    told_err(&s->t, e);
    if (f != NULL) {
        snprintf(s->path, sizeof(s->path), "%s", f->path);
        s->size = f->size;
    }
}

static struct init_file a_file(const char *path, uint64_t size)
{
    return (struct init_file){.path = path, .mode = 0100644, .size = size, .ino = 7};
}

TEST(a_path_is_made_absolute_and_the_user_is_the_sandboxs)
{
    static const struct {
        const char *given, *user, *path, *as;
    } cases[] = {{"/a", NULL, "/a", "user"},
                 {"a/b", NULL, "/workspace/a/b", "user"},
                 {"~", "root", "~", "root"},
                 {"~/x", "7:8", "~/x", "7:8"},
                 {"~x", NULL, "/workspace/~x", "user"}};
    struct scene s;
    union rig_msg m;

    scene_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct file_at a = at(cases[i].given, cases[i].user);
        struct init_file f = a_file("/a", 3);
        uint32_t seq;

        s.t.n = 0;
        file_stat(in(&s, &a), false, on_entry, &s);
        seq = scene_hear(&s, INIT_LOOK, &m);
        CHECK_STR(m.init_look.path, cases[i].path);
        CHECK_STR(m.init_look.user, cases[i].as);
        init_say(&s.p, INIT_FILE, seq, &f);
        RIG_UNTIL(&s.r, s.t.n == 1);
        CHECK_INT(s.t.failed, 0);
        CHECK_INT(s.size, 3);
    }
    scene_close(&s);
}

TEST(an_invalid_path_is_refused_from_the_loop)
{
    char longest[FILE_PATH_MAX + 2];
    struct file_at bad[] = {at("", NULL), at(longest, NULL), at("/a", ""), at("/a", longest),
                            at("/a", NULL)};
    struct scene s;

    memset(longest, 'x', sizeof(longest));
    longest[0] = '/';
    longest[FILE_PATH_MAX + 1] = '\0';
    bad[4].ref.id = "none";
    scene_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        s.t.n = 0;
        file_stat(in(&s, &bad[i]), false, on_entry, &s);
        CHECK_INT(s.t.n, 0);
        RIG_UNTIL(&s.r, s.t.n == 1);
        CHECK_INT(s.t.e.kind, i == 4 ? ERR_NOT_FOUND : ERR_INVALID);
    }
    scene_close(&s);
}

/* ---- reading ---- */

static void on_content(void *arg, const struct file_content *c)
{
    struct scene *s = arg;

    told_err(&s->t, NULL);
    if (c->data != NULL)
        snprintf(s->data, sizeof(s->data), "%.*s", (int)c->entry->size, c->data);
    if (s->cancel)
        file_cancel(s->call);
}

static void on_data(void *arg, const char *p, size_t n)
{
    struct scene *s = arg;

    snprintf(s->data, sizeof(s->data), "%.*s", (int)n, p);
}

static void on_read_done(void *arg, const struct err *e)
{
    told_err(&((struct scene *)arg)->t, e);
}

static const struct file_read_ops read_ops = {
    .on_content = on_content, .on_data = on_data, .on_done = on_read_done};

TEST(a_small_file_comes_with_the_first_answer)
{
    struct file_at a = at("/a", NULL);
    struct init_file f = a_file("/a", 5);
    struct scene s;
    union rig_msg m;

    f.has_data = 1;
    f.data = (struct wire_bytes){"hello", 5};
    scene_open(&s);
    file_read(in(&s, &a), &read_ops, &s);
    init_say(&s.p, INIT_FILE, scene_hear(&s, INIT_LOOK, &m), &f);
    RIG_UNTIL(&s.r, s.t.n == 1);
    CHECK_STR(s.data, "hello");
    scene_close(&s);
}

TEST(a_size_that_is_not_that_of_the_bytes_is_nonsense)
{
    struct file_at a = at("/a", NULL);
    struct init_file f = a_file("/a", 500);
    struct scene s;
    union rig_msg m;

    f.has_data = 1;
    f.data = (struct wire_bytes){"hello", 5};
    scene_open(&s);
    file_read(in(&s, &a), &read_ops, &s);
    init_say(&s.p, INIT_FILE, scene_hear(&s, INIT_LOOK, &m), &f);
    RIG_UNTIL(&s.r, s.t.n == 1);
    CHECK_INT(s.t.e.kind, ERR_UNRESPONSIVE);
    scene_close(&s);
}

/* Begins a stream of the helper's; its seq. */
static uint32_t elsewhere(struct scene *s, uint16_t request, const char *work)
{
    struct init_file f = {.elsewhere = 1};
    struct init_started started = {.id = "x", .pid = 5};
    union rig_msg m;
    const char *word;
    uint32_t seq, word_at = 0;

    init_say(&s->p, INIT_FILE, scene_hear(s, request, &m), &f);
    seq = scene_hear(s, INIT_START, &m);
    CHECK_INT(m.init_start.flags & INIT_START_HELPER, INIT_START_HELPER);
    word = wire_strv_next(&m.init_start.argv, &word_at);
    CHECK_STR(word, "cove-helper");
    CHECK_STR(wire_strv_next(&m.init_start.argv, &word_at), work);
    init_say(&s->p, INIT_STARTED, seq, &started);
    return seq;
}

static void print(struct scene *s, uint32_t seq, uint64_t *pos, const void *p, size_t n)
{
    struct init_output o = {.pos = *pos, .stream = INIT_STDOUT, .data = {p, (uint32_t)n}};

    init_say(&s->p, INIT_OUTPUT, seq, &o);
    *pos += n;
}

static void helper_exit(struct scene *s, uint32_t seq, unsigned code)
{
    init_say(&s->p, INIT_EXIT, seq, &(struct init_exit){.id = "x", .code = code});
}

TEST(a_file_that_init_cannot_read_is_streamed_by_the_helper)
{
    struct file_at a = at("/proc/x", NULL);
    struct scene s;
    uint64_t pos = 0;
    uint32_t seq;

    scene_open(&s);
    file_read(in(&s, &a), &read_ops, &s);
    scene_accept(&s);
    seq = elsewhere(&s, INIT_LOOK, "read");
    print(&s, seq, &pos, "bytes", 5);
    helper_exit(&s, seq, 0);
    RIG_UNTIL(&s.r, s.t.n == 2);
    CHECK_INT(s.t.failed, 0);
    CHECK_STR(s.data, "bytes");
    scene_close(&s);
}

TEST(a_stream_can_be_cancelled_in_its_own_callback)
{
    struct file_at a = at("/proc/x", NULL);
    struct scene s;
    uint64_t pos = 0;

    scene_open(&s);
    s.cancel = true;
    s.call = file_read(in(&s, &a), &read_ops, &s);
    scene_accept(&s);
    print(&s, elsewhere(&s, INIT_LOOK, "read"), &pos, "bytes", 5);
    RIG_UNTIL(&s.r, peer_is_closed(&s.p));
    CHECK_INT(s.t.n, 1);
    CHECK_STR(s.data, "");
    scene_close(&s);
}

/* ---- records ---- */

static void work_entry(void *arg, const struct file_info *f)
{
    struct scene *s = arg;

    s->entries++;
    snprintf(s->path, sizeof(s->path), "%s", f->path);
    if (s->cancel)
        file_cancel(s->call);
}

static void work_done(void *arg, const struct file_result *d, const struct err *e)
{
    struct scene *s = arg;

    told_err(&s->t, e);
    if (d != NULL) {
        s->t.value = d->count;
        snprintf(s->data, sizeof(s->data), "%s", d->after);
    }
}

static const struct file_work_ops work_ops = {.on_entry = work_entry, .on_done = work_done};

static uint32_t begin_list(struct scene *s)
{
    struct file_list_opts o = {.depth = 1, .limit = 10};
    struct file_at a = at("/d", NULL);
    struct init_started started = {.id = "x", .pid = 5};
    union rig_msg m;
    uint32_t seq;

    s->t.n = 0;
    s->entries = 0;
    s->call = file_list(in(s, &a), &o, &work_ops, s);
    seq = scene_hear(s, INIT_START, &m);
    init_say(&s->p, INIT_STARTED, seq, &started);
    return seq;
}

static void add_record(struct buf *b, uint16_t type, const void *m)
{
    struct err e;

    CHECK_INT(wire_put(b, file_msg(type), 0, m, &e), 0);
}

TEST(records_come_in_pieces_of_any_size)
{
    autobuf struct buf b = BUF_INIT(1u << 20);
    struct scene s;
    uint64_t pos = 0;
    uint32_t seq;

    for (int i = 0; i < 3; i++)
        add_record(&b, FILE_ENTRY, &(struct file_entry){.path = "/d/f", .size = 1});
    add_record(&b, FILE_DONE, &(struct file_done){.count = 3, .more = 1, .after = "f"});
    scene_open(&s);
    seq = begin_list(&s);
    for (size_t i = 0; i < b.len; i += 7)
        print(&s, seq, &pos, buf_data(&b) + i, b.len - i < 7 ? b.len - i : 7);
    helper_exit(&s, seq, 0);
    RIG_UNTIL(&s.r, s.t.n == 1);
    CHECK_INT(s.t.failed, 0);
    CHECK_INT(s.entries, 3);
    CHECK_INT(s.t.value, 3);
    CHECK_STR(s.data, "f");
    scene_close(&s);
}

TEST(invalid_output_of_the_helper_ends_only_its_call)
{
    struct buf kinds[4];
    char junk[64];
    struct scene s;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        buf_init(&kinds[i], 1u << 20);
    memset(junk, 0xff, sizeof(junk));
    buf_add(&kinds[0], junk, sizeof(junk));
    add_record(&kinds[1], FILE_LINE, &(struct file_line){.path = "/d"}); /* not of a list */
    add_record(&kinds[2], FILE_DONE, &(struct file_done){0});
    add_record(&kinds[2], FILE_ENTRY, &(struct file_entry){.path = "/d"});      /* after the end */
    buf_add(&kinds[3], "\x00\x00\x30\x00\x01\x00\x00\x00\x00\x00\x00\x00", 12); /* 3 MiB */
    scene_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        uint64_t pos = 0;

        print(&s, begin_list(&s), &pos, buf_data(&kinds[i]), kinds[i].len);
        RIG_UNTIL(&s.r, s.t.n == 1);
        CHECK_INT(s.t.e.kind, ERR_UNRESPONSIVE);
        RIG_UNTIL(&s.r, peer_is_closed(&s.p));
        peer_close(&s.p);
        s.p.fd = -1;
        buf_free(&kinds[i]);
    }
    scene_close(&s);
}

TEST(a_helper_that_ends_without_its_last_word_has_failed)
{
    struct scene s;

    scene_open(&s);
    helper_exit(&s, begin_list(&s), 0);
    RIG_UNTIL(&s.r, s.t.n == 1);
    CHECK_INT(s.t.e.kind, ERR_UNRESPONSIVE);
    scene_close(&s);
}

TEST(work_can_be_cancelled_in_its_own_callback)
{
    autobuf struct buf b = BUF_INIT(1u << 20);
    struct scene s;
    uint64_t pos = 0;

    add_record(&b, FILE_ENTRY, &(struct file_entry){.path = "/d/f"});
    add_record(&b, FILE_ENTRY, &(struct file_entry){.path = "/d/g"});
    scene_open(&s);
    s.cancel = true;
    print(&s, begin_list(&s), &pos, buf_data(&b), b.len);
    RIG_UNTIL(&s.r, peer_is_closed(&s.p));
    CHECK_INT(s.entries, 1);
    CHECK_INT(s.t.n, 0);
    scene_close(&s);
}

/* ---- writing ---- */

static const struct file_write_ops write_ops = {.on_done = on_entry};

TEST(a_small_body_is_one_message_to_init)
{
    struct file_write_opts o = {.mode = 0600, .only_new = true};
    struct file_at a = at("/a", NULL);
    struct init_file f = a_file("/a", 5);
    struct scene s;
    union rig_msg m;
    uint32_t seq;
    struct file_write *w;

    scene_open(&s);
    w = file_write(in(&s, &a), &o, &write_ops, &s);
    CHECK_INT(file_feed(w, "hel", 3, false), 0);
    CHECK_INT(file_feed(w, "lo", 2, true), 0);
    seq = scene_hear(&s, INIT_WRITE, &m);
    CHECK_INT(m.init_write.data.len, 5);
    CHECK_INT(m.init_write.flags, INIT_WRITE_NEW);
    CHECK_INT(m.init_write.mode, 0600);
    init_say(&s.p, INIT_FILE, seq, &f);
    RIG_UNTIL(&s.r, s.t.n == 1);
    CHECK_INT(s.t.failed, 0);
    CHECK_STR(s.path, "/a");
    scene_close(&s);
}

TEST(a_file_that_init_cannot_write_is_written_by_the_helper_completely)
{
    struct file_write_opts o = {.mode = FILE_MODE_NONE};
    struct file_at a = at("/dev/shm/a", NULL);
    autobuf struct buf b = BUF_INIT(1u << 20);
    struct scene s;
    union rig_msg m;
    uint64_t pos = 0;
    uint32_t seq;

    scene_open(&s);
    file_feed(file_write(in(&s, &a), &o, &write_ops, &s), "hello", 5, true);
    scene_accept(&s);
    seq = elsewhere(&s, INIT_WRITE, "write");
    scene_hear(&s, INIT_STDIN, &m);
    CHECK_INT(m.init_stdin.data.len, 5);
    CHECK_INT(m.init_stdin.close, 1);
    add_record(&b, FILE_ENTRY, &(struct file_entry){.path = "/dev/shm/a", .size = 5});
    add_record(&b, FILE_DONE, &(struct file_done){.count = 1});
    print(&s, seq, &pos, buf_data(&b), b.len);
    helper_exit(&s, seq, 0);
    RIG_UNTIL(&s.r, s.t.n == 1);
    CHECK_INT(s.t.failed, 0);
    CHECK_INT(s.size, 5);
    scene_close(&s);
}

TEST(a_cancelled_write_calls_nothing_back)
{
    struct file_write_opts o = {.mode = FILE_MODE_NONE};
    struct file_at a = at("/a", NULL);
    struct file_write *w;
    struct scene s;
    union rig_msg m;

    scene_open(&s);
    file_write_cancel(file_write(in(&s, &a), &o, &write_ops, &s));
    w = file_write(in(&s, &a), &o, &write_ops, &s);
    file_feed(w, "x", 1, true);
    scene_hear(&s, INIT_WRITE, &m);
    file_write_cancel(w);
    RIG_UNTIL(&s.r, peer_is_closed(&s.p));
    CHECK_INT(s.t.n, 0);
    scene_close(&s);
}
