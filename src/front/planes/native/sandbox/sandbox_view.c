/* sandbox_view.c - see sandbox_view.h. */
#include "front/planes/native/sandbox/sandbox_view.h"

#include <string.h>

#include "front/planes/native/internal.h"

/* clang-format off */
#define LIMIT(A, B, member, name, type, def, min, max, setting, api, ...) \
    {#member, SHAPE_U64, offsetof(struct limits, member), api},
static const struct shape_field limits_fields[] = {LIMITS(LIMIT, _, _)};
#undef LIMIT
static SHAPE(limits_shape, "Limits", "Resource limits of a sandbox.", limits_fields);

static const struct shape_field sandbox_fields[] = {
    {"id", SHAPE_STR, offsetof(struct sandbox_view, id), "Id. Every call takes the id, the name or an unambiguous beginning of the id."},
    {"name", SHAPE_STR, offsetof(struct sandbox_view, name), "Name, unique among the sandboxes of your key.", SHAPE_OMITTED},
    {"key", SHAPE_STR, offsetof(struct sandbox_view, key), "Id of the API key that it belongs to."},
    {"state", SHAPE_STR, offsetof(struct sandbox_view, state), "running, paused, stopped or damaged."},
    {"reason", SHAPE_STR, offsetof(struct sandbox_view, reason), "Reason why it is stopped or damaged.", SHAPE_OMITTED},
    {"template", SHAPE_STR, offsetof(struct sandbox_view, template), "Template it was created from."},
    {"snapshot", SHAPE_STR, offsetof(struct sandbox_view, snapshot), "Snapshot it was created from.", SHAPE_OMITTED},
    {"network", SHAPE_STR, offsetof(struct sandbox_view, network), "Network: egress, or none (loopback only)."},
    {"metadata", SHAPE_MAP, offsetof(struct sandbox_view, metadata), "As given at creation or by the last update."},
    {"env_names", SHAPE_STRV, offsetof(struct sandbox_view, env_names),
     "Names of the environment variables given at creation. Values are never shown."},
    {"created_at", SHAPE_TIME, offsetof(struct sandbox_view, created_ms), "Time of creation."},
    {"changed_at", SHAPE_TIME, offsetof(struct sandbox_view, changed_ms), "Time of the last change of state."},
    {"ends_at", SHAPE_TIME, offsetof(struct sandbox_view, ends_ms), "Time at which its lifetime ends; null: never, or paused.", SHAPE_NULLABLE},
    {"on_timeout", SHAPE_STR, offsetof(struct sandbox_view, on_timeout), "Action when the lifetime ends: delete, stop or pause."},
    {"auto_resume", SHAPE_BOOL, offsetof(struct sandbox_view, auto_resume), "A command resumes it while it is paused."},
    {"log_output", SHAPE_BOOL, offsetof(struct sandbox_view, log_output), "Output of commands is kept in its log."},
    {"fsync", SHAPE_STR, offsetof(struct sandbox_view, fsync), "What fsync and sync in it mean, from its next boot on: durable (the data is on the disk) or relaxed (it is there some seconds later)."},
    {"writes_lost_at", SHAPE_TIME, offsetof(struct sandbox_view, lost_ms), "When the server found that the host had failed while fsync was relaxed: its last writes before may be missing. Null: never.", SHAPE_NULLABLE},
    {"limits", SHAPE_OBJECT, offsetof(struct sandbox_view, limits), "Resource limits.", SHAPE_ALWAYS, &limits_shape},
    {"boot_id", SHAPE_STR, offsetof(struct sandbox_view, boot_id), "Changes with each boot."},
};
SHAPE(sandbox_shape, "Sandbox", "An isolated computer.", sandbox_fields);
/* clang-format on */

/* NAME=value, NAME=value... to NAME, NAME... */
static void names_only(const char *env, size_t len, struct buf *out)
{
    for (size_t i = 0, n; i < len; i += n + 1) {
        n = strnlen(env + i, len - i);
        buf_add(out, env + i, strcspn(env + i, "="));
        buf_addc(out, '\0');
    }
}

void sandbox_view_of(struct sandbox_view *v, const struct sandbox *s, struct buf *names)
{
    names_only(s->env, s->env_len, names);
    *v = (struct sandbox_view){
        .id = s->id,
        .key = s->key,
        .name = s->name,
        .state = sandbox_state_name(s->state),
        .template = s->template,
        .snapshot = s->snapshot,
        .network = s->network,
        .metadata = s->metadata,
        .on_timeout = sandbox_end_name(s->on_timeout),
        .boot_id = s->boot_id,
        .reason = s->state == SANDBOX_STOPPED || s->state == SANDBOX_DAMAGED ? s->reason : NULL,
        .created_ms = s->created_ms,
        .changed_ms = s->changed_ms,
        .auto_resume = s->auto_resume,
        .log_output = s->log_output,
        .ends_ms = s->ends_ms,
        .fsync = fsync_name(s->fsync),
        .lost_ms = s->lost_ms,
        .limits = &s->limits,
        .env_names = shape_list(names),
    };
}

void sandbox_view_append(struct buf *list, const struct sandbox *s)
{
    autobuf struct buf names = BUF_INIT(ENGINE_ENV_MAX);
    struct sandbox_view v;

    sandbox_view_of(&v, s, &names);
    shape_append(list, &sandbox_shape, &v);
}

void sandbox_reply(struct call *c, const struct sandbox *s)
{
    autobuf struct buf names = BUF_INIT(ENGINE_ENV_MAX);
    struct sandbox_view v;

    sandbox_view_of(&v, s, &names);
    call_reply_shape(c, &sandbox_shape, &v);
}

void sandbox_told(void *arg, const struct sandbox *s, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        sandbox_reply(c, s);
}
