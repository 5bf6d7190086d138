/* front.c - wiring: the order in which parts are made and freed, and which plane
 * answers which request. */
#include "front/front.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/own.h"
#include "config/config.h"
#include "front/auth/auth.h"
#include "front/auth/token.h"
#include "front/engine/engine.h"
#include "front/harden.h"
#include "front/plane/kind.h"
#include "front/planes/cloudflare/cloudflare.h"
#include "front/planes/e2b/e2b.h"
#include "front/planes/native/native.h"
#include "front/proxy/host.h"
#include "front/proxy/proxy.h"
#include "front/quota/quota.h"
#include "front/store/store.h"
#include "front/workspace/workspace.h"
#include "http/http.h"
#include "mem/mem.h"
#include "json/write.h"

#define FRONT_DATABASE "/proc/self/fd/6/cove.db" /* FRONT_FD_STATE */
#define FRONT_DRAIN_MS 5000 /* then streams that never end by themselves are cut */
#define FRONT_KEY_ENV "COVE_KEY_SHA256"

/* The APIs that are served. A plane sees those above it (plane_opts.documented).
 *
 * EXTEND  Another plane: its row. */
static const struct plane_kind *const kinds[] = {&cloudflare_kind, &native_kind, &e2b_kind};

struct front {
    struct config config;
    enum { MODE_SANDBOXES, MODE_HOST, MODE_CONTAINER } mode;
    struct loop *loop;
    struct store *store;
    struct quota_book *quotas;
    struct auth *auth;
    struct token_mint *tokens;
    struct engine *engine;
    struct workspaces *workspaces;
    struct plane *planes[ARRAY_LEN(kinds)]; /* in that order; NULL: not made yet */
    struct proxy *proxy;
    struct http_server *server;
    struct loop_timer drain;
    int status; /* to exit with */
    bool ending;
};

/* ---- requests ---- */

static void on_owner(void *arg, const char *whose, int by)
{
    struct quota_user *u = quota_user(((struct front *)arg)->quotas, whose);

    if (u != NULL)
        u->used.of[QUOTA_connections] += (uint64_t)by;
}

static struct plane *plane_of(struct front *f, const struct plane_kind *kind)
{
    size_t i = 0;

    while (kinds[i] != kind)
        i++;
    return f->planes[i];
}

static void refuse(struct http_req *r, enum err_kind kind, const char *message)
{
    autobuf struct buf body = BUF_INIT(1024);
    struct json_w w;

    jw_init(&w, &body);
    jw_open(&w);
    jw_key(&w, "error");
    jw_open(&w);
    jw_kstr(&w, "code", err_code(kind));
    jw_kstr(&w, "message", message);
    jw_kstr(&w, "request_id", http_request_id(r));
    jw_close(&w);
    jw_close(&w);
    http_reply(r, err_http(kind), "application/json", buf_data(&body), body.len);
}

static void nowhere(struct http_req *r)
{
    refuse(r, ERR_NOT_FOUND, "nothing is served at this path");
}

static void refuse_host(struct http_req *r)
{
    char message[512];

    snprintf(
        message, sizeof(message),
        "Host: '%.200s' is not a name of this server; use its address, localhost or its domain, "
        "or add the name to its setting `hosts`",
        http_head(r)->host.p);
    refuse(r, ERR_DENIED, message);
}

static void left_port(void *user)
{
    quota_give(user, QUOTA_ports);
}

/* Anyone may call a port: what is under way counts to the key of the sandbox. */
static void to_port(struct front *f, struct http_req *r, const struct proxy_target *t)
{
    const struct sandbox *s = engine_find(f->engine, t->id);
    struct quota_user *u = s != NULL ? quota_user(f->quotas, s->key) : NULL;
    struct err e;

    if (quota_take(u, QUOTA_ports, &e) < 0) {
        http_reply_header(r, "Retry-After", "1");
        proxy_refuse(r, err_http(e.kind), t, e.msg);
        return;
    }
    http_on_end(r, left_port, u);
    proxy_handle(f->proxy, r, t);
}

/* A port by a path; see proxy.h. */
static void to_preview(struct front *f, struct http_req *r)
{
    struct proxy_target t;

    if (proxy_target_path(CLOUDFLARE_PREVIEW, http_head(r)->path.p, &t))
        to_port(f, r, &t);
    else
        nowhere(r);
}

/* The length of the door's path if it matches; 0 if it does not. */
static size_t fits(const char *door, const struct http_str *path)
{
    size_t n = strlen(door);

    return path->len >= n && memcmp(path->p, door, n) == 0 && (path->len == n || path->p[n] == '/')
               ? n
               : 0;
}

/* A request that names a sandbox goes to its port, for every path. */
static bool to_sandbox(struct front *f, struct http_req *r)
{
    struct proxy_target t;
    const char *why = NULL;
    int named = proxy_target_of(r, &t, &why);

    if (named < 0)
        proxy_refuse(r, 400, NULL, why);
    else if (named > 0 && t.port == E2B_DATA_PORT)
        e2b_data(plane_of(f, &e2b_kind), r, t.id);
    else if (named > 0)
        to_port(f, r, &t);
    return named != 0;
}

static void on_request(void *arg, struct http_req *r)
{
    const struct http_str *path = &http_head(r)->path;
    const struct plane_door *door = NULL;
    struct plane *plane = NULL;
    struct front *f = arg;
    size_t most = 0;

    if (!host_is_ours(http_head(r)->host.p, f->config.domain, f->config.hosts)) {
        refuse_host(r);
        return;
    }
    if (to_sandbox(f, r))
        return;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (const struct plane_door *d = kinds[i]->doors; d->path != NULL; d++)
            if (fits(d->path, path) > most) {
                most = fits(d->path, path);
                door = d;
                plane = f->planes[i];
            }
    if (door != NULL && door->handle != NULL)
        door->handle(plane, r);
    else if (door != NULL)
        plane_handle(plane, r);
    else if (fits(CLOUDFLARE_PREVIEW, path) > 0)
        to_preview(f, r);
    else
        nowhere(r);
}

/* ---- the end ---- */

static void end(struct front *f, int status)
{
    f->status = status;
    loop_stop(f->loop);
}

static void on_drained(void *arg)
{
    end(arg, 0);
}

static void on_drain_over(struct loop_timer *t)
{
    end(CONTAINER_OF(t, struct front, drain), 0);
}

static void on_signal(void *arg, int signo)
{
    struct front *f = arg;

    (void)signo;
    if (f->ending || f->server == NULL) {
        end(f, 0);
        return;
    }
    f->ending = true;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        plane_drain(f->planes[i]);
    loop_timer_set(f->loop, &f->drain, FRONT_DRAIN_MS, on_drain_over);
    http_server_drain(f->server, on_drained, f);
}

static void on_lost(void *arg, const struct err *why)
{
    log_error("%s", why->msg);
    end(arg, err_exit(ERR_UNAVAILABLE));
}

/* ---- the beginning ---- */

/* Requests need fds too (for a connection to an init or a port, or a file that is sent):
 * idle connections must not take them all. */
static size_t conns_max(const struct config *c)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / 3 >= c->requests)
        return c->requests;
    log_info("at most %llu concurrent connections: %llu files may be open",
             (unsigned long long)files.rlim_cur / 3, (unsigned long long)files.rlim_cur);
    return files.rlim_cur / 3;
}

/* Until here connections wait in the listener's queue. */
static void on_ready(void *arg)
{
    struct front *f = arg;
    struct http_server_opts o = {.loop = f->loop,
                                 .listen_fd = FRONT_FD_LISTEN,
                                 .on_request = on_request,
                                 .arg = f,
                                 .conns_max = conns_max(&f->config),
                                 .on_owner = on_owner};
    struct err e;

    o.peer_max = f->config.peer_connections != 0 ? f->config.peer_connections : o.conns_max / 2;

    if (http_server_new(&o, &f->server, &e) < 0) {
        log_error("%s", e.msg);
        end(f, err_exit(e.kind));
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        f->planes[i]->server = f->server;
    workspaces_start(f->workspaces);
    engine_serving(f->engine);
}

static int make_loop(struct front *f, struct err *e)
{
    signal(SIGPIPE, SIG_IGN);
    if (loop_new(&f->loop, e) < 0 || loop_signal(f->loop, SIGTERM, on_signal, f, e) < 0)
        return -1;
    loop_measure(f->loop);
    /* Ctrl-C reaches the whole process group; the keeper decides what it means. */
    return loop_signal(f->loop, SIGINT, NULL, NULL, e);
}

static int make_store(struct front *f, struct err *e)
{
    return store_open(FRONT_DATABASE, &f->store, e);
}

static int make_quotas(struct front *f, struct err *e)
{
    const struct config *c = &f->config;
#define DEFAULT(c, B, member, ...) [QUOTA_##member] = (c)->quota_##member,
    struct quotas defaults = {{QUOTAS(DEFAULT, c, _)}};
#undef DEFAULT

    (void)e;
    f->quotas = quota_book_new(&defaults);
    quota_hold_max(f->quotas, c->buffers);
    return 0;
}

static int make_auth(struct front *f, struct err *e)
{
    if (auth_new(f->store, getenv(FRONT_KEY_ENV), &f->auth, e) < 0)
        return -1;
    auth_keep_book(f->auth, f->quotas);
    return 0;
}

static int make_tokens(struct front *f, struct err *e)
{
    return token_open(FRONT_FD_STATE, &f->tokens, e);
}

static int make_engine(struct front *f, struct err *e)
{
    struct engine_opts o = {.loop = f->loop,
                            .config = &f->config,
                            .store = f->store,
                            .quotas = f->quotas,
                            .keeper_fd = FRONT_FD_KEEPER,
                            .run_fd = FRONT_FD_RUN,
                            .state_fd = FRONT_FD_STATE,
                            .first_key = AUTH_ROOT,
                            .host = f->mode != MODE_SANDBOXES,
                            .on_ready = on_ready,
                            .on_lost = on_lost,
                            .arg = f};

    return engine_new(&o, &f->engine, e);
}

static int make_workspaces(struct front *f, struct err *e)
{
    struct workspaces_opts o = {.loop = f->loop,
                                .engine = f->engine,
                                .store = f->store,
                                .quotas = f->quotas,
                                .config = &f->config,
                                .decode = native_spec};

    return workspaces_new(&o, &f->workspaces, e);
}

/* With port 0 in the settings the keeper chose the port. */
static unsigned listening_port(void)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);

    if (getsockname(FRONT_FD_LISTEN, (struct sockaddr *)&a, &n) < 0)
        return 0;
    if (a.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a)->sin6_port);
    return a.ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)&a)->sin_port) : 0;
}

static int make_planes(struct front *f, struct err *e)
{
    struct plane *documented[ARRAY_LEN(kinds)];
    struct plane_opts o = {.engine = f->engine,
                           .auth = f->auth,
                           .tokens = f->tokens,
                           .workspaces = f->workspaces,
                           .config = &f->config,
                           .port = listening_port(),
                           .documented = documented};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i]->make(&o, &f->planes[i], e) < 0)
            return err_wrap(e, "%s", kinds[i]->name);
        if (kinds[i]->documented)
            documented[o.ndocumented++] = f->planes[i];
    }
    return 0;
}

static int make_proxy(struct front *f, struct err *e)
{
    struct proxy_opts o = {
        .loop = f->loop, .engine = f->engine, .admit = e2b_admit, .arg = plane_of(f, &e2b_kind)};

    _Static_assert(PROXY_HOST_MAX == E2B_HOST_MAX, "one Host, two names");
    (void)e;
    f->proxy = proxy_new(&o);
    return 0;
}

static int settings(struct front *f, int argc, char **argv, struct err *e)
{
    int level;

    if (config_load(&f->config, argc, argv, e) < 0)
        return -1;
    level = log_level_from(f->config.log_level);
    if (level < 0)
        return err_set(e, ERR_INVALID, "log-level: '%s' is not error, warn, info or debug",
                       f->config.log_level);
    log_open("front", (enum log_level)level);
    return 0;
}

static int make_all(struct front *f, struct err *e)
{
    static int (*const parts[])(struct front * f, struct err * e) = {
        make_loop,   make_store,      make_quotas, make_auth, make_tokens,
        make_engine, make_workspaces, make_planes, make_proxy};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i](f, e) < 0)
            return -1;
    return 0;
}

/* Connections first: their requests use talks of the engine, and the engine tells the
 * planes when those end. */
static void unmake(struct front *f)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (f->planes[i] != NULL)
            f->planes[i]->server = NULL;
    http_server_free(f->server);
    proxy_free(f->proxy);
    engine_free(f->engine);
    workspaces_free(f->workspaces);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (f->planes[i] != NULL)
            kinds[i]->free(f->planes[i]);
    token_free(f->tokens);
    auth_free(f->auth);
    quota_book_free(f->quotas);
    store_close(f->store);
    loop_free(f->loop);
    config_free(&f->config);
}

static int mode_of(const char *word)
{
    if (word == NULL)
        return MODE_SANDBOXES;
    return strcmp(word, FRONT_MODE_CONTAINER) == 0 ? MODE_CONTAINER : MODE_HOST;
}

int front_main(int argc, char **argv)
{
    struct front f = {0};
    struct err e;

    mem_for_json();
    mem_give_back();
    f.mode = mode_of(getenv(FRONT_MODE_ENV));
    if (settings(&f, argc, argv, &e) < 0 ||
        harden(FRONT_FD_KEEPER, f.mode != MODE_SANDBOXES, &e) < 0 || harden_nofile(&e) < 0 ||
        make_all(&f, &e) < 0 || loop_run(f.loop, &e) < 0) {
        log_error("%s", e.msg);
        f.status = err_exit(e.kind);
    }
    unmake(&f);
    return f.status;
}
