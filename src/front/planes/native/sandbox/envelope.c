/* envelope.c - the recovery envelope of a workspace: read here, adopted here or elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/native.h"
#include "front/workspace/workspace.h"

#define ID_MAX 128u
#define ENVELOPE_MAX (WORKSPACE_SPEC_MAX + (4u << 10))

struct archive_view {
    const char *space, *digest;
};
struct envelope_view {
    uint64_t version;
    struct workspace_envelope v;
    const struct archive_view *archive;
};
/* clang-format off */
static const struct shape_field archive_fields[] = {
    {"space", SHAPE_STR, offsetof(struct archive_view, space), "Part of the store that it is in. A client that knows it and the digest can read the archive."},
    {"digest", SHAPE_STR, offsetof(struct archive_view, digest), "Its SHA-256."},
};
static SHAPE(archive_shape, "WorkspaceArchive", "Where the files of a workspace are.", archive_fields);
static const struct shape_field envelope_fields[] = {
    {"version", SHAPE_U64, offsetof(struct envelope_view, version), "1. A server refuses versions that it does not know."},
    {"backend", SHAPE_STR, offsetof(struct envelope_view, v.backend), "Where its sandbox was made."},
    {"sandbox", SHAPE_STR, offsetof(struct envelope_view, v.sandbox), "Id of its sandbox.", SHAPE_OMITTED},
    {"epoch", SHAPE_U64, offsetof(struct envelope_view, v.epoch), "Epoch of that sandbox."},
    {"route", SHAPE_U64, offsetof(struct envelope_view, v.route), "How often its backend was changed."},
    {"grace_ms", SHAPE_U64, offsetof(struct envelope_view, v.policy.grace_ms), "As of the workspace."},
    {"archive_ms", SHAPE_U64, offsetof(struct envelope_view, v.policy.archive_ms), "As of the workspace."},
    {"background", SHAPE_BOOL, offsetof(struct envelope_view, v.policy.background), "As of the workspace."},
    {"spec", SHAPE_ANY, offsetof(struct envelope_view, v.spec), "Options of its sandboxes, with the values of environment variables: keep it secret."},
    {"archive", SHAPE_OBJECT, offsetof(struct envelope_view, archive), "Its newest archive; null: it has none.", SHAPE_NULLABLE, &archive_shape},
};
static SHAPE(envelope_shape, "WorkspaceEnvelope", "All that is needed to bring a workspace back.", envelope_fields);
/* clang-format on */

static void envelope_get(struct call *c, const void *in)
{
    struct envelope_view v = {.version = WORKSPACE_ENVELOPE};
    struct archive_view a;
    struct err e;

    (void)in;
    if (workspace_envelope_of(native_workspaces(c), c->ref.key, call_param(c, 0), &v.v, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    a = (struct archive_view){v.v.space, v.v.digest};
    v.archive = a.digest[0] != '\0' ? &a : NULL;
    call_reply_shape(c, &envelope_shape, &v);
}

/* ---- adopt ---- */

struct archive_in {
    const char *space, *digest;
};
struct put_in {
    uint64_t version, epoch, route, grace_ms, archive_ms;
    const char *backend, *sandbox;
    bool background;
    json_t *spec, *archive;
};
/* clang-format off */
static const struct json_field archive_in_fields[] = {
    {"space", JSON_FIELD_STR, offsetof(struct archive_in, space), 1, ARCHIVE_SPACE, true, "As in the envelope."},
    {"digest", JSON_FIELD_STR, offsetof(struct archive_in, digest), ARCHIVE_DIGEST, ARCHIVE_DIGEST, true, "As in the envelope."},
};
static const struct json_field put_fields[] = {
    {"version", JSON_FIELD_U64, offsetof(struct put_in, version), 0, INT64_MAX, true, "1."},
    {"backend", JSON_FIELD_STR, offsetof(struct put_in, backend), 1, ID_MAX, true, "As in the envelope."},
    {"sandbox", JSON_FIELD_STR, offsetof(struct put_in, sandbox), 0, ID_MAX, false, "Its sandbox, which is used if it exists here."},
    {"epoch", JSON_FIELD_U64, offsetof(struct put_in, epoch), 0, INT64_MAX, false, "The epoch from which it counts on."},
    {"route", JSON_FIELD_U64, offsetof(struct put_in, route), 0, INT64_MAX, false, "As in the envelope."},
    {"grace_ms", JSON_FIELD_U64, offsetof(struct put_in, grace_ms), 0, 1ull << 40, false, "As of a workspace."},
    {"archive_ms", JSON_FIELD_U64, offsetof(struct put_in, archive_ms), 0, 1ull << 40, false, "As of a workspace."},
    {"background", JSON_FIELD_BOOL, offsetof(struct put_in, background), 0, 0, false, "As of a workspace."},
    {"spec", JSON_FIELD_ANY, offsetof(struct put_in, spec), 0, 0, false, "Options of its sandboxes."},
    {"archive", JSON_FIELD_ANY, offsetof(struct put_in, archive), 0, 0, false, "Its archive."},
};
/* clang-format on */
static const struct surface_nested put_nested[] = {
    {"archive", archive_in_fields, ARRAY_LEN(archive_in_fields)}, {0}};

static void put_defaults(void *in, const struct config *c)
{
    struct put_in *p = in;

    p->grace_ms = c->workspace_grace_ms;
    p->archive_ms = c->workspace_archive_ms;
    p->background = true;
    p->sandbox = "";
}
static const struct surface_input put_input = {
    SURFACE_INPUT(put_fields, struct put_in),
    .body_max = ENVELOPE_MAX,
    .defaults = put_defaults,
    .nested = put_nested,
};

static void only_checked(void *arg, const struct create_opts *o)
{
    (void)arg;
    (void)o;
}

static int decode(struct call *c, const struct put_in *p, const char *spec, struct archive_in *a,
                  struct err *e)
{
    *a = (struct archive_in){"", ""};
    if (p->version != WORKSPACE_ENVELOPE)
        return err_set(e, ERR_INVALID,
                       "version: this server knows version %u of envelopes, not %llu",
                       WORKSPACE_ENVELOPE, (unsigned long long)p->version);
    if (p->archive != NULL &&
        json_decode(p->archive, archive_in_fields, ARRAY_LEN(archive_in_fields), a, e) < 0)
        return err_wrap(e, "archive");
    if (p->spec != NULL && !json_is_object(p->spec)) /* then it has no text either */
        return err_set(e, ERR_INVALID, "spec: expected an object");
    return native_spec(c->plane->config, spec, only_checked, NULL, e) < 0 ? err_wrap(e, "spec") : 0;
}

static void envelope_put(struct call *c, const void *in)
{
    const struct put_in *p = in;
    autofree char *spec =
        p->spec != NULL ? json_dumps(p->spec, JSON_COMPACT | JSON_SORT_KEYS) : strdup("{}");
    struct archive_in a;
    struct err e;

    if (decode(c, p, spec, &a, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    workspace_adopt(
        native_workspaces(c), c->ref.key, call_param(c, 0),
        &(struct workspace_envelope){.backend = p->backend,
                                     .sandbox = p->sandbox,
                                     .spec = spec,
                                     .space = a.space,
                                     .digest = a.digest,
                                     .epoch = p->epoch,
                                     .route = p->route,
                                     .policy = {p->grace_ms, p->archive_ms, p->background}},
        call_told_done, c);
}

/* clang-format off */
const struct surface_row surface_envelope[] = {
    {{"GET", "/v1/workspaces/{name}/envelope"}, SCOPE_RUN, envelope_get, "getWorkspaceEnvelope",
     "Shows all that is needed to bring the workspace back, here or at another server with the same store of archives.",
     .status = 200, .answers = {&envelope_shape}},
    {{"PUT", "/v1/workspaces/{name}/envelope"}, SCOPE_RUN, envelope_put, "adoptWorkspace",
     "Makes the workspace of an envelope: with its sandbox if that exists here, else at its first use from its archive.",
     .body = &put_input, .status = 204},
    {.op = NULL},
};
/* clang-format on */
