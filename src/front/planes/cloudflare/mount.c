/* mount.c - directories in a sandbox: what Cloudflare calls a binding is a name that the
 * operator of this server gave a directory. Buckets of others are not mounted here. */
#include <string.h>

#include "base/own.h"
#include "front/planes/cloudflare/internal.h"

struct mount_in {
    json_t *bucket, *binding, *path, *options;
};

/* ---- the request ---- */

#define REFUSE(...) return err_set(e, ERR_INVALID, __VA_ARGS__)

static bool is_text(json_t *j)
{
    return json_is_string(j) && json_string_length(j) > 0;
}

static int check_path(json_t *path, struct err *e)
{
    if (!is_text(path))
        REFUSE("mountPath must be a non-empty string");
    if (*json_string_value(path) != '/')
        REFUSE("mountPath must be an absolute path (start with /)");
    return 0;
}

static bool is_credentials(json_t *j)
{
    return json_is_string(json_object_get(j, "accessKeyId")) &&
           json_is_string(json_object_get(j, "secretAccessKey"));
}

static bool is_strings(json_t *list)
{
    size_t i;
    json_t *item;

    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, item) if (!json_is_string(item)) return false;
    return true;
}

static bool is_string(json_t *j)
{
    return json_is_string(j);
}

static bool is_bool(json_t *j)
{
    return json_is_boolean(j);
}

static int check_options(json_t *options, struct err *e)
{
    static const struct {
        const char *name, *what;
        bool (*fits)(json_t *j);
    } all[] = {
        {"endpoint", "must be a string when provided", is_string},
        {"s3fsOptions", "must be an array of strings when provided", is_strings},
        {"readOnly", "must be a boolean when provided", is_bool},
        {"prefix", "must be a string when provided", is_string},
        {"credentialProxy", "must be a boolean when provided", is_bool},
        {"credentials", "must include string accessKeyId and secretAccessKey", is_credentials},
    };

    if (!json_is_object(options))
        REFUSE("options must be an object");
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        json_t *v = json_object_get(options, all[i].name);

        if (v != NULL && !all[i].fits(v))
            REFUSE("options.%s %s", all[i].name, all[i].what);
    }
    return 0;
}

static int check_source(const struct mount_in *in, struct err *e)
{
    json_t *endpoint = json_object_get(in->options, "endpoint");

    if (in->bucket != NULL && !is_text(in->bucket))
        REFUSE("bucket must be a non-empty string");
    if (in->binding != NULL && !is_text(in->binding))
        REFUSE("binding must be a non-empty string when provided");
    if (in->binding != NULL && endpoint != NULL)
        REFUSE("Provide either binding or options.endpoint, not both");
    if (endpoint != NULL && in->bucket == NULL)
        REFUSE("bucket must be a non-empty string for remote mounts");
    if (endpoint == NULL && in->binding == NULL)
        REFUSE("binding must be a non-empty string for R2 binding mounts");
    if (endpoint == NULL)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
                   "this server mounts no buckets, only directories that its operator lists in the "
                   "setting `mounts`: use the name of one as the binding");
}

/* ---- doing it ---- */

/* One command and one request to the engine, in either order. */
struct errand {
    struct call *c;
    struct buf path;
    void (*then)(struct errand *r, unsigned code);
};

static void errand_drop(void *state)
{
    buf_free(&((struct errand *)state)->path);
}

static void errand_exit(void *arg, const struct process_exit *m)
{
    struct errand *r = arg;

    if (call_told(r->c))
        r->then(r, m->signal != 0 ? 128 + m->signal : m->code);
}

static void errand_fail(void *arg, const struct err *e)
{
    struct errand *r = arg;

    if (call_told(r->c))
        call_fail(r->c, e);
}

static void run(struct errand *r, const char *program, const char *option,
                void (*then)(struct errand *r, unsigned code))
{
    static const struct process_ops ops = {.on_exit = errand_exit, .on_fail = errand_fail};
    const char *argv[] = {program, option, "--", buf_cstr(&r->path), NULL};
    struct process_opts o = {.argv = argv, .user = CLOUDFLARE_USER, .cwd = "/", .quiet = true};
    struct call *c = r->c;

    r->then = then;
    call_expect(c, &call_stream, process_run(c->ref, &o, true, &ops, r));
}

static struct errand *errand_new(struct call *c, json_t *path)
{
    struct errand *r = call_state(c, sizeof(*r), errand_drop);
    struct err e;

    r->c = c;
    buf_init(&r->path, 2 * ENGINE_PATH_MAX);
    cloudflare_resolve(&r->path, json_string_value(path));
    if (!r->path.failed && r->path.len > 0 && r->path.len <= ENGINE_PATH_MAX)
        return r;
    err_set(&e, ERR_INVALID,
            "mountPath must not resolve to / (filesystem root), nor be longer than %u",
            ENGINE_PATH_MAX);
    call_fail(c, &e);
    return NULL;
}

static void done(void *arg, const struct err *e)
{
    struct errand *r = arg;

    if (!call_told(r->c))
        return;
    if (e == NULL)
        cloudflare_reply_ok(r->c);
    else
        call_fail(r->c, e);
}

static void made_directory(struct errand *r, unsigned code)
{
    struct call *c = r->c;
    const struct mount_in *in = c->in;
    struct mount_opts o = {.name = json_string_value(in->binding),
                           .path = buf_cstr(&r->path),
                           .read_only = json_is_true(json_object_get(in->options, "readOnly"))};
    struct err e;

    if (code != 0) {
        err_set(&e, ERR_CONFLICT, "cannot create the directory %.200s", o.path);
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_mount(c->ref, &o, done, r);
}

static void mount_go(struct call *c, const void *body)
{
    const struct mount_in *in = body;
    struct errand *r = errand_new(c, in->path);

    if (r != NULL)
        run(r, "mkdir", "-p", made_directory);
}

static void mount_run(struct call *c, const void *body)
{
    const struct mount_in *in = body;
    struct err e;

    if (check_path(in->path, &e) < 0 || check_options(in->options, &e) < 0 ||
        check_source(in, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, mount_go);
}

/* ---- and undoing it ---- */

/* A directory that is not empty stays. */
static void removed_directory(struct errand *r, unsigned code)
{
    (void)code;
    cloudflare_reply_ok(r->c);
}

static void unmounted(void *arg, const struct err *e)
{
    struct errand *r = arg;

    if (!call_told(r->c))
        return;
    if (e != NULL)
        call_fail(r->c, e);
    else
        run(r, "rmdir", "--ignore-fail-on-non-empty", removed_directory);
}

static void unmount_go(struct call *c, const void *body)
{
    const struct mount_in *in = body;
    struct errand *r = errand_new(c, in->path);

    if (r == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    engine_unmount(c->ref, buf_cstr(&r->path), unmounted, r);
}

static void unmount_run(struct call *c, const void *body)
{
    const struct mount_in *in = body;
    struct err e;

    if (check_path(in->path, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_look(c, in, unmount_go);
}

/* clang-format off */
static const struct json_field mount_fields[] = {
    {"bucket", JSON_FIELD_ANY, offsetof(struct mount_in, bucket), 0, 0, false, "Endpoint of a bucket; not supported."},
    {"binding", JSON_FIELD_ANY, offsetof(struct mount_in, binding), 0, 0, false, "A name in the setting `mounts`."},
    {"mountPath", JSON_FIELD_ANY, offsetof(struct mount_in, path), 0, 0, false, "Absolute path of the mount point; created if missing."},
    {"options", JSON_FIELD_ANY, offsetof(struct mount_in, options), 0, 0, false, "Options; only readOnly is used."},
};
static const struct surface_input mount_input = {SURFACE_INPUT(mount_fields, struct mount_in)};
static const struct json_field unmount_fields[] = {
    {"mountPath", JSON_FIELD_ANY, offsetof(struct mount_in, path), 0, 0, false, "Mount point, as given to mount."},
};
static const struct surface_input unmount_input = {SURFACE_INPUT(unmount_fields, struct mount_in)};

const struct surface_row cloudflare_mount[] = {
    {{"POST", CLOUDFLARE_SANDBOX "/mount"}, SCOPE_RUN, mount_run, "mountBucket",
     "Mounts a directory that the operator allows.",
     .body = &mount_input, .status = 200, .answers = {&cloudflare_ok_shape}, .failure = "mount_error"},
    {{"POST", CLOUDFLARE_SANDBOX "/unmount"}, SCOPE_RUN, unmount_run, "unmountBucket",
     "Unmounts a directory, and removes the mount point if it is empty.",
     .body = &unmount_input, .status = 200, .answers = {&cloudflare_ok_shape}, .failure = "unmount_error"},
    {.op = NULL},
};
/* clang-format on */
