/* process_waits.c - until a process ends, a port answers or a text is printed. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/run/exec.h"
#include "front/planes/native/run/processes.h"

/* clang-format off */
struct value_view {
    uint64_t value;
};
static const struct shape_field port_fields[] = {
    {"port", SHAPE_U64, offsetof(struct value_view, value), "The port that answers."},
};
static SHAPE(port_shape, "PortOpen", "Something listens on the port.", port_fields);
static const struct shape_field position_fields[] = {
    {"position", SHAPE_U64, offsetof(struct value_view, value), "Position behind the text in the output."},
};
static SHAPE(position_shape, "LogFound", "The text was printed.", position_fields);
/* clang-format on */

struct wait_in {
    const char *what, *text, *stream;
    uint64_t port, since, timeout_ms;
    json_t *http;
};

struct wait_http {
    const char *path, *status;
};

/* clang-format off */
static const struct json_field wait_fields[] = {
    {"for", JSON_FIELD_STR, offsetof(struct wait_in, what), 0, 16, false,
     "exit (the default), port or log."},
    {"port", JSON_FIELD_U64, offsetof(struct wait_in, port), 1, 65535, false,
     "For port: until something in the sandbox listens on this TCP port."},
    {"http", JSON_FIELD_ANY, offsetof(struct wait_in, http), 0, 0, false,
     "For port: until what listens there also answers a GET as it should."},
    {"text", JSON_FIELD_STR, offsetof(struct wait_in, text), 1, PROCESS_TEXT_MAX, false,
     "For log: until this is printed."},
    {"since", JSON_FIELD_U64, offsetof(struct wait_in, since), 0, 0, false,
     "For log: look from this position on; without it from the beginning."},
    {"stream", JSON_FIELD_STR, offsetof(struct wait_in, stream), 0, 16, false,
     "For log: stdout, stderr or both (the default)."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct wait_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false,
     "Give up after this many ms (408); 0 or nothing: never."},
};
/* clang-format on */
static const struct json_field http_fields[] = {
    {"path", JSON_FIELD_STR, offsetof(struct wait_http, path), 1, ENGINE_PATH_MAX, false,
     "What to ask for; without it /."},
    {"status", JSON_FIELD_STR, offsetof(struct wait_http, status), 1, 16, false,
     "The status, or the range of it, that counts: 204 or 200-399, which is the default."},
};
static const struct surface_nested wait_nested[] = {{"http", http_fields, ARRAY_LEN(http_fields)},
                                                    {0}};
static const struct surface_input wait_input = {SURFACE_INPUT(wait_fields, struct wait_in),
                                                .nested = wait_nested};

static void waited(struct call *c, const struct shape *s, uint64_t value, const struct err *e)
{
    if (!call_told(c))
        return;
    if (e != NULL)
        call_fail(c, e);
    else
        call_reply_shape(c, s, &(struct value_view){value});
}

/* The engine tells of an open port; which one is what was asked for. */
struct port_wait {
    struct call *c;
    uint64_t port;
};

static void port_open(void *arg, uint64_t value, const struct err *e)
{
    struct port_wait *w = arg;

    (void)value;
    waited(w->c, &port_shape, w->port, e);
}

static void log_found(void *arg, uint64_t value, const struct err *e)
{
    waited(arg, &position_shape, value, e);
}

static int wait_exit(struct call *c, const struct wait_in *in, struct err *e)
{
    (void)e;
    call_expect(c, &call_wait,
                process_wait(c->ref, call_param(c, 1), in->timeout_ms, process_ended, c));
    return 0;
}

/* "204" or "200-399", three digits each. */
static int read_statuses(const char *text, struct process_http *h, struct err *e)
{
    size_t n = strlen(text);
    char low[8] = "", high[8] = "";
    uint64_t min, max;

    if (n == 3 || (n == 7 && text[3] == '-')) {
        memcpy(low, text, 3);
        memcpy(high, n == 3 ? text : text + 4, 3);
    }
    if (str_u64(low, 999, &min) < 0 || str_u64(high, 999, &max) < 0 || min < 100 || max < min)
        return err_set(e, ERR_INVALID, "http: status: expected 204 or 200-399");
    h->status_min = (unsigned)min;
    h->status_max = (unsigned)max;
    return 0;
}

static int decode_http(json_t *http, struct process_http *ret, struct err *e)
{
    struct wait_http in = {.path = "/", .status = "200-399"};

    if (json_decode(http, http_fields, ARRAY_LEN(http_fields), &in, e) < 0)
        return err_wrap(e, "http");
    if (in.path[0] != '/')
        return err_set(e, ERR_INVALID, "http: path: expected one that begins with /");
    for (const char *p = in.path; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '#')
            return err_set(e, ERR_INVALID, "http: path: blanks and the like must be %%-encoded");
    ret->path = in.path;
    return read_statuses(in.status, ret, e);
}

static int wait_port(struct call *c, const struct wait_in *in, struct err *e)
{
    struct process_http http;
    struct port_wait *w;

    if (in->http != NULL && decode_http(in->http, &http, e) < 0)
        return -1;
    if (in->port == 0)
        return err_set(e, ERR_INVALID, "port: required to wait for a port");
    w = call_state(c, sizeof(*w), NULL);
    if (w == NULL)
        return 0;
    *w = (struct port_wait){c, in->port};
    call_expect(c, &call_wait,
                process_wait_port(c->ref, call_param(c, 1), (unsigned)in->port,
                                  in->http != NULL ? &http : NULL, in->timeout_ms, port_open, w));
    return 0;
}

static int wait_log(struct call *c, const struct wait_in *in, struct err *e)
{
    unsigned streams;

    if (in->text == NULL)
        return err_set(e, ERR_INVALID, "text: required to wait for a log");
    if (command_streams(in->stream, &streams, e) < 0)
        return -1;
    call_expect(c, &call_wait,
                process_wait_log(c->ref, call_param(c, 1), in->text, strlen(in->text), in->since,
                                 streams, in->timeout_ms, log_found, c));
    return 0;
}

static const struct {
    const char *name;
    int (*wait)(struct call *c, const struct wait_in *in, struct err *e);
} waits[] = {{"exit", wait_exit}, {"port", wait_port}, {"log", wait_log}};

static void process_wait_(struct call *c, const void *body)
{
    const struct wait_in *in = body;
    const char *what = in->what != NULL ? in->what : "exit";
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        if (strcmp(what, waits[i].name) != 0)
            continue;
        if (waits[i].wait(c, in, &e) < 0)
            call_fail(c, &e);
        return;
    }
    err_set(&e, ERR_INVALID, "for: expected exit, port or log");
    call_fail(c, &e);
}

/* clang-format off */
const struct surface_row surface_process_waits[] = {
    {{"POST", PROCESSES "/{pid}/wait"}, SCOPE_READ, process_wait_, "waitForProcess",
     "Waits until the process ends, a port answers or a text is printed; 410 if it ends first.",
     .body = &wait_input, .status = 200, .answers = {&exit_shape, &port_shape, &position_shape}},
    {.op = NULL},
};
/* clang-format on */
