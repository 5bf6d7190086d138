/* admit.c - authorization for the ports of a sandbox, and the Host the server inside sees. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/internal.h"
#include "http/http.h"

#define PORT_MARK "${PORT}"

/* The mask with the port in place of its mark. */
static void mask(const char *text, unsigned port, char out[E2B_HOST_MAX])
{
    const char *mark = strstr(text, PORT_MARK);

    if (mark == NULL)
        str_fmt(out, E2B_HOST_MAX, "%s", text);
    else
        str_fmt(out, E2B_HOST_MAX, "%.*s%u%s", (int)(mark - text), text, port,
                mark + strlen(PORT_MARK));
}

bool e2b_admit(void *plane, struct http_req *r, const struct sandbox *s, unsigned port,
               char host[E2B_HOST_MAX], const char **ret_why)
{
    const struct e2b *p = CONTAINER_OF((struct plane *)plane, struct e2b, api);
    struct e2b_options o = e2b_options_of(s);

    host[0] = '\0';
    *ret_why = "Sandbox is secured with traffic access token. Token header "
               "'e2b-traffic-access-token' is missing or invalid";
    if (o.private &&
        !token_is(p->o.tokens, TOKEN_TRAFFIC, s->id, http_header(r, "E2B-Traffic-Access-Token")))
        return false;
    if (o.mask_host[0] != '\0')
        mask(o.mask_host, port, host);
    return true;
}
