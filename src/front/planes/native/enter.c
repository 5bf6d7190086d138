/* enter.c - see enter.h. A call uses the workspace until its answer, stream or WebSocket ends. */
#include "front/planes/native/enter.h"

#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/internal.h"
#include "front/workspace/workspace.h"

#define WORKSPACES "/v1/workspaces/"

/* What follows the name in the path.
 *
 * EXTEND  A surface of sandboxes that workspaces have as well: its row. */
static const struct part {
    const char *name;
    bool looks; /* never makes or resumes the sandbox, and is no use of it */
} parts[] = {
    {"exec", false},      {"processes", false}, {"sessions", false}, {"terminals", false},
    {"files", false},     {"archive", false},   {"watches", false},  {"git", false},
    {"snapshots", false}, {"fork", false},      {"ports", false},    {"metrics", true},
    {"logs", true},
};

static const struct part *part_of(const char *rest)
{
    size_t n = strcspn(rest, "/");

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strlen(parts[i].name) == n && memcmp(parts[i].name, rest, n) == 0)
            return &parts[i];
    return NULL;
}

bool workspace_alias(struct call *c, const char *path, struct buf *out)
{
    const char *name = path + strlen(WORKSPACES);
    const char *rest;

    if (strncmp(path, WORKSPACES, strlen(WORKSPACES)) != 0)
        return false;
    rest = strchr(name, '/');
    if (rest == NULL || (size_t)(rest - name) > WORKSPACE_CALL_MAX || part_of(rest + 1) == NULL)
        return false;
    str_fmt(c->workspace, sizeof(c->workspace), "%.*s", (int)(rest - name), name);
    buf_addf(out, "/v1/sandboxes/%s", name);
    return !out->failed;
}

static int epoch_of(struct call *c, uint64_t *ret, struct err *e)
{
    const char *sent = http_header(c->r, NATIVE_EPOCH);

    *ret = 0;
    if (sent != NULL && str_u64(sent, INT64_MAX, ret) < 0)
        return err_set(e, ERR_INVALID, NATIVE_EPOCH ": expected a number");
    return 0;
}

static void aim(struct call *c, const char *sandbox, uint64_t epoch)
{
    char text[24];

    str_fmt(text, sizeof(text), "%llu", (unsigned long long)epoch);
    http_reply_header(c->r, NATIVE_EPOCH, text);
    call_aim(c, NULL, sandbox);
}

static void leave(void *use)
{
    workspace_leave(use);
}

static const struct call_source use_source = {.take_back = leave};

static void granted(struct call *c, const struct workspace_grant *g)
{
    http_on_end(c->r, leave, g->use);
    aim(c, g->sandbox, g->epoch);
}

static void on_use(void *arg, const struct workspace_grant *g, const struct err *e)
{
    struct call *c = arg;

    if (!call_got(c, e))
        return; /* (a client that is gone has left by use_source) */
    granted(c, g);
    plane_go_on(c);
}

static int look(struct call *c, struct err *e)
{
    struct workspace_info w;
    uint64_t epoch;

    if (workspace_get(native_workspaces(c), c->ref.key, c->workspace, &w, e) < 0 ||
        epoch_of(c, &epoch, e) < 0)
        return -1;
    if (epoch != 0 && epoch != w.epoch)
        return err_set(e, ERR_FENCED,
                       "workspace %s is at epoch %llu, not %llu: its sandbox was made anew since",
                       c->workspace, (unsigned long long)w.epoch, (unsigned long long)epoch);
    if (w.sandbox[0] == '\0')
        return err_set(e, ERR_CONFLICT,
                       "workspace %s is %s: it has no sandbox now; a command in it makes one",
                       c->workspace, w.state);
    aim(c, w.sandbox, w.epoch);
    return 0;
}

int workspace_enter(struct call *c, struct err *e)
{
    struct workspace_grant now;
    struct workspace_use *u;
    uint64_t epoch;
    int r;

    if (c->workspace[0] == '\0')
        return 0;
    if (part_of(strchr(buf_cstr(&c->path) + strlen("/v1/sandboxes/"), '/') + 1)->looks)
        return look(c, e);
    if (epoch_of(c, &epoch, e) < 0)
        return -1;
    r = workspace_use(native_workspaces(c), c->ref.key, c->workspace, epoch, on_use, c, &u, &now,
                      e);
    if (r == 1)
        granted(c, &now);
    else if (r == 0)
        call_expect(c, &use_source, u);
    return r < 0 ? -1 : 1 - r;
}
