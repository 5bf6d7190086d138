/* import.c - adds a template: cove-helper unpacks the archive in a temporary sandbox, and the keeper
 * keeps the result. */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/image.h"
#include "front/engine/internal.h"
#include "front/engine/process.h"
#include "mem/mem.h"

#define IMPORT_SNAPSHOTS_MAX (IMAGE_IMPORTS_MAX - 1) /* concurrently... */
#define IMPORT_SNAPSHOTS_EACH 2u                     /* ...of one key */

enum import_state {
    IMPORT_ASKED,      /* the keeper makes the sandbox */
    IMPORT_RUNNING,    /* the helper reads and unpacks */
    IMPORT_COMMITTING, /* the keeper keeps what it unpacked */
};

struct engine_import {
    struct engine *g;
    struct list link;
    const struct import_ops *ops; /* NULL: cancelled */
    void *arg;
    enum import_state state;
    bool last;                    /* all bytes were given */
    char key[ENGINE_KEY_MAX + 1]; /* whose it becomes */
    char name[IMAGE_NAME], id[KEEPER_ID_MAX + 1];
    struct { /* instead of a template called `name` */
        bool wanted;
        char name[SNAPSHOT_NAME_MAX + 1];
    } snapshot;
    struct quota_user *user; /* charged until it is there */
    struct quotas charged;
    uint64_t disk; /* what it may take */
    struct talk_peer peer;
    struct process_stream *stream; /* while RUNNING */
    struct buf lines;
    struct image_result result;
    bool whole; /* the result is there */
    bool failed;
    struct err why;
    struct loop_later later; /* to say at once that it failed, from the loop */
};

/* ---- the end ---- */

static void import_free(struct engine_import *im)
{
    quota_drop(im->user, &im->charged);
    list_del(&im->link);
    loop_undefer(&im->later);
    image_result_free(&im->result);
    buf_free(&im->lines);
    free(im);
}

static void end(struct engine_import *im, const struct err *e)
{
    const struct import_ops *ops = im->ops;
    struct err why = {0}, gone;
    void *arg = im->arg;
    bool failed = e != NULL;

    if (failed)
        why = *e;
    if (im->id[0] != '\0') {
        err_set(&gone, ERR_GONE, "the template is done");
        talk_peer_reset(&im->peer, &gone);
    }
    import_free(im);
    if (ops != NULL)
        ops->on_done(arg, failed ? &why : NULL);
}

/* The caller is answered first; the sandbox is destroyed in the background. */
static void give_up(struct engine_import *im, const struct err *e)
{
    if (im->id[0] != '\0')
        life_destroy_leftover(im->g, im->id);
    end(im, e);
}

static void fail_later(struct loop_later *l)
{
    struct engine_import *im = CONTAINER_OF(l, struct engine_import, later);
    struct err e = im->why;

    end(im, &e);
}

/* ---- commit ---- */

static void on_committed(void *arg, const void *msg, const struct err *e)
{
    struct engine_import *im = arg;
    const struct snapshot *s;
    struct err why;

    (void)msg;
    quota_drop(im->user, &im->charged);
    im->charged = (struct quotas){0};
    if (e == NULL && !im->snapshot.wanted)
        template_own(im->g, im->key, im->name);
    if (e != NULL || !im->snapshot.wanted) {
        end(im, e);
        return;
    }
    s = snap_imported(im->g, im->key, im->snapshot.name, im->id, im->result.bytes, &why);
    if (s == NULL)
        snap_forget(im->g, im->id);
    else if (im->ops != NULL)
        im->ops->on_snapshot(im->arg, s);
    end(im, s == NULL ? &why : NULL);
}

static void on_drop(void *arg)
{
    import_free(arg);
}

static void commit(struct engine_import *im)
{
    static const struct keeper_asker asker = {.last = on_committed, .drop = on_drop};
    struct image_result *r = &im->result;
    struct keeper_commit ask = {.id = im->id,
                                .name = im->name,
                                .format = r->format,
                                .layers = wire_strv_of(&r->layers),
                                .settings = {buf_data(&r->settings), (uint32_t)r->settings.len},
                                .bytes = r->bytes,
                                .files = r->files};

    im->state = IMPORT_COMMITTING;
    if (im->ops != NULL)
        im->ops->on_progress(im->arg, "storing", 0, 0);
    keeper_ask(im->g->keeper, KEEPER_COMMIT, &ask, &asker, im);
}

/* ---- what the helper says ---- */

static void line_progress(struct engine_import *im, char *text)
{
    char *end_of = NULL;
    unsigned long long done = strtoull(text, &end_of, 10), total;

    total = strtoull(end_of, &end_of, 10);
    if (*end_of != ' ' || !str_is_utf8(end_of + 1, strlen(end_of + 1)) || strlen(end_of) > 200)
        return;
    if (im->ops != NULL)
        im->ops->on_progress(im->arg, end_of + 1, done, total);
}

/* The archive is at fault, or the helper is; which of our own kinds it names is
 * not for it to choose freely. */
static void line_error(struct engine_import *im, char *text)
{
    char *space = strchr(text, ' ');
    enum err_kind kind;

    if (space == NULL || im->failed)
        return;
    *space = '\0';
    kind = err_from_code(text);
    if (kind != ERR_TOO_LARGE && kind != ERR_INVALID)
        kind = ERR_INTERNAL;
    im->failed = true;
    err_set(&im->why, kind, "%.400s", space + 1);
}

static void line_result(struct engine_import *im, char *text)
{
    if (im->whole || im->failed)
        return;
    im->whole = image_result_read(text, strlen(text), &im->result, &im->why) == 0;
    im->failed = !im->whole;
}

static const struct {
    char mark;
    void (*take)(struct engine_import *im, char *text);
} line_kinds[] = {{'P', line_progress}, {'E', line_error}, {'R', line_result}};

static void take_line(struct engine_import *im, char *line)
{
    for (size_t i = 0; i < ARRAY_LEN(line_kinds); i++)
        if (line[0] == line_kinds[i].mark && line[1] == ' ')
            line_kinds[i].take(im, line + 2);
}

static void on_output(void *arg, const struct process_output *m)
{
    struct engine_import *im = arg;
    char *nl;

    if (m->stream != PROCESS_STDOUT)
        return;
    buf_add(&im->lines, m->data.p, m->data.len);
    while (!im->lines.failed && im->lines.len > 0 &&
           (nl = memchr(buf_data(&im->lines), '\n', im->lines.len)) != NULL) {
        size_t n = (size_t)(nl - buf_data(&im->lines));

        *nl = '\0';
        take_line(im, buf_data(&im->lines));
        buf_consume(&im->lines, n + 1);
    }
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct engine_import *im = arg;
    struct err e;

    im->stream = NULL;
    if (im->failed) {
        e = im->why;
        give_up(im, &e);
    } else if (im->whole && m->code == 0 && m->signal == 0) {
        commit(im);
    } else {
        err_set(&e, m->flags & PROCESS_EXIT_OOM ? ERR_TOO_LARGE : ERR_INTERNAL,
                m->flags & PROCESS_EXIT_OOM ? "unpacking needs more memory than a sandbox has"
                                            : "the helper ended with code %u, signal %u",
                m->code, m->signal);
        give_up(im, &e);
    }
}

static void on_fail(void *arg, const struct err *e)
{
    struct engine_import *im = arg;
    struct err why = *e;

    im->stream = NULL;
    err_wrap(&why, "the helper");
    give_up(im, &why);
}

static void on_drain(void *arg)
{
    struct engine_import *im = arg;

    if (im->ops != NULL && !im->last)
        im->ops->on_drain(im->arg);
}

static void on_started(void *arg, const struct process_started *m)
{
    (void)m;
    on_drain(arg);
}

static const struct process_ops helper_ops = {.on_started = on_started,
                                              .on_output = on_output,
                                              .on_exit = on_exit_,
                                              .on_fail = on_fail,
                                              .on_drain = on_drain};

/* ---- the beginning ---- */

static void start_helper(struct engine_import *im)
{
    static const char argv[] = "cove-helper\0import";
    struct init_start start = {.id = "import",
                               .argv = {argv, sizeof(argv), 2},
                               .env = {"", 0, 0},
                               .cwd = "/",
                               .user = "root",
                               .flags = INIT_START_STDIN | INIT_START_OWN | INIT_START_FORGET |
                                        INIT_START_HELPER};

    im->state = IMPORT_RUNNING;
    im->stream = stream_run(im->g, &im->peer, &start, &helper_ops, im);
}

static void on_sandbox(void *arg, const void *msg, const struct err *e)
{
    const struct keeper_sandbox *m = msg;
    struct engine_import *im = arg;
    struct err why;

    if (e != NULL) {
        end(im, e);
        return;
    }
    if (!id_is_valid(m->id, KEEPER_ID_MAX) || box_find(im->g, m->id) != NULL) {
        err_set(&why, ERR_INTERNAL, "invalid import id '%s' from the keeper", m->id);
        end(im, &why);
        return;
    }
    str_fmt(im->id, sizeof(im->id), "%s", m->id);
    talk_peer_init(&im->peer, im->g->hub, im->id);
    if (im->ops == NULL)
        give_up(im, NULL);
    else
        start_helper(im);
}

static struct engine_import *import_new(struct engine *g, const char *key,
                                        const struct import_ops *ops, void *arg)
{
    struct engine_import *im = mem_zeroed(1, sizeof(*im));

    im->g = g;
    str_fmt(im->key, sizeof(im->key), "%.*s", (int)ENGINE_KEY_MAX, key);
    im->user = quota_user(g->o.quotas, im->key);
    im->ops = ops;
    im->arg = arg;
    list_add_tail(&g->imports, &im->link);
    buf_init(&im->lines, IMAGE_LINE_MAX + PROCESS_CHUNK_MAX);
    image_result_init(&im->result);
    return im;
}

/* Fails from the loop if `r` says that im->why is already known. */
static struct engine_import *begin(struct engine_import *im, int r)
{
    static const struct keeper_asker asker = {.last = on_sandbox, .drop = on_drop};
    struct keeper_import ask = {.disk = im->disk};

    if (r < 0)
        im->charged = (struct quotas){0};
    quota_add(im->user, &im->charged);
    if (r < 0)
        loop_defer(im->g->loop, &im->later, fail_later);
    else
        keeper_ask(im->g->keeper, KEEPER_IMPORT, &ask, &asker, im);
    return im;
}

/* `otherwise` if the client does not say; 0: as much as the largest sandbox. */
static int choose_disk(struct engine_import *im, uint64_t disk, uint64_t otherwise, struct err *e)
{
    struct limits asked = {.disk = disk != 0 ? disk : otherwise};

    if (asked.disk == 0)
        ceilings_apply(im->g, &asked);
    im->disk = asked.disk == 0 ? LIMIT_DISK_MAX : asked.disk;
    return ceilings_check(im->g, &asked, e);
}

struct engine_import *engine_import(struct engine *g, const char *key, const char *name,
                                    uint64_t disk, const struct import_ops *ops, void *arg)
{
    struct engine_import *im = import_new(g, key, ops, arg);
    int r = image_check_name(name, &im->why);

    if (r == 0)
        r = choose_disk(im, disk, g->o.config->disk, &im->why); /* a few bytes may become many */
    if (r == 0)
        r = template_may_add(g, im->key, name, &im->charged, &im->why);
    if (r == 0)
        str_fmt(im->name, sizeof(im->name), "%s", name);
    return begin(im, r);
}

/* The keeper accepts no smaller one; what does not fit in the quota is refused at the end. */
static uint64_t within_quota(const struct engine_import *im)
{
    uint64_t left = quota_left(im->user, QUOTA_disk);

    left = left < LIMIT_DISK_MIN ? LIMIT_DISK_MIN : left;
    return im->disk < left ? im->disk : left;
}

/* A slow client occupies a place: one is reserved for the operator, and one for other keys. */
static int check_turn(struct engine *g, const char *key, struct err *e)
{
    const struct engine_import *im;
    unsigned all = 0, own = 0;

    LIST_EACH (&g->imports, im, struct engine_import, link) {
        all += im->snapshot.wanted;
        own += im->snapshot.wanted && strcmp(im->key, key) == 0;
    }
    if (all < IMPORT_SNAPSHOTS_MAX && own < IMPORT_SNAPSHOTS_EACH)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "%u snapshots are being imported already; try again", all);
}

struct engine_import *engine_import_snapshot(struct engine *g, const char *key, const char *name,
                                             uint64_t disk, const struct import_ops *ops, void *arg)
{
    struct engine_import *im = import_new(g, key, ops, arg);
    int r = snap_check_name(name, &im->why) < 0 ? -1 : check_turn(g, key, &im->why);

    im->charged = (struct quotas){{[QUOTA_snapshots] = 1}};
    if (r == 0)
        r = choose_disk(im, disk, 0, &im->why); /* it was a sandbox's: the quota bounds it */
    if (r == 0)
        r = snap_may_add(im->user, disk, &im->why);
    if (r == 0)
        im->disk = within_quota(im);
    im->snapshot.wanted = r == 0;
    if (r == 0)
        str_fmt(im->snapshot.name, sizeof(im->snapshot.name), "%s", name);
    return begin(im, r);
}

size_t engine_import_feed(struct engine_import *im, const void *p, size_t n, bool last)
{
    if (im->stream == NULL || im->last)
        return 0;
    im->last = last;
    return process_feed(im->stream, p, n, last);
}

void engine_import_cancel(struct engine_import *im)
{
    im->ops = NULL;
    if (im->last || im->state != IMPORT_RUNNING)
        return; /* it ends by itself */
    process_close(im->stream);
    give_up(im, NULL);
}

void imports_free(struct engine *g)
{
    struct engine_import *im;

    while ((im = LIST_FIRST(&g->imports, struct engine_import, link)) != NULL) {
        process_close(im->stream);
        import_free(im);
    }
}
