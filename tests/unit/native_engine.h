/* native_engine.h - an engine that answers when the test says so, and notices
 * whatever is done to it. Stands in for front/engine and front/auth. */
#ifndef NATIVE_ENGINE_H
#define NATIVE_ENGINE_H

#include "front/auth/auth.h"
#include "front/engine/metrics.h"
#include "front/engine/process.h"
#include "front/engine/session.h"
#include "front/engine/snapshot.h"
#include "front/engine/terminal.h"
#include "native_files.h"

struct process_stream {
    const struct process_ops *ops;
    void *arg;
    bool open, paused;
    char fed[64];
    size_t nfed;
    bool fed_last, forget;
    unsigned cols, rows;
    struct process_opts o;
};
struct process_call {
    bool open;
    process_exit_cb *exit;
    process_value_cb *value;
    void *arg;
};
struct engine_watch {
    bool open;
    void (*each)(void *arg, const struct engine_event *ev);
    void *arg;
    uint64_t after;
};

static struct {
    struct process_stream stream;
    struct process_call call;
    struct engine_watch watch;
    struct create_opts created;
    char metadata[256], env[64], network[16];
    engine_sandbox_cb *got;
    engine_done_cb *done;
    void (*proc)(void *arg, const struct process_info *p, const struct err *e);
    session_cb *session;
    void (*started)(void *arg, const struct process_started *m, const struct err *e);
    void (*stat)(void *arg, const struct engine_stats *s);
    void *arg;
    char stdin_bytes[256];
    size_t nstdin;
    bool stdin_closed;
    int signo;
    struct sandbox_rule rules[ENGINE_RULES_MAX];
    size_t nrules;
    struct process_http http;
} fake;

static struct sandbox fake_sandbox = {
    .id = "abc",
    .key = "root",
    .template = "base",
    .network = "none",
    .metadata = "{\"a\":\"1\"}",
    .env = "TOKEN=secret",
    .env_len = 13,
    .limits = {1, 2, 3, 4, 5},
    .created_ms = 1700000000000,
    .boot_id = "boot",
    .reason = "",
};

const char *sandbox_state_name(enum sandbox_state s)
{
    static const char *const names[] = {"running", "paused", "stopped", "damaged"};

    return names[s];
}

const char *sandbox_end_name(enum sandbox_end s)
{
    static const char *const names[] = {"delete", "stop", "pause"};

    return names[s];
}

bool engine_is_ready(const struct engine *g)
{
    (void)g;
    return true;
}

void engine_create(struct engine *g, const struct create_opts *o, engine_sandbox_cb *cb, void *arg)
{
    (void)g;
    fake.created = *o;
    snprintf(fake.network, sizeof(fake.network), "%s", o->network != NULL ? o->network : "");
    snprintf(fake.metadata, sizeof(fake.metadata), "%s", o->metadata != NULL ? o->metadata : "");
    memcpy(fake.env, o->env != NULL ? o->env : "", o->env_len < 64 ? o->env_len : 64);
    fake.got = cb;
    fake.arg = arg;
}

const struct sandbox *engine_get(struct ref ref)
{
    (void)ref;
    return strcmp(ref.id, "abc") == 0 ? &fake_sandbox : NULL;
}

void engine_delete(struct ref ref, engine_done_cb *cb, void *arg)
{
    (void)ref;
    fake.done = cb;
    fake.arg = arg;
}

void engine_pause(struct ref ref, bool memory, engine_sandbox_cb *cb, void *arg)
{
    (void)ref, (void)memory;
    fake.got = cb;
    fake.arg = arg;
}

void engine_resume(struct ref ref, enum resume_end end, uint64_t timeout_ms, engine_sandbox_cb *cb,
                   void *arg)
{
    (void)ref, (void)end, (void)timeout_ms;
    fake.got = cb;
    fake.arg = arg;
}

void engine_recover(struct ref ref, engine_sandbox_cb *cb, void *arg)
{
    (void)ref;
    fake.got = cb;
    fake.arg = arg;
}

void engine_snapshot(struct ref ref, const char *name, snapshot_cb *cb, void *arg)
{
    struct err why;

    (void)ref, (void)name;
    err_set(&why, ERR_CONFLICT, "not now");
    cb(arg, NULL, &why);
}

const struct snapshot *engine_snapshot_get(struct ref ref)
{
    (void)ref;
    return NULL;
}

void engine_snapshot_delete(struct ref ref, engine_done_cb *cb, void *arg)
{
    (void)ref;
    cb(arg, NULL);
}

int engine_snapshots(struct engine *g, const struct snapshot_list_opts *o,
                     void (*each)(void *arg, const struct snapshot *s), void *arg, char **ret_next,
                     struct err *err)
{
    (void)g, (void)o, (void)each, (void)arg, (void)err;
    *ret_next = NULL;
    return 0;
}

struct engine_export *engine_export(struct ref ref, const struct export_ops *ops, void *arg)
{
    (void)ref, (void)ops, (void)arg;
    return NULL;
}

void engine_export_pause(struct engine_export *x, bool paused)
{
    (void)x, (void)paused;
}

void engine_export_cancel(struct engine_export *x)
{
    (void)x;
}

struct engine_import *engine_import_snapshot(struct engine *g, const char *key, const char *name,
                                             const struct import_ops *ops, void *arg)
{
    (void)g, (void)key, (void)name, (void)ops, (void)arg;
    return NULL;
}

void engine_fork(struct ref ref, const struct fork_opts *o,
                 void (*each)(void *arg, const struct sandbox *s, const struct err *e),
                 engine_done_cb *done, void *arg)
{
    struct err why;

    (void)ref;
    err_set(&why, ERR_UNAVAILABLE, "full");
    for (unsigned i = 0; i < o->count; i++)
        each(arg, i == 0 ? &fake_sandbox : NULL, &why);
    done(arg, NULL);
}

int engine_metrics(struct ref ref, uint64_t since_ms, uint64_t until_ms, size_t limit,
                   void (*each)(void *arg, const struct metric *m), void *arg, struct err *err)
{
    (void)ref, (void)since_ms, (void)until_ms, (void)limit, (void)each, (void)arg;
    (void)err;
    return 0;
}

void engine_last_metrics(struct engine *g, const char *key,
                         void (*each)(void *arg, const char *id, const struct metric *m), void *arg)
{
    (void)g, (void)key, (void)each, (void)arg;
}

const char *log_severity_name(enum log_severity l)
{
    (void)l;
    return "info";
}

int engine_logs(const struct log_opts *o, void (*each)(void *arg, const struct log_entry *l),
                void *arg, uint64_t *ret_next, struct err *err)
{
    (void)o->ref.engine, (void)o, (void)each, (void)arg, (void)err;
    *ret_next = 0;
    return 0;
}

int engine_set_timeout(struct ref ref, uint64_t ms, struct err *err)
{
    (void)ref, (void)ms, (void)err;
    return 0;
}

int engine_list(struct engine *g, const struct list_opts *o,
                void (*each)(void *arg, const struct sandbox *s), void *arg, char **ret_next,
                struct err *err)
{
    (void)g, (void)err;
    for (size_t i = 0; i < o->limit && i < 2; i++)
        each(arg, &fake_sandbox);
    *ret_next = o->limit < 2 ? strdup("more") : NULL;
    return 0;
}

void engine_templates(struct engine *g, void (*each)(void *arg, const struct template_info *t),
                      engine_done_cb *cb, void *arg)
{
    (void)g, (void)each;
    fake.done = cb;
    fake.arg = arg;
}

void engine_template_refresh(struct engine *g, const char *name,
                             void (*progress)(void *arg, const char *text, uint64_t done,
                                              uint64_t total),
                             engine_done_cb *cb, void *arg)
{
    (void)g, (void)name, (void)progress;
    fake.done = cb;
    fake.arg = arg;
}

void engine_template_alias(struct engine *g, const char *name, const char *alias,
                           engine_done_cb *cb, void *arg)
{
    (void)g, (void)name, (void)alias;
    fake.done = cb;
    fake.arg = arg;
}

void engine_template_delete(struct engine *g, const char *name, engine_done_cb *cb, void *arg)
{
    engine_template_alias(g, name, "", cb, arg);
}

void engine_template_build(struct engine *g, const char *name, const struct build_opts *o,
                           void (*progress)(void *arg, const char *text, uint64_t done,
                                            uint64_t total),
                           engine_done_cb *cb, void *arg)
{
    (void)o;
    engine_template_refresh(g, name, progress, cb, arg);
}

struct engine_import *engine_import(struct engine *g, const char *name,
                                    const struct import_ops *ops, void *arg)
{
    (void)g, (void)name, (void)ops, (void)arg;
    return NULL;
}

size_t engine_import_feed(struct engine_import *im, const void *p, size_t n, bool last)
{
    (void)im, (void)p, (void)n, (void)last;
    return 0;
}

void engine_import_cancel(struct engine_import *im)
{
    (void)im;
}

struct engine_watch *engine_watch(struct engine *g, const char *key, uint64_t after,
                                  void (*each)(void *arg, const struct engine_event *ev), void *arg)
{
    (void)g, (void)key;
    fake.watch = (struct engine_watch){true, each, arg, after};
    return &fake.watch;
}

void engine_unwatch(struct engine_watch *w)
{
    CHECK(w->open);
    w->open = false;
}

void engine_stat(struct engine *g, void (*cb)(void *arg, const struct engine_stats *s), void *arg)
{
    (void)g;
    fake.stat = cb;
    fake.arg = arg;
}

void engine_traffic(struct engine *g, const char *key,
                    void (*each)(void *arg, const struct sandbox_traffic *t), engine_done_cb *done,
                    void *arg)
{
    (void)g, (void)key;
    each(arg, &(struct sandbox_traffic){"abc", 1, 2, 3, 4});
    done(arg, NULL);
}

void engine_set_rules(struct ref ref, const struct sandbox_rule *rules, size_t n,
                      engine_sandbox_cb *cb, void *arg)
{
    (void)ref;
    fake.nrules = n;
    memcpy(fake.rules, rules, n * sizeof(*rules));
    fake.got = cb;
    fake.arg = arg;
}

struct process_stream *process_run(struct ref ref, const struct process_opts *o, bool forget,
                                   const struct process_ops *ops, void *arg)
{
    (void)ref;
    fake.stream =
        (struct process_stream){.ops = ops, .arg = arg, .open = true, .forget = forget, .o = *o};
    return &fake.stream;
}

size_t process_feed(struct process_stream *s, const void *p, size_t n, bool last)
{
    CHECK(s->open && !s->fed_last);
    memcpy(s->fed + s->nfed, p, n);
    s->nfed += n;
    s->fed_last = last;
    return 0;
}

void process_feed_whole(struct process_stream *s, struct buf *input)
{
    process_feed(s, buf_data(input), input->len, true);
}

void process_pause(struct process_stream *s, bool paused)
{
    CHECK(s->open);
    s->paused = paused;
}

void process_close(struct process_stream *s)
{
    if (s == NULL)
        return;
    CHECK(s->open);
    s->open = false;
}

void process_start(struct ref ref, const struct process_opts *o,
                   void (*cb)(void *arg, const struct process_started *m, const struct err *e),
                   void *arg)
{
    (void)ref, (void)o;
    fake.started = cb;
    fake.arg = arg;
}

struct process_stream *process_attach(struct ref ref, const char *id, uint64_t since, bool follow,
                                      unsigned streams, const struct process_ops *ops, void *arg)
{
    (void)ref, (void)id, (void)since, (void)follow, (void)streams;
    fake.stream = (struct process_stream){.ops = ops, .arg = arg, .open = true};
    return &fake.stream;
}

void process_list(struct ref ref, void (*each)(void *arg, const struct process_info *p),
                  engine_done_cb *cb, void *arg)
{
    (void)ref, (void)each;
    fake.done = cb;
    fake.arg = arg;
}

void process_get(struct ref ref, const char *id,
                 void (*cb)(void *arg, const struct process_info *p, const struct err *e),
                 void *arg)
{
    (void)ref, (void)id;
    fake.proc = cb;
    fake.arg = arg;
}

void process_stdin(struct ref ref, const char *id, const void *p, size_t n, bool last,
                   engine_done_cb *cb, void *arg)
{
    (void)ref, (void)id;
    if (fake.nstdin + n < sizeof(fake.stdin_bytes)) {
        if (n > 0)
            memcpy(fake.stdin_bytes + fake.nstdin, p, n);
        fake.nstdin += n;
    }
    fake.stdin_closed = last;
    fake.done = cb;
    fake.arg = arg;
}

void process_signal(struct ref ref, const char *id, int signo, bool tree, engine_done_cb *cb,
                    void *arg)
{
    (void)ref, (void)id, (void)tree;
    fake.signo = signo;
    fake.done = cb;
    fake.arg = arg;
}

static struct process_call *fake_call(process_exit_cb *exit_cb, process_value_cb *value, void *arg)
{
    fake.call = (struct process_call){true, exit_cb, value, arg};
    return &fake.call;
}

struct process_call *process_kill(struct ref ref, const char *id, uint64_t grace_ms,
                                  process_exit_cb *cb, void *arg)
{
    (void)ref, (void)id, (void)grace_ms;
    return fake_call(cb, NULL, arg);
}

struct process_stream *terminal_view(struct ref ref, const char *id,
                                     const struct terminal_from *from,
                                     const struct process_ops *ops, void *arg)
{
    (void)from;
    return process_attach(ref, id, 0, true, 0, ops, arg);
}

void terminal_view_resize(struct process_stream *s, unsigned cols, unsigned rows)
{
    s->cols = cols;
    s->rows = rows;
}

void terminal_resize(struct ref ref, const char *id, unsigned cols, unsigned rows,
                     engine_done_cb *cb, void *arg)
{
    (void)ref, (void)id, (void)cols, (void)rows;
    fake.done = cb;
    fake.arg = arg;
}

void terminal_signal(struct ref ref, const char *id, int signo, engine_done_cb *cb, void *arg)
{
    terminal_resize(ref, id, 0, 0, cb, arg);
    fake.signo = signo;
}

struct process_call *terminal_delete(struct ref ref, const char *id, uint64_t grace_ms,
                                     process_exit_cb *cb, void *arg)
{
    return process_kill(ref, id, grace_ms, cb, arg);
}

struct process_call *process_wait(struct ref ref, const char *id, uint64_t timeout_ms,
                                  process_exit_cb *cb, void *arg)
{
    (void)ref, (void)id, (void)timeout_ms;
    return fake_call(cb, NULL, arg);
}

struct process_call *process_wait_port(struct ref ref, const char *id, unsigned port,
                                       const struct process_http *http, uint64_t timeout_ms,
                                       process_value_cb *cb, void *arg)
{
    (void)ref, (void)id, (void)port, (void)timeout_ms;
    fake.http = http != NULL ? *http : (struct process_http){0};
    return fake_call(NULL, cb, arg);
}

struct process_call *process_wait_log(struct ref ref, const char *id, const void *text, size_t len,
                                      uint64_t since, unsigned streams, uint64_t timeout_ms,
                                      process_value_cb *cb, void *arg)
{
    (void)ref, (void)id, (void)text, (void)len, (void)since;
    (void)streams, (void)timeout_ms;
    return fake_call(NULL, cb, arg);
}

struct process_stream *process_run_own(struct ref ref, const struct process_opts *o, uint32_t ring,
                                       const struct process_ops *ops, void *arg)
{
    (void)ring;
    return process_run(ref, o, true, ops, arg);
}

struct process_stream *process_attach_own(struct ref ref, const char *id, uint64_t since,
                                          bool follow, const struct process_ops *ops, void *arg)
{
    return process_attach(ref, id, since, follow, 0, ops, arg);
}

struct process_call *process_kill_own(struct ref ref, const char *id, process_exit_cb *cb,
                                      void *arg)
{
    return process_kill(ref, id, 0, cb, arg);
}

void process_list_own(struct ref ref, void (*each)(void *arg, const struct process_info *p),
                      engine_done_cb *cb, void *arg)
{
    process_list(ref, each, cb, arg);
}

void process_cancel(struct process_call *c)
{
    CHECK(c->open);
    c->open = false;
}

int auth_key(struct auth *a, const char *presented, const char **ret_key_id, struct err *err)
{
    (void)a;
    if (presented == NULL || strstr(presented, "good") == NULL)
        return err_set(err, ERR_UNAUTHORIZED, "no key");
    *ret_key_id = "root";
    return 0;
}

int auth_allows(struct auth *a, const char *key_id, enum scope needs, struct err *err)
{
    (void)a, (void)key_id;
    return needs == SCOPE_NOBODY ? err_set(err, ERR_DENIED, "nobody may") : 0;
}

int auth_create(struct auth *a, const char *name, bool admin, char key[AUTH_KEY_SIZE],
                struct auth_info *ret, struct err *err)
{
    (void)a, (void)err;
    strcpy(key, "e2b_made");
    *ret = (struct auth_info){.id = "keyx", .name = name, .admin = admin};
    return 0;
}

void auth_each(struct auth *a, void (*each)(void *arg, const struct auth_info *k), void *arg)
{
    (void)a;
    each(arg, &(struct auth_info){.id = "root", .name = "first", .admin = true});
}

int auth_revoke(struct auth *a, const char *id, struct err *err)
{
    (void)a;
    return strcmp(id, "keyx") == 0 ? 0 : err_set(err, ERR_NOT_FOUND, "no API key %.64s", id);
}

void engine_owners(struct engine *g, void (*each)(void *arg, const char *key, size_t sandboxes),
                   void *arg)
{
    (void)g;
    each(arg, "gone", 2);
    each(arg, "root", 1);
}

/* ---- sessions ---- */

void session_create(struct ref ref, const struct session_opts *o, session_cb *cb, void *arg)
{
    (void)ref, (void)o;
    fake.session = cb;
    fake.arg = arg;
}

void session_get(struct ref ref, const char *id, session_cb *cb, void *arg)
{
    (void)id;
    session_create(ref, NULL, cb, arg);
}

void session_delete(struct ref ref, const char *id, engine_done_cb *cb, void *arg)
{
    terminal_resize(ref, id, 0, 0, cb, arg);
}

void session_list(struct ref ref, void (*each)(void *arg, const struct session_info *s),
                  engine_done_cb *cb, void *arg)
{
    (void)each;
    terminal_resize(ref, "", 0, 0, cb, arg);
}

void session_commands(struct ref ref, const char *id,
                      void (*each)(void *arg, const struct process_info *p), engine_done_cb *cb,
                      void *arg)
{
    (void)each;
    terminal_resize(ref, id, 0, 0, cb, arg);
}

void session_interrupt(struct ref ref, const char *id, process_value_cb *cb, void *arg)
{
    (void)ref, (void)id;
    fake_call(NULL, cb, arg);
}

struct process_stream *session_run(struct ref ref, const struct session_exec *o,
                                   const struct process_ops *ops, void *arg)
{
    return process_attach(ref, o->session, 0, true, 0, ops, arg);
}

struct process_call *session_start(struct ref ref, const char *session,
                                   const struct process_opts *o, process_started_cb *cb, void *arg)
{
    (void)ref, (void)session, (void)o, (void)cb;
    return fake_call(NULL, NULL, arg);
}

const char *session_ref(char out[PROCESS_REF_MAX + 1], const char *session, const char *command)
{
    snprintf(out, PROCESS_REF_MAX + 1, "%.64s/%.64s", session, command);
    return out;
}

const char *session_ref_command(const char *ref)
{
    const char *slash = strchr(ref, '/');

    return slash != NULL ? slash + 1 : ref;
}

#endif
