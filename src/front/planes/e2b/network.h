/* network.h - network options of E2B's create and update. */
#ifndef FRONT_PLANES_E2B_NETWORK_H
#define FRONT_PLANES_E2B_NETWORK_H

#include "front/engine/engine.h"
#include "front/planes/e2b/internal.h"
#include "json/read.h"

struct network_rules {
    struct sandbox_rule rules[ENGINE_RULES_MAX];
    size_t n;
};

/* allowOut and denyOut of the object, which may be NULL; without `internet` everything
 * else is denied too. What is not offered is refused. */
int network_rules(json_t *network, bool internet, struct network_rules *ret, struct err *e);
/* At least one, and no allow among them. */
bool network_only_denies(const struct network_rules *r);
/* allowPublicTraffic and maskRequestHost, into the options. */
int network_options(json_t *network, struct e2b_options *o, struct err *e);

/* Whether everything is denied that is not allowed. */
bool network_is_closed(const struct sandbox *s);
/* {"allowOut": [...], "denyOut": [...], ...} */
void network_put(struct json_w *w, const struct sandbox *s);

#endif
