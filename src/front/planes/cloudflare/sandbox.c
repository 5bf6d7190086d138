/* sandbox.c - ids, whether what they mean runs, and the end of it. */
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "front/planes/cloudflare/internal.h"

#define ID_BYTES 16u

/* ---- ids that were handed out ---- */

/* Its place, or NULL. */
static char *find_issued(const struct call *c)
{
    struct cloudflare_issued *issued = cloudflare_issued(c);

    for (size_t i = 0; i < CLOUDFLARE_ISSUED_MAX; i++)
        if (strcmp(issued->all[i].id, call_param(c, 0)) == 0 &&
            strcmp(issued->all[i].key, c->ref.key) == 0)
            return issued->all[i].id;
    return NULL;
}

void cloudflare_issued_forget(const struct call *c)
{
    char *id = find_issued(c);

    if (id != NULL)
        *id = '\0';
}

/* ---- create: an id, and nothing else until it is used ---- */

struct id_view {
    const char *id;
};
static const struct shape_field id_fields[] = {
    {"id", SHAPE_STR, offsetof(struct id_view, id), "Id, for the paths of all other calls."},
};
static SHAPE(id_shape, "CloudflareSandbox", "A sandbox; it is created when it is first used.",
             id_fields);

/* RFC 4648 in lower case, without padding. */
static void base32(const unsigned char bytes[ID_BYTES], char out[CLOUDFLARE_ID_CHARS + 1])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned value = 0, bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < ID_BYTES; i++) {
        value = value << 8 | bytes[i];
        for (bits += 8; bits >= 5; bits -= 5)
            out[n++] = alphabet[value >> (bits - 5) & 31];
    }
    out[n++] = alphabet[value << (5 - bits) & 31];
    out[n] = '\0';
}

static void sandbox_create(struct call *c, const void *in)
{
    unsigned char bytes[ID_BYTES];
    char id[CLOUDFLARE_ID_CHARS + 1];
    struct cloudflare_issued *issued;
    size_t i;

    (void)in;
    id_bytes(bytes, sizeof(bytes));
    base32(bytes, id);
    issued = cloudflare_issued(c);
    i = issued->next++ % CLOUDFLARE_ISSUED_MAX;
    str_fmt(issued->all[i].key, sizeof(issued->all[i].key), "%s", c->ref.key);
    str_fmt(issued->all[i].id, sizeof(issued->all[i].id), "%s", id);
    call_reply_shape(c, &id_shape, &(struct id_view){id});
}

/* ---- running: does not create or resume a sandbox ---- */

struct running_view {
    bool running;
};
static const struct shape_field running_fields[] = {
    {"running", SHAPE_BOOL, offsetof(struct running_view, running),
     "The sandbox was created or used, is not deleted, and keeps its processes; a paused one "
     "counts."},
};
static SHAPE(running_shape, "CloudflareRunning", "Whether a sandbox is running.", running_fields);

static void sandbox_running(struct call *c, const void *in)
{
    const struct sandbox *s = engine_by_name(c->ref.engine, c->ref.key, call_param(c, 0));
    bool runs = s != NULL ? s->state == SANDBOX_RUNNING || s->state == SANDBOX_PAUSED
                          : find_issued(c) != NULL;

    (void)in;
    call_reply_shape(c, &running_shape, &(struct running_view){runs});
}

/* ---- delete ---- */

static void sandbox_delete(struct call *c, const void *in)
{
    (void)in;
    cloudflare_issued_forget(c);
    call_expect(c, &call_pending, NULL);
    engine_delete_named(c->ref.engine, c->ref.key, call_param(c, 0), call_told_done, c);
}

/* clang-format off */
const struct surface_row cloudflare_sandbox[] = {
    {{"POST", "/v1/sandbox"}, SCOPE_RUN, sandbox_create, "cloudflareCreateSandbox",
     "Creates an id. The sandbox is created when the id is first used.",
     .status = 200, .answers = {&id_shape}, .flags = SURFACE_RAW_BODY},
    {{"GET", CLOUDFLARE_SANDBOX "/running"}, SCOPE_READ, sandbox_running, "isSandboxRunning",
     "Whether a sandbox is running; does not create or resume it.",
     .status = 200, .answers = {&running_shape}},
    {{"DELETE", CLOUDFLARE_SANDBOX}, SCOPE_RUN, sandbox_delete, "cloudflareDeleteSandbox",
     "Deletes a sandbox; succeeds for an id that was never used.",
     .status = 204},
    {.op = NULL},
};
/* clang-format on */
