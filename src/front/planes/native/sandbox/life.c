/* life.c - lifetime, pause, resume and recovery of sandboxes. */
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/sandbox/sandbox_view.h"

struct pause_in {
    bool memory;
};
static const struct json_field pause_fields[] = {
    {"memory", JSON_FIELD_BOOL, offsetof(struct pause_in, memory), 0, 0, false,
     "true (default): keep the processes, frozen. false: keep only the files; the sandbox is "
     "stopped."},
};

static void pause_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct pause_in *)in)->memory = true;
}

static const struct surface_input pause_input = {SURFACE_INPUT(pause_fields, struct pause_in),
                                                 .defaults = pause_defaults};

static void sandbox_pause(struct call *c, const void *in)
{
    const struct pause_in *p = in;

    call_expect(c, &call_pending, NULL);
    engine_pause(c->ref, p->memory, sandbox_told, c);
}

struct resume_in {
    uint64_t timeout_ms; /* UINT64_MAX: not given */
};
static const struct json_field resume_fields[] = {
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct resume_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX,
     false,
     "Lifetime in milliseconds from now; 0: no limit. Default: the lifetime given at creation."},
};

static void resume_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct resume_in *)in)->timeout_ms = UINT64_MAX;
}

static const struct surface_input resume_input = {SURFACE_INPUT(resume_fields, struct resume_in),
                                                  .defaults = resume_defaults};

static void sandbox_resume(struct call *c, const void *in)
{
    const struct resume_in *r = in;
    bool given = r->timeout_ms != UINT64_MAX;

    call_expect(c, &call_pending, NULL);
    engine_resume(c->ref, given ? RESUME_FOR : RESUME_AS_MADE, given ? r->timeout_ms : 0,
                  sandbox_told, c);
}

struct timeout_in {
    uint64_t timeout_ms;
};
static const struct json_field timeout_fields[] = {
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct timeout_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX,
     true, "Lifetime in milliseconds from now; 0: no limit."},
};
static const struct surface_input timeout_input = {
    SURFACE_INPUT(timeout_fields, struct timeout_in)};

static void sandbox_timeout(struct call *c, const void *in)
{
    const struct timeout_in *t = in;
    struct err e;

    if (engine_set_timeout(c->ref, t->timeout_ms, &e) < 0)
        call_fail(c, &e);
    else
        sandbox_reply(c, engine_get(c->ref));
}

static void sandbox_recover(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_recover(c->ref, sandbox_told, c);
}

/* clang-format off */
const struct surface_row surface_life[] = {
    {{"POST",   "/v1/sandboxes/{id}/timeout"}, SCOPE_RUN, sandbox_timeout, "setSandboxTimeout",
     "Sets the lifetime of a sandbox, from now.",
     .body = &timeout_input, .status = 200, .answers = {&sandbox_shape}},
    {{"POST",   "/v1/sandboxes/{id}/pause"}, SCOPE_RUN, sandbox_pause, "pauseSandbox",
     "Pauses a sandbox: freezes its processes until it is resumed.",
     .body = &pause_input, .status = 200, .answers = {&sandbox_shape}, .flags = SURFACE_ADMIN},
    {{"POST",   "/v1/sandboxes/{id}/resume"}, SCOPE_RUN, sandbox_resume, "resumeSandbox",
     "Resumes a paused sandbox; boots a stopped one again, with its files and a new boot id.",
     .body = &resume_input, .status = 200, .answers = {&sandbox_shape}},
    {{"POST",   "/v1/sandboxes/{id}/recover"}, SCOPE_RUN, sandbox_recover, "recoverSandbox",
     "Recovers a damaged sandbox. It continues to run if its init can be reached, else it is stopped; its files are kept.",
     .status = 200, .answers = {&sandbox_shape}},
    {.op = NULL},
};
/* clang-format on */
