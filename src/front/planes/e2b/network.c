/* network.c - see network.h; and the route that changes rules while a sandbox runs. */
#include "front/planes/e2b/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "json/write.h"

static const struct cidr everything = {.addr = 0, .prefix = 0};

static bool is_everything(const struct sandbox_rule *r)
{
    return r->deny && r->to.prefix == 0 && r->to.last == 0;
}

/* Sandboxes have no IPv6: a rule about it holds, whatever it says. */
static bool is_ipv6(const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];
    char bare[INET6_ADDRSTRLEN];
    size_t n = strcspn(text, "/");

    if (n >= sizeof(bare) || strspn(text + n, "/0123456789") != strlen(text + n))
        return false;
    str_fmt(bare, sizeof(bare), "%.*s", (int)n, text);
    return inet_pton(AF_INET6, bare, address) == 1;
}

static bool is_domain(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-*");

    return n > 0 && text[n] == '\0' && strspn(text, "0123456789.") != n;
}

static int refuse(const char *text, bool deny, struct err *e)
{
    if (deny)
        return err_set(e, ERR_INVALID, "invalid denied CIDR %.60s", text);
    if (is_domain(text))
        return err_set(e, ERR_UNSUPPORTED,
                       "allowOut: domains such as %.60s are not supported by this server", text);
    return err_set(e, ERR_INVALID, "invalid allowed CIDR %.60s", text);
}

static int add(struct network_rules *r, const struct cidr *to, bool deny, struct err *e)
{
    if (r->n == ENGINE_RULES_MAX)
        return err_set(e, ERR_INVALID, "network: more than %u rules", ENGINE_RULES_MAX);
    r->rules[r->n++] = (struct sandbox_rule){.to = *to, .deny = deny};
    return 0;
}

static int add_list(struct network_rules *r, json_t *list, bool deny, struct err *e)
{
    json_t *item;
    size_t i;

    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        return err_set(e, ERR_INVALID, "network: expected lists of strings");
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        struct cidr to;

        if (text == NULL)
            return err_set(e, ERR_INVALID, "network: expected lists of strings");
        if (is_ipv6(text))
            continue;
        if (strchr(text, ':') != NULL || cidr_parse(text, &to) < 0)
            return refuse(text, deny, e);
        if (add(r, &to, deny, e) < 0)
            return -1;
    }
    return 0;
}

int network_rules(json_t *network, bool internet, struct network_rules *ret, struct err *e)
{
    static const char *const missing[] = {"rules", "egressProxy", "httpsPorts"};

    ret->n = 0;
    for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
        json_t *v = json_object_get(network, missing[i]);

        if (json_object_size(v) > 0 || json_array_size(v) > 0)
            return err_set(e, ERR_UNSUPPORTED, "network.%s is not supported by this server",
                           missing[i]);
    }
    if (add_list(ret, json_object_get(network, "allowOut"), false, e) < 0 ||
        add_list(ret, json_object_get(network, "denyOut"), true, e) < 0)
        return -1;
    return internet ? 0 : add(ret, &everything, true, e);
}

bool network_only_denies(const struct network_rules *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!r->rules[i].deny)
            return false;
    return r->n > 0;
}

/* It becomes a header: nothing that ends one may be in it. */
static bool is_host(const char *s)
{
    for (; *s != '\0'; s++)
        if (!isalnum((unsigned char)*s) && strchr(".-:_[]${}", *s) == NULL)
            return false;
    return true;
}

int network_options(json_t *network, struct e2b_options *o, struct err *e)
{
    json_t *public = json_object_get(network, "allowPublicTraffic");
    json_t *mask = json_object_get(network, "maskRequestHost");

    o->private = json_is_false(public);
    if (o->private && o->open)
        return err_set(e, ERR_INVALID, "allowPublicTraffic: false needs secure: true");
    if (mask == NULL || json_is_null(mask))
        return 0;
    if (!json_is_string(mask) || json_string_length(mask) >= sizeof(o->mask_host) ||
        !is_host(json_string_value(mask)))
        return err_set(e, ERR_INVALID, "network.maskRequestHost: expected a host");
    str_fmt(o->mask_host, sizeof(o->mask_host), "%s", json_string_value(mask));
    return 0;
}

bool network_is_closed(const struct sandbox *s)
{
    for (size_t i = 0; i < s->nrules; i++)
        if (is_everything(&s->rules[i]))
            return true;
    return strcmp(s->network, "none") == 0;
}

static void put_list(struct json_w *w, const char *name, const struct sandbox *s, bool deny)
{
    char text[CIDR_TEXT_MAX];

    jw_key(w, name);
    jw_open_list(w);
    for (size_t i = 0; i < s->nrules; i++) {
        if (s->rules[i].deny != deny)
            continue;
        cidr_format(&s->rules[i].to, text);
        jw_str(w, text);
    }
    jw_close_list(w);
}

void network_put(struct json_w *w, const struct sandbox *s)
{
    struct e2b_options o = e2b_options_of(s);

    jw_open(w);
    put_list(w, "allowOut", s, false);
    put_list(w, "denyOut", s, true);
    jw_kbool(w, "allowPublicTraffic", !o.private);
    if (o.mask_host[0] != '\0')
        jw_kstr(w, "maskRequestHost", o.mask_host);
    jw_close(w);
}

/* ---- PUT ---- */

struct update_in {
    json_t *allow, *deny, *rules, *proxy;
    bool internet;
};
/* clang-format off */
static const struct json_field update_fields[] = {
    {"allowOut", JSON_FIELD_ANY, offsetof(struct update_in, allow), 0, 0, false, ""},
    {"denyOut", JSON_FIELD_ANY, offsetof(struct update_in, deny), 0, 0, false, ""},
    {"rules", JSON_FIELD_ANY, offsetof(struct update_in, rules), 0, 0, false, ""},
    {"egressProxy", JSON_FIELD_ANY, offsetof(struct update_in, proxy), 0, 0, false, ""},
    {"allow_internet_access", JSON_FIELD_BOOL, offsetof(struct update_in, internet), 0, 0, false, ""},
};
/* clang-format on */

static void update_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct update_in *)in)->internet = true;
}

static const struct surface_input update_input = {SURFACE_INPUT(update_fields, struct update_in),
                                                  .defaults = update_defaults};

/* Missing fields clear their rules. */
static void network_update(struct call *c, const void *arg)
{
    const struct update_in *in = arg;
    const struct sandbox *s = e2b_named(c);
    autojson json_t *network = NULL;
    struct network_rules rules;
    struct err e;

    if (s == NULL)
        return;
    network = json_pack("{s:O*, s:O*, s:O*, s:O*}", "allowOut", in->allow, "denyOut", in->deny,
                        "rules", in->rules, "egressProxy", in->proxy);
    if (network_rules(network, in->internet, &rules, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (strcmp(s->network, "none") == 0 && (rules.n == 0 || network_only_denies(&rules))) {
        call_reply_none(c); /* it holds already */
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_set_rules(c->ref, rules.rules, rules.n, call_told_sandbox, c);
}

/* clang-format off */
const struct surface_row e2b_network[] = {
    {{"PUT", "/sandboxes/{id}/network"}, SCOPE_RUN, network_update, "updateNetwork",
     "What it may reach, from now on.", .body = &update_input, .status = 204},
    {.op = NULL},
};
/* clang-format on */
