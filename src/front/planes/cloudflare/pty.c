/* pty.c - a shell on a terminal, over one WebSocket.
 *
 * Without a session it belongs to its connection: PTY_GRACE_MS after the last viewer, so that a
 * client that lost its network may return, it is killed with all its descendants. With a session it
 * is the terminal of that session, created once; a client that returns gets the output kept. */
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "front/plane/viewer.h"
#include "front/planes/cloudflare/internal.h"

#define PTY_GRACE_MS 5000u
#define PTY_PREFIX "pty-"

struct pty_in {
    uint64_t cols, rows;
    const char *shell, *session;
};

int cloudflare_check_upgrade(struct call *c, struct err *e)
{
    const char *upgrade = http_header(c->r, "Upgrade");

    if (upgrade != NULL && strcasecmp(upgrade, "websocket") == 0)
        return 0;
    return err_set(e, ERR_INVALID, "WebSocket upgrade required");
}

/* ---- whose it is ---- */

static const char *session_of(struct call *c, const struct pty_in *in)
{
    const char *header = http_header(c->r, "Session-Id");

    if (header != NULL && *header != '\0')
        return header;
    return in->session != NULL && *in->session != '\0' ? in->session : NULL;
}

/* ---- the request ---- */

static void started(void *arg, const struct process_started *m, const struct err *e)
{
    struct call *c = arg;
    const struct pty_in *in = c->in;
    /* its clients print what they do not know */
    struct viewer_opts o = {.dialect = &viewer_plain};

    if (!call_got(c, e))
        return;
    o.id = m->id;
    if (m->existed) {
        o.cols = (unsigned)in->cols;
        o.rows = (unsigned)in->rows;
    }
    viewer_open(c, &o);
}

static void pty_go(struct call *c, const void *query)
{
    const struct pty_in *in = query;
    const char *argv[] = {in->shell, NULL}, *session = session_of(c, in);
    char id[PROCESS_ID_MAX + 1] = "";
    struct process_term term = {
        .cols = (unsigned)in->cols, .rows = (unsigned)in->rows, .get = session != NULL};
    struct process_opts o = {.id = id,
                             .argv = in->shell != NULL ? argv : NULL,
                             .user = CLOUDFLARE_USER,
                             .cwd = CLOUDFLARE_ROOT,
                             .term = &term};

    if (session != NULL) {
        cloudflare_name(PTY_PREFIX, session, id);
    } else {
        o.leash = true;
        o.timeout_ms = PTY_GRACE_MS;
    }
    call_expect(c, &call_pending, NULL);
    process_start(c->ref, &o, started, c);
}

static void pty_run(struct call *c, const void *query)
{
    const struct pty_in *in = query;
    const char *session = session_of(c, in);
    struct err e;

    if (cloudflare_check_upgrade(c, &e) < 0 ||
        (session != NULL && cloudflare_check_session(session, &e) < 0))
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, pty_go);
}

static void pty_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct pty_in *)in = (struct pty_in){.cols = 80, .rows = 24};
}

/* clang-format off */
static const struct json_field pty_fields[] = {
    {"cols", JSON_FIELD_U64, offsetof(struct pty_in, cols), 1, TERMINAL_SIDE_MAX, false, "Columns. Default: 80."},
    {"rows", JSON_FIELD_U64, offsetof(struct pty_in, rows), 1, TERMINAL_SIDE_MAX, false, "Rows. Default: 24."},
    {"shell", JSON_FIELD_STR, offsetof(struct pty_in, shell), 1, ENGINE_PATH_MAX, false, "Program. Default: a login bash."},
    {"session", JSON_FIELD_STR, offsetof(struct pty_in, session), 0, CLOUDFLARE_SESSION_MAX, false, "Session id, instead of the header Session-Id."},
};
static const struct surface_input pty_input = {
    SURFACE_INPUT(pty_fields, struct pty_in), .defaults = pty_defaults};

const struct surface_row cloudflare_pty[] = {
    {{"GET", CLOUDFLARE_SANDBOX "/pty"}, SCOPE_RUN, pty_run, "ptyTerminal",
     "A shell over a WebSocket. Binary messages are bytes in both directions; text messages are JSON: resize from the client; ready, error and exit from the server. "
     "The key may be ?authorization=Bearer%20KEY.",
     .query = &pty_input, .status = 101, .failure = "exec_transport_error"},
    {.op = NULL},
};
/* clang-format on */
