/* create.c - E2B's sandboxes: making them, in both generations. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/maps.h"
#include "front/planes/e2b/internal.h"
#include "front/planes/e2b/network.h"

#define CREATE_BODY_MAX (256u << 10)
#define TIMEOUT_V1_S 15 /* of a create without a timeout */
#define TIMEOUT_V2_S 300

struct create_in {
    const char *template;
    json_t *metadata, *env, *auto_resume, *network, *volumes, *iam;
    int64_t timeout;
    bool auto_pause, auto_pause_memory, secure, internet;
};

/* clang-format off */
#define CREATE_FIELDS \
    {"templateID", JSON_FIELD_STR, offsetof(struct create_in, template), 1, 0, true, ""}, \
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct create_in, metadata), 0, MAPS_METADATA_MAX, false, ""}, \
    {"envVars", JSON_FIELD_STRMAP, offsetof(struct create_in, env), 0, MAPS_ENV_MAX, false, ""}, \
    {"timeout", JSON_FIELD_I64, offsetof(struct create_in, timeout), 0, 0, false, ""}, \
    {"autoPause", JSON_FIELD_BOOL, offsetof(struct create_in, auto_pause), 0, 0, false, ""}, \
    {"autoPauseMemory", JSON_FIELD_BOOL, offsetof(struct create_in, auto_pause_memory), 0, 0, false, ""}, \
    {"autoResume", JSON_FIELD_ANY, offsetof(struct create_in, auto_resume), 0, 0, false, ""}, \
    {"allow_internet_access", JSON_FIELD_BOOL, offsetof(struct create_in, internet), 0, 0, false, ""}, \
    {"network", JSON_FIELD_ANY, offsetof(struct create_in, network), 0, 0, false, ""}, \
    {"volumeMounts", JSON_FIELD_ANY, offsetof(struct create_in, volumes), 0, 0, false, ""}, \
    {"iam", JSON_FIELD_ANY, offsetof(struct create_in, iam), 0, 0, false, ""}

/* In the second generation every sandbox is secure. */
static const struct json_field create_v2_fields[] = {CREATE_FIELDS};
static const struct json_field create_v1_fields[] = {
    CREATE_FIELDS,
    {"secure", JSON_FIELD_BOOL, offsetof(struct create_in, secure), 0, 0, false, ""},
};
/* clang-format on */

static void create_v1_defaults(void *in, const struct config *c)
{
    struct create_in *i = in;

    (void)c;
    i->timeout = TIMEOUT_V1_S;
    i->auto_pause_memory = i->internet = true;
}

static void create_v2_defaults(void *in, const struct config *c)
{
    struct create_in *i = in;

    create_v1_defaults(in, c);
    i->timeout = TIMEOUT_V2_S;
    i->secure = true;
}

static const struct surface_input create_v1_input = {
    SURFACE_INPUT(create_v1_fields, struct create_in),
    .body_max = CREATE_BODY_MAX,
    .defaults = create_v1_defaults,
};
static const struct surface_input create_v2_input = {
    SURFACE_INPUT(create_v2_fields, struct create_in),
    .body_max = CREATE_BODY_MAX,
    .defaults = create_v2_defaults,
};

static bool auto_resumes(const struct create_in *in)
{
    return json_is_true(json_object_get(in->auto_resume, "enabled"));
}

static int check_create(const struct create_in *in, struct err *e)
{
    if (e2b_check_timeout(in->timeout, e) < 0)
        return -1;
    if (!in->auto_pause_memory && !in->auto_pause)
        return err_set(e, ERR_INVALID, "autoPauseMemory: false needs autoPause: true");
    if (!in->auto_pause_memory && auto_resumes(in))
        return err_set(e, ERR_INVALID,
                       "autoPauseMemory: false and autoResume exclude each other: without its "
                       "memory a sandbox is only resumed explicitly");
    if (json_array_size(in->volumes) > 0)
        return err_set(e, ERR_UNSUPPORTED, "volumes are not supported by this server");
    if (json_object_size(in->iam) > 0)
        return err_set(e, ERR_UNSUPPORTED, "iam tokens are not supported by this server");
    return 0;
}

/* [namespace/]name[:tag]; the tag `default` is the same as none. */
static const char *template_name(const char *text, char *out, size_t room)
{
    static const char tag[] = ":default";
    size_t n = strlen(text), t = sizeof(tag) - 1;

    if (n < t || n >= room || strcmp(text + n - t, tag) != 0)
        return text;
    str_fmt(out, room, "%.*s", (int)(n - t), text);
    return out;
}

struct creating {
    struct call *c;
    const struct create_in *in; /* the call's, which keeps it */
    bool denies;                /* its rules do nothing else */
    bool unruled;               /* second try: without rules and without a network */
};

static void create(struct creating *k);

/* Where no sandbox has a network nothing is reached, whatever is denied. */
static void created(void *arg, const struct sandbox *s, const struct err *e)
{
    struct creating *k = arg;
    struct call *c = k->c;

    if (!call_told(c))
        return;
    if (s != NULL) {
        e2b_reply_sandbox(c, c->row->status, s);
    } else if (k->denies && !k->unruled && e->kind == ERR_INVALID) {
        k->unruled = true;
        create(k);
    } else {
        call_fail(c, e);
    }
}

static int decode_create(const struct create_in *in, struct create_opts *o, struct buf *env,
                         struct buf *kept, char **metadata, struct network_rules *rules,
                         struct err *e)
{
    struct e2b_options options = {.open = !in->secure};

    if (check_create(in, e) < 0 || maps_env(in->env, env, e) < 0 ||
        maps_metadata(in->metadata, metadata, e) < 0 ||
        network_rules(in->network, in->internet, rules, e) < 0 ||
        network_options(in->network, &options, e) < 0)
        return -1;
    e2b_options_write(&options, kept);
    o->metadata = *metadata;
    o->env = buf_data(env);
    o->env_len = env->len;
    o->plane = buf_cstr(kept);
    o->timeout_ms = (uint64_t)in->timeout * 1000;
    o->on_timeout = !in->auto_pause         ? SANDBOX_END_DELETE
                    : in->auto_pause_memory ? SANDBOX_END_PAUSE
                                            : SANDBOX_END_STOP;
    o->auto_resume = auto_resumes(in);
    o->rules = rules->rules;
    o->nrules = rules->n;
    return 0;
}

static void create(struct creating *k)
{
    struct call *c = k->c;
    const struct create_in *in = k->in;
    autobuf struct buf env = BUF_INIT(ENGINE_ENV_MAX), kept = BUF_INIT(ENGINE_PLANE_MAX);
    autofree char *metadata = NULL;
    struct create_opts o = {.key = c->ref.key};
    struct network_rules rules;
    char name[256];
    struct err e;

    if (decode_create(in, &o, &env, &kept, &metadata, &rules, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    k->denies = network_only_denies(&rules);
    if (k->unruled) {
        o.nrules = 0;
        o.network = "none";
    }
    o.template = template_name(in->template, name, sizeof(name));
    call_expect(c, &call_pending, NULL);
    engine_create(c->plane->engine, &o, created, k);
}

static void sandbox_create(struct call *c, const void *in)
{
    struct creating *k = call_state(c, sizeof(*k), NULL);

    *k = (struct creating){.c = c, .in = in};
    call_keep_input(c);
    create(k);
}

/* clang-format off */
const struct surface_row e2b_create[] = {
    {{"POST",   "/v2/sandboxes"}, SCOPE_RUN, sandbox_create, "createSandboxV2",
     "Makes a sandbox.", .body = &create_v2_input, .status = 201, .answers = {&e2b_sandbox_shape}},
    {{"POST",   "/sandboxes"}, SCOPE_RUN, sandbox_create, "createSandbox",
     "Makes a sandbox.", .body = &create_v1_input, .status = 201, .answers = {&e2b_sandbox_shape}},
    {.op = NULL},
};
/* clang-format on */
