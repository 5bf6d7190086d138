/* ports.c - which TCP ports programs in a sandbox listen on, and the URLs that reach them. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/file.h"
#include "front/planes/native/internal.h"

#define TEXT_MAX (1u << 20) /* of the kernel's table; what is beyond is not looked at */
#define PORTS_MAX 1024u
#define URL_MAX 512u
#define LISTENS 0x0A /* TCP_LISTEN, as the table has it */

struct port_view {
    uint64_t port;
    const char *address, *url;
};
struct ports_view {
    struct shape_bytes ports;
};
/* clang-format off */
static const struct shape_field port_fields[] = {
    {"port", SHAPE_U64, offsetof(struct port_view, port), "The port."},
    {"address", SHAPE_STR, offsetof(struct port_view, address), "Where the program listens: any or loopback. Both are reached through the URL."},
    {"url", SHAPE_STR, offsetof(struct port_view, url), "Where this server passes requests on to it."},
};
static SHAPE(port_shape, "Port", "A TCP port that a program in a sandbox listens on.", port_fields);
static const struct shape_field ports_fields[] = {
    {"ports", SHAPE_LIST, offsetof(struct ports_view, ports), "By number.", SHAPE_ALWAYS, &port_shape},
};
static SHAPE(ports_shape, "Ports", "The TCP ports that programs in a sandbox listen on.", ports_fields);
/* clang-format on */

/* The tables of procfs, one after the other. */
static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};

struct looking {
    struct call *c;
    size_t table;
    struct buf text;
    uint32_t found[PORTS_MAX]; /* port << 1 | loopback only; sorted, each port once */
    size_t n;
};

static void drop(void *state)
{
    buf_free(&((struct looking *)state)->text);
}

static void take_file(void *handle)
{
    file_cancel(handle);
}
static const struct call_source source = {.take_back = take_file};

/* Addresses in the table are hex of words in host order. */
static bool is_any(const char *hex)
{
    return hex[strspn(hex, "0")] == '\0';
}

static bool is_loopback(const char *hex)
{
    return strcmp(hex, "00000000000000000000000001000000") == 0 ||
           (strlen(hex) == 8 && strcmp(hex + 6, "7F") == 0);
}

/* In order of ports; one that listens on any address and on loopback is on any. */
static void add(struct looking *l, unsigned port, bool loopback)
{
    size_t i = 0;

    while (i < l->n && l->found[i] >> 1 < port)
        i++;
    if (i < l->n && l->found[i] >> 1 == port) {
        l->found[i] &= loopback ? l->found[i] : ~1u;
        return;
    }
    if (l->n == PORTS_MAX)
        return;
    memmove(&l->found[i + 1], &l->found[i], (l->n - i) * sizeof(l->found[0]));
    l->found[i] = port << 1 | (loopback ? 1u : 0u);
    l->n++;
}

static void reply(struct looking *l)
{
    autobuf struct buf rows = BUF_INIT(PORTS_MAX * (URL_MAX + 128u));
    const char *domain = native_domain(l->c);
    bool plain = strchr(domain, ':') != NULL || strcmp(domain, "localhost") == 0;

    for (size_t i = 0; i < l->n; i++) {
        char url[URL_MAX];
        struct port_view v = {l->found[i] >> 1, l->found[i] & 1 ? "loopback" : "any", url};

        str_fmt(url, sizeof(url), "%s://%u-%s.%s", plain ? "http" : "https", l->found[i] >> 1,
                l->c->ref.id, domain);
        shape_append(&rows, &port_shape, &v);
    }
    call_reply_shape(l->c, &ports_shape, &(struct ports_view){shape_list(&rows)});
}

static void look(struct looking *l);

static void on_data(void *arg, const char *p, size_t n)
{
    struct looking *l = arg;

    if (l->text.len + n < TEXT_MAX)
        buf_add(&l->text, p, n);
}

/* A sandbox without IPv6 has one table. */
static void on_done(void *arg, const struct err *e)
{
    struct looking *l = arg;
    struct call *c = l->c;
    char *save = NULL;

    if (!call_told(c))
        return;
    if (e != NULL && !(l->table > 0 && e->kind == ERR_NOT_FOUND)) {
        call_fail(c, e);
        return;
    }
    /* " 0: 0100007F:1F90 00000000:0000 0A ..."; others are skipped. */
    for (char *line = strtok_r((char *)(uintptr_t)buf_cstr(&l->text), "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char address[33];
        unsigned port, state;

        if (sscanf(line, " %*u: %32[0-9A-F]:%4X %*[0-9A-F]:%*4X %2X", address, &port, &state) !=
                3 ||
            state != LISTENS || port == 0)
            continue;
        if (is_any(address) || is_loopback(address))
            add(l, port, !is_any(address));
    }
    buf_clear(&l->text);
    l->table++;
    look(l);
}

/* procfs does not say how long its files are, so they come as streams; anything else is a file
 * that the tenant mounted there. */
static void on_content(void *arg, const struct file_content *content)
{
    struct looking *l = arg;
    struct err e;

    if (content->data == NULL && content->fd < 0)
        return;
    err_set(&e, ERR_CONFLICT, "%s in the sandbox is not the kernel's", tables[l->table]);
    if (call_told(l->c))
        call_fail(l->c, &e);
}

static void look(struct looking *l)
{
    static const struct file_read_ops ops = {
        .on_content = on_content, .on_data = on_data, .on_done = on_done};
    struct file_at at = {.ref = l->c->ref};

    if (l->table == ARRAY_LEN(tables)) {
        reply(l);
        return;
    }
    at.path = tables[l->table];
    call_expect(l->c, &source, file_read(&at, &ops, l));
}

static void ports_get(struct call *c, const void *in)
{
    struct looking *l = call_state(c, sizeof(*l), drop);

    (void)in;
    l->c = c;
    buf_init(&l->text, TEXT_MAX);
    look(l);
}

/* clang-format off */
const struct surface_row surface_ports[] = {
    {{"GET", "/v1/sandboxes/{id}/ports"}, SCOPE_READ, ports_get, "listPorts",
     "Lists the TCP ports that programs in a sandbox listen on, with the URLs that reach them.",
     .status = 200, .answers = {&ports_shape}},
    {.op = NULL},
};
/* clang-format on */
