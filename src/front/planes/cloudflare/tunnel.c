/* tunnel.c - a URL for a port of a sandbox: a host name of its own or, without wildcard DNS, a path.
 * The tenant serves it, so below the path it gets an opaque origin and no cookies or keys
 * (proxy.h). */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/cloudflare/internal.h"

#define PORT_MIN 1024u
#define PORT_TAKEN 3000u /* the reference's own */
#define LABEL_MAX 64u
#define URL_MAX 512u

struct tunnel_in {
    const char *name;
};

static int port_of(const struct call *c, unsigned *ret, struct err *e)
{
    uint64_t port;

    if (str_u64(call_param(c, 1), 65535, &port) < 0 || port < PORT_MIN || port == PORT_TAKEN)
        return err_set(e, ERR_INVALID, "Invalid port");
    *ret = (unsigned)port;
    return 0;
}

/* A DNS label in lower case. */
static int check_name(const char *name, struct err *e)
{
    size_t n = strlen(name);

    if (n >= 1 && n <= ENGINE_TUNNEL_NAME_MAX && name[0] != '-' && name[n - 1] != '-' &&
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0')
        return 0;
    return err_set(e, ERR_INVALID, "Tunnel name '%.63s' is not a valid DNS label", name);
}

/* ---- answers ---- */

struct tunnel_view {
    const char *id, *url, *hostname, *path, *name;
    uint64_t port, created_ms;
};
/* clang-format off */
static const struct shape_field tunnel_fields[] = {
    {"id", SHAPE_STR, offsetof(struct tunnel_view, id), "Id."},
    {"port", SHAPE_U64, offsetof(struct tunnel_view, port), "Port inside the sandbox."},
    {"url", SHAPE_STR, offsetof(struct tunnel_view, url), "URL; no key required."},
    {"hostname", SHAPE_STR, offsetof(struct tunnel_view, hostname), "Host of the URL."},
    {"createdAt", SHAPE_TIME, offsetof(struct tunnel_view, created_ms), "Time of creation."},
    {"name", SHAPE_STR, offsetof(struct tunnel_view, name), "As given.", SHAPE_OMITTED},
    {"path", SHAPE_STR, offsetof(struct tunnel_view, path), "Path of the same tunnel on this server's own host, for use without wildcard DNS."},
};
static SHAPE(tunnel_shape, "CloudflareTunnel", "A port that is open to anyone with its URL.", tunnel_fields);
/* clang-format on */

static void reply_tunnel(struct call *c, const struct sandbox_tunnel *t)
{
    const char *domain = cloudflare_domain(c);
    char id[LABEL_MAX], label[LABEL_MAX], url[URL_MAX], host[URL_MAX], path[URL_MAX];
    struct tunnel_view v = {.id = id,
                            .url = url,
                            .hostname = host,
                            .path = path,
                            .name = t->name,
                            .port = t->port,
                            .created_ms = t->created_ms};

    str_fmt(id, sizeof(id), "%u-%s", t->port, c->ref.id);
    str_fmt(label, sizeof(label), "%.40s-%.*s", id, ENGINE_TUNNEL_TOKEN, t->token);
    str_fmt(url, sizeof(url), "%s://%s.%s", cloudflare_scheme(c), label, domain);
    str_fmt(host, sizeof(host), "%s.%.*s", label, (int)strcspn(domain, ":"), domain);
    str_fmt(path, sizeof(path), CLOUDFLARE_PREVIEW "/%s/", label);
    call_reply_shape(c, &tunnel_shape, &v);
}

/* ---- requests ---- */

static void open_go(struct call *c, const void *body)
{
    const struct tunnel_in *in = body;
    struct sandbox_tunnel t;
    unsigned port;
    struct err e;

    if (port_of(c, &port, &e) < 0 ||
        engine_tunnel_open(c->ref, port, in->name != NULL ? in->name : "", &t, &e) < 0)
        call_fail(c, &e);
    else
        reply_tunnel(c, &t);
}

static void open_run(struct call *c, const void *body)
{
    const struct tunnel_in *in = body;
    unsigned port;
    struct err e;

    if (port_of(c, &port, &e) < 0 || (in->name != NULL && check_name(in->name, &e) < 0))
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, open_go);
}

static void close_run(struct call *c, const void *in)
{
    unsigned port;
    struct err e;

    (void)in;
    if (port_of(c, &port, &e) < 0 ||
        (*c->ref.id != '\0' && engine_tunnel_close(c->ref, port, &e) < 0))
        call_fail(c, &e);
    else
        call_reply_none(c);
}

/* clang-format off */
static const struct json_field tunnel_in_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct tunnel_in, name), 0, 256, false, "Name, a DNS label; stored, and not part of the URL."},
};
static const struct surface_input tunnel_input = {SURFACE_INPUT(tunnel_in_fields, struct tunnel_in)};

const struct surface_row cloudflare_tunnel[] = {
    {{"POST", CLOUDFLARE_SANDBOX "/tunnel/{port}"}, SCOPE_RUN, open_run, "createTunnel",
     "Opens a port to anyone with its URL; an open port is unchanged.",
     .body = &tunnel_input, .status = 200, .answers = {&tunnel_shape}, .failure = "tunnel_error"},
    {{"DELETE", CLOUDFLARE_SANDBOX "/tunnel/{port}"}, SCOPE_RUN, close_run, "deleteTunnel",
     "Closes a tunnel; its URL becomes invalid.",
     .status = 204, .failure = "tunnel_error"},
    {.op = NULL},
};
/* clang-format on */
