/* missing.c - routes of E2B that this server does not support: each answers with an error in E2B's
 * format. docs/e2b.md lists them.
 *
 * EXTEND  To support one, move its row to a surface. */
#include "front/planes/e2b/internal.h"

static void missing(struct call *c, const void *in)
{
    struct err e;

    (void)in;
    err_set(&e, ERR_UNSUPPORTED, "%s not supported by this server", c->row->summary);
    call_fail(c, &e);
}

/* clang-format off */
#define MISSING(method, path, what) {{method, path}, SCOPE_READ, missing, "missing", what, .status = 501}

const struct surface_row e2b_missing[] = {
    MISSING("GET",    "/templates/{id}", "template builds are"),
    MISSING("PATCH",  "/templates/{id}", "template builds are"),
    MISSING("PATCH",  "/v2/templates/{id}", "template builds are"),
    MISSING("POST",   "/templates", "template builds are"),
    MISSING("POST",   "/v2/templates", "template builds are"),
    MISSING("POST",   "/v3/templates", "template builds are"),
    MISSING("GET",    "/templates/{id}/files/{hash}", "template builds are"),
    MISSING("POST",   "/v2/templates/{id}/builds/{build}", "template builds are"),
    MISSING("GET",    "/templates/{id}/builds/{build}/status", "template builds are"),
    MISSING("GET",    "/templates/{id}/builds/{build}/logs", "template builds are"),
    MISSING("POST",   "/templates/tags", "template tags are"),
    MISSING("DELETE", "/templates/tags", "template tags are"),
    MISSING("GET",    "/templates/{id}/tags", "template tags are"),
    MISSING("GET",    "/volumes", "volumes are"),
    MISSING("POST",   "/volumes", "volumes are"),
    MISSING("GET",    "/volumes/{id}", "volumes are"),
    MISSING("DELETE", "/volumes/{id}", "volumes are"),
    MISSING("GET",    "/secrets", "secrets are"),
    MISSING("POST",   "/secrets", "secrets are"),
    MISSING("GET",    "/secrets/{id}", "secrets are"),
    MISSING("POST",   "/secrets/{id}", "secrets are"),
    MISSING("DELETE", "/secrets/{id}", "secrets are"),
    MISSING("GET",    "/teams", "teams are"),
    {.op = NULL},
};
/* clang-format on */
