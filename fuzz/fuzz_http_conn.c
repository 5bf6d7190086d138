/* fuzz_http_conn.c - a whole connection: any bytes of a client to a server that echoes
 * bodies, streams them, or upgrades, by path. */
#include "fuzz_peer.h"

static void echo(struct http_req *r, struct buf *body, void *arg)
{
    (void)arg;
    http_reply(r, 200, "text/plain", buf_data(body), body->len);
}

static void on_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    (void)arg;
    http_write(r, p, n);
}

static void on_end(struct http_req *r, void *arg)
{
    (void)arg;
    http_reply_end(r);
}

static void on_request(void *arg, struct http_req *r)
{
    const char *path = http_head(r)->path.p;

    (void)arg;
    FUZZ_MUST(path[0] == '/' && http_head(r)->path.len == strlen(path));
    if (path[1] == 's') {
        http_reply_begin(r, 200, "text/plain");
        http_body_stream(r, on_data, on_end, NULL);
    } else if (path[1] == 'w') {
        http_ws_accept(r, NULL, &fuzz_ws_ops, NULL);
    } else if (path[1] == 'n') {
        http_reply(r, 200, "text/plain", http_header(r, "x"), 0);
    } else {
        http_body_collect(r, 64, echo, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_converse(on_request, "", data, n);
    return 0;
}
