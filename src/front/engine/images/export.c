/* export.c - exports a snapshot as one file: cove-helper packs it in a temporary sandbox created from
 * it (helper/image/export.h). */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "front/engine/process.h"
#include "front/engine/work.h"
#include "mem/mem.h"

#define EXPORTS_MAX 4u  /* concurrently... */
#define EXPORTS_EACH 2u /* ...of one key */
/* What commands start with where no image says anything. */
#define EXPORT_DEFAULTS "{\"user\":\"user\",\"workdir\":\"/workspace\"}"

struct engine_export {
    struct engine *g;
    struct list link;
    const struct export_ops *ops; /* NULL: cancelled */
    void *arg;
    char key[ENGINE_KEY_MAX + 1];
    char snapshot[KEEPER_ID_MAX + 1], name[SNAPSHOT_NAME_MAX + 1], id[KEEPER_ID_MAX + 1];
    struct talk_peer peer;
    struct process_stream *stream;
    struct buf words; /* the last of its stderr */
    struct err why;
    struct loop_later later; /* to say at once that it failed, from the loop */
};

static void export_free(struct engine_export *x)
{
    list_del(&x->link);
    loop_undefer(&x->later);
    buf_free(&x->words);
    free(x);
}

void exports_free(struct engine *g)
{
    struct engine_export *x;

    while ((x = LIST_FIRST(&g->exports, struct engine_export, link)) != NULL) {
        process_close(x->stream);
        export_free(x);
    }
}

/* ---- the end ---- */

static void end(struct engine_export *x, const struct err *e)
{
    const struct export_ops *ops = x->ops;
    struct err why = {0}, gone;
    void *arg = x->arg;
    bool failed = e != NULL;

    if (failed)
        why = *e;
    if (x->id[0] != '\0') {
        err_set(&gone, ERR_GONE, "the export is done");
        life_destroy_leftover(x->g, x->id);
        talk_peer_reset(&x->peer, &gone);
    }
    export_free(x);
    if (ops != NULL)
        ops->on_done(arg, failed ? &why : NULL);
}

static void fail_later(struct loop_later *l)
{
    struct engine_export *x = CONTAINER_OF(l, struct engine_export, later);
    struct err e = x->why;

    end(x, &e);
}

/* ---- what the helper says ---- */

static void on_output(void *arg, const struct process_output *m)
{
    struct engine_export *x = arg;

    if (m->stream != PROCESS_STDOUT)
        work_words(&x->words, m);
    else if (x->ops != NULL)
        x->ops->on_data(x->arg, m->data.p, m->data.len);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct engine_export *x = arg;
    struct err e;

    x->stream = NULL;
    if (m->code == 0 && m->signal == 0) {
        end(x, NULL);
        return;
    }
    work_error(m, &x->words, &e);
    end(x, &e);
}

static void on_fail(void *arg, const struct err *e)
{
    struct engine_export *x = arg;
    struct err why = *e;

    x->stream = NULL;
    err_wrap(&why, "the helper");
    end(x, &why);
}

static void on_started(void *arg, const struct process_started *m)
{
    (void)arg;
    (void)m;
}

static void on_drain(void *arg)
{
    (void)arg;
}

static const struct process_ops helper_ops = {.on_started = on_started,
                                              .on_output = on_output,
                                              .on_exit = on_exit_,
                                              .on_fail = on_fail,
                                              .on_drain = on_drain};

/* ---- the beginning ---- */

static void start_helper(struct engine_export *x, const struct wire_bytes *settings)
{
    autobuf struct buf argv = BUF_INIT(IMAGE_SETTINGS_MAX + 1024),
                       text = BUF_INIT(IMAGE_SETTINGS_MAX + 1);
    struct init_start start = {.id = "export",
                               .env = {"", 0, 0},
                               .cwd = "/",
                               .user = "root",
                               .ring = (uint32_t)x->g->o.config->output,
                               .flags = INIT_START_OWN | INIT_START_FORGET | INIT_START_HELPER};

    buf_add(&text, settings->p, settings->len);
    wire_strv_add(&argv, "cove-helper");
    wire_strv_add(&argv, "export");
    wire_strv_add(&argv, settings->len > 0 ? buf_cstr(&text) : EXPORT_DEFAULTS);
    wire_strv_add(&argv, x->name);
    start.argv = wire_strv_of(&argv);
    x->stream = stream_run(x->g, &x->peer, &start, &helper_ops, x);
}

static void on_sandbox(void *arg, const void *msg, const struct err *e)
{
    const struct keeper_sandbox *m = msg;
    struct engine_export *x = arg;
    struct err why;

    if (e != NULL) {
        end(x, e);
        return;
    }
    if (!id_is_valid(m->id, KEEPER_ID_MAX) || box_find(x->g, m->id) != NULL) {
        err_set(&why, ERR_INTERNAL, "invalid sandbox id '%s' from the keeper", m->id);
        end(x, &why);
        return;
    }
    str_fmt(x->id, sizeof(x->id), "%s", m->id);
    talk_peer_init(&x->peer, x->g->hub, x->id);
    if (x->ops == NULL)
        end(x, NULL);
    else
        start_helper(x, &m->settings);
}

static void on_drop(void *arg)
{
    export_free(arg);
}

/* A slow client occupies a place: some are reserved for other keys. */
static int check(const struct engine_export *x, const struct snapshot *s, const char *id,
                 struct err *e)
{
    const struct engine_export *y;
    unsigned all = 0, own = 0;

    LIST_EACH (&x->g->exports, y, struct engine_export, link) {
        all += y != x;
        own += y != x && strcmp(y->key, x->key) == 0;
    }
    if (s == NULL)
        return err_set(e, ERR_NOT_FOUND, "no snapshot %.64s", id);
    if (all < EXPORTS_MAX && own < EXPORTS_EACH)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "%u snapshots are being exported already; try again", all);
}

struct engine_export *engine_export(struct ref ref, const struct export_ops *ops, void *arg)
{
    static const struct keeper_asker asker = {.last = on_sandbox, .drop = on_drop};
    const struct snapshot *s = engine_snapshot_get(ref);
    struct engine_export *x = mem_zeroed(1, sizeof(*x));
    struct keeper_create ask = {.network = "none"};

    x->g = ref.engine;
    x->ops = ops;
    x->arg = arg;
    str_fmt(x->key, sizeof(x->key), "%.*s", (int)ENGINE_KEY_MAX, ref.key);
    list_add_tail(&ref.engine->exports, &x->link);
    buf_init(&x->words, WORK_WORDS_MAX);
    if (check(x, s, ref.id, &x->why) < 0) {
        loop_defer(ref.engine->loop, &x->later, fail_later);
        return x;
    }
    str_fmt(x->snapshot, sizeof(x->snapshot), "%s", s->id);
    str_fmt(x->name, sizeof(x->name), "%s", s->name);
    ask.snapshot = x->snapshot;
    keeper_ask(ref.engine->keeper, KEEPER_CREATE, &ask, &asker, x);
    return x;
}

void engine_export_pause(struct engine_export *x, bool paused)
{
    if (x->stream != NULL)
        process_pause(x->stream, paused);
}

/* Before there is a sandbox, the keeper's answer must be waited for. */
void engine_export_cancel(struct engine_export *x)
{
    x->ops = NULL;
    if (x->stream == NULL)
        return;
    process_close(take_ptr(&x->stream));
    end(x, NULL);
}
