/* network.c - what a sandbox may reach: see it, and change it while it runs. */
#include "front/planes/native/sandbox/network.h"

#include <string.h>

#include "base/own.h"
#include "front/planes/native/internal.h"

#define RULE_TEXTS_MAX (ENGINE_RULES_MAX * (CIDR_TEXT_MAX + 1))
#define MODE_MAX 16u

/* ---- what clients write ---- */

struct network_in {
    const char *mode;
    json_t *allow, *deny;
};

#define ALLOW_DOC                                                                                  \
    "What may be reached, whatever `deny` says: A.B.C.D, A.B.C.D/N, either with :PORT or "         \
    ":FIRST-LAST. Private ranges stay closed unless the operator opened them."
#define DENY_DOC                                                                                   \
    "What may not be reached; 0.0.0.0/0 is everything, also name servers (allow 169.254.1.1 to "   \
    "keep those)."

/* clang-format off */
const struct json_field network_create_fields[NETWORK_CREATE_FIELDS] = {
    {"mode", JSON_FIELD_STR, offsetof(struct network_in, mode), 1, MODE_MAX, false, "egress, or none (loopback only)."},
    {"allow", JSON_FIELD_STRLIST, offsetof(struct network_in, allow), 0, ENGINE_RULES_MAX, false, ALLOW_DOC},
    {"deny", JSON_FIELD_STRLIST, offsetof(struct network_in, deny), 0, ENGINE_RULES_MAX, false, DENY_DOC},
};
/* clang-format on */
/* The mode of a sandbox is for its life. */
static const struct surface_input rules_input = {
    .fields = network_create_fields + 1, .n = 2, .size = sizeof(struct network_in)};

static int add_rules(json_t *list, bool deny, struct sandbox_rule rules[ENGINE_RULES_MAX],
                     size_t *n, struct err *e)
{
    const char *name = deny ? "deny" : "allow";
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);

        if (*n == ENGINE_RULES_MAX)
            return err_set(e, ERR_INVALID, "network: more than %u rules", ENGINE_RULES_MAX);
        if (cidr_parse(text, &rules[*n].to) < 0)
            return err_set(e, ERR_INVALID,
                           "%s: '%.60s' is not an address such as 192.0.2.7, a network such as "
                           "192.0.2.0/24, or either with :PORT or :FIRST-LAST",
                           name, text);
        rules[(*n)++].deny = deny;
    }
    return 0;
}

int network_decode(json_t *network, const char **mode, struct sandbox_rule rules[ENGINE_RULES_MAX],
                   size_t *nrules, struct err *e)
{
    struct network_in in = {0};

    *nrules = 0;
    if (json_is_string(network))
        in.mode = json_string_value(network);
    else if (network != NULL &&
             json_decode(network, network_create_fields, NETWORK_CREATE_FIELDS, &in, e) < 0)
        return err_wrap(e, "network");
    *mode = in.mode;
    if (add_rules(in.allow, false, rules, nrules, e) < 0 ||
        add_rules(in.deny, true, rules, nrules, e) < 0)
        return err_wrap(e, "network");
    return 0;
}

/* ---- answers ---- */

struct network_view {
    const char *mode, *address;
    struct shape_bytes allow, deny;
};

/* clang-format off */
static const struct shape_field network_fields[] = {
    {"mode", SHAPE_STR, offsetof(struct network_view, mode), "egress, or none (loopback only)."},
    {"address", SHAPE_STR, offsetof(struct network_view, address), "Private IPv4 address, visible only inside; null: none.", SHAPE_NULLABLE},
    {"allow", SHAPE_STRV, offsetof(struct network_view, allow), "Destinations that are allowed even if `deny` matches."},
    {"deny", SHAPE_STRV, offsetof(struct network_view, deny), "Destinations that are denied."},
};
static SHAPE(network_shape, "Network", "Network of a sandbox.", network_fields);
/* clang-format on */

static void put_texts(struct buf *out, const struct sandbox *s, bool deny)
{
    char text[CIDR_TEXT_MAX];

    for (size_t i = 0; i < s->nrules; i++) {
        if (s->rules[i].deny != deny)
            continue;
        cidr_format(&s->rules[i].to, text);
        buf_add(out, text, strlen(text) + 1);
    }
}

static void reply(struct call *c, const struct sandbox *s)
{
    autobuf struct buf allow = BUF_INIT(RULE_TEXTS_MAX), deny = BUF_INIT(RULE_TEXTS_MAX);
    char address[CIDR_TEXT_MAX];
    struct network_view v = {.mode = s->network};

    put_texts(&allow, s, false);
    put_texts(&deny, s, true);
    if (s->address != 0) {
        cidr_format_addr(s->address, address);
        v.address = address;
    }
    v.allow = shape_list(&allow);
    v.deny = shape_list(&deny);
    call_reply_shape(c, &network_shape, &v);
}

static void network_get(struct call *c, const void *in)
{
    const struct sandbox *s = engine_get(c->ref);
    struct err e;

    (void)in;
    if (s != NULL) {
        reply(c, s);
        return;
    }
    err_set(&e, ERR_NOT_FOUND, "no sandbox %.40s", call_param(c, 0));
    call_fail(c, &e);
}

static void ruled(void *arg, const struct sandbox *s, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        reply(c, s);
}

static void network_put(struct call *c, const void *in)
{
    const struct network_in *n = in;
    struct sandbox_rule rules[ENGINE_RULES_MAX];
    size_t count = 0;
    struct err e;

    if (add_rules(n->allow, false, rules, &count, &e) < 0 ||
        add_rules(n->deny, true, rules, &count, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_set_rules(c->ref, rules, count, ruled, c);
}

/* clang-format off */
const struct surface_row surface_network[] = {
    {{"GET", "/v1/sandboxes/{id}/network"}, SCOPE_READ, network_get, "getNetwork",
     "Shows the network of a sandbox and its rules.",
     .status = 200, .answers = {&network_shape}},
    {{"PUT", "/v1/sandboxes/{id}/network"}, SCOPE_RUN, network_put, "setNetwork",
     "Replaces both lists of rules at once. Open connections that are still allowed continue; denied ones are closed.",
     .body = &rules_input, .status = 200, .answers = {&network_shape}},
    {.op = NULL},
};
/* clang-format on */
