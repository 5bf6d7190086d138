/* proxy.h - HTTP into a sandbox: a request is relayed over one connection to a port inside, which
 * later requests for the same port may use.
 *
 * Both sides may be hostile to each other and to us. The request is parsed by our
 * server and written again, the answer by http/answer.h and written again, so no two
 * programs read the same bytes differently. Bodies stream in both directions; a slow side
 * delays only the other side. An upgrade (WebSocket) that the server inside
 * agrees to becomes a tunnel of bytes. There is no limit to how long any of it takes.
 *
 * A request is for a sandbox by its host, or by a path (proxy_target_path()): then what is
 * served shares a host with us, and so it gets an origin of its own, no cookie and no key.
 *
 * The socket comes from the sandbox's init, connected inside: services on 127.0.0.1
 * are reached, whatever the sandbox's network. */
#ifndef FRONT_PROXY_PROXY_H
#define FRONT_PROXY_PROXY_H

#include "base/err.h"
#include "front/proxy/target.h"

struct http_req;
struct loop;
struct proxy;

#define PROXY_CONNECT_MS 10000 /* until the server inside accepts; then 504 */

#define PROXY_HOST_MAX 256

struct proxy_opts { /* must outlive the proxy */
    struct loop *loop;
    struct engine *engine;
    /* Whether a request may reach that port. false: 403, and *ret_why says why. `host`:
     * what the server inside is told as Host, "" for what the client said. */
    bool (*admit)(void *arg, struct http_req *r, const struct sandbox *s, unsigned port,
                  char host[PROXY_HOST_MAX], const char **ret_why);
    void *arg;
};
struct proxy *proxy_new(const struct proxy_opts *o);
/* After the server, whose connections are relayed, and before the engine. */
void proxy_free(struct proxy *p);
void proxy_handle(struct proxy *p, struct http_req *r, const struct proxy_target *t);

/* As E2B's own gateway: {"sandboxId":…,"message":…,"port":…,"code":…}. `t` may be
 * NULL; its port is left out when it is 0. */
void proxy_refuse(struct http_req *r, int status, const struct proxy_target *t,
                  const char *message);
#define PROXY_NOT_FOUND "The sandbox was not found"
#define PROXY_CLOSED "The sandbox is running but port is not open"

#endif
