/* pause.c - pause and resume of E2B's sandboxes. Connect, which resumes too, is in sandboxes.c. */
#include "front/planes/e2b/internal.h"

#define RESUME_S 15 /* of a resume without a timeout */

struct pause_in {
    bool memory;
};
struct resume_in {
    int64_t seconds;
    bool memory;
};

/* clang-format off */
static const struct json_field pause_fields[] = {
    {"memory", JSON_FIELD_BOOL, offsetof(struct pause_in, memory), 0, 0, false, ""},
};
static const struct json_field resume_fields[] = {
    {"timeout", JSON_FIELD_I64, offsetof(struct resume_in, seconds), 0, 0, false, ""},
    {"memory", JSON_FIELD_BOOL, offsetof(struct resume_in, memory), 0, 0, false, ""},
};
/* clang-format on */

static void pause_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct pause_in *)in)->memory = true;
}

static void resume_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct resume_in *)in = (struct resume_in){.seconds = RESUME_S, .memory = true};
}

static const struct surface_input pause_input = {SURFACE_INPUT(pause_fields, struct pause_in),
                                                 .defaults = pause_defaults};
static const struct surface_input resume_input = {SURFACE_INPUT(resume_fields, struct resume_in),
                                                  .defaults = resume_defaults};

static void sandbox_pause(struct call *c, const void *in)
{
    const struct sandbox *s = e2b_named(c);

    if (s == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    engine_pause(c->ref, ((const struct pause_in *)in)->memory, call_told_sandbox, c);
}

static void resumed(void *arg, const struct sandbox *s, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        e2b_reply_sandbox(c, c->row->status, s);
}

static void sandbox_resume(struct call *c, const void *in)
{
    const struct resume_in *r = in;
    int64_t seconds = r->seconds;
    const struct sandbox *s = e2b_named(c);
    struct err e;

    if (s == NULL)
        return;
    if (e2b_check_timeout(seconds, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_resume(c->ref, r->memory ? RESUME_FOR : RESUME_COLD_FOR, (uint64_t)seconds * 1000,
                  resumed, c);
}

/* clang-format off */
const struct surface_row e2b_pause[] = {
    {{"POST", "/sandboxes/{id}/pause"}, SCOPE_RUN, sandbox_pause, "pauseSandbox",
     "Everything in it stands still, or, without its memory, only its files stay.",
     .body = &pause_input, .status = 204},
    {{"POST", "/sandboxes/{id}/resume"}, SCOPE_RUN, sandbox_resume, "resumeSandbox",
     "It goes on.", .body = &resume_input, .status = 201, .answers = {&e2b_sandbox_shape}},
    {.op = NULL},
};
/* clang-format on */
