/* refuse.c - what a client is told when nothing inside can answer. */
#include "base/own.h"
#include "front/proxy/proxy.h"
#include "http/http.h"
#include "json/write.h"

void proxy_refuse(struct http_req *r, int status, const struct proxy_target *t, const char *message)
{
    autobuf struct buf body = BUF_INIT(4096);
    struct json_w w;

    jw_init(&w, &body);
    jw_open(&w);
    if (t != NULL)
        jw_kstr(&w, "sandboxId", t->id);
    jw_kstr(&w, "message", message);
    if (t != NULL && t->port != 0)
        jw_ku64(&w, "port", t->port);
    jw_ku64(&w, "code", (uint64_t)status);
    jw_close(&w);
    http_reply(r, status, "application/json", buf_data(&body), body.len);
}
