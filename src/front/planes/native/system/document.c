/* document.c - the API's documentation, for programs (/v1/openapi.json) and for people
 * (/v1/openapi.html). Both are written once, from the rows of the planes. */
#include "base/own.h"
#include "front/planes/native/internal.h"

#define PAGE_HEAD                                                                                  \
    "<!doctype html><html lang=en><meta charset=utf-8><title>Cove</title><style>"                  \
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"     \
    "td{padding:.25rem 1rem .25rem 0;vertical-align:top}code{white-space:nowrap}</style>"          \
    "<h1>Cove</h1><p>Every call; <a href=openapi.json>openapi.json</a> says the rest.</p><table>"
#define PAGE_POLICY "default-src 'none'; style-src 'unsafe-inline'"

static void put_text(struct buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '>' || *text == '&')
            buf_adds(out, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;");
        else
            buf_addc(out, *text);
    }
}

static void put_row(struct buf *out, const struct surface_row *row)
{
    buf_addf(out, "<tr><td><code>%s</code><td><code>", row->route.method);
    put_text(out, row->route.path);
    buf_adds(out, "</code><td>");
    put_text(out, row->summary);
    buf_adds(out, "</tr>");
}

int document_page(const struct plane *const *planes, size_t n, struct buf *out, struct err *e)
{
    buf_adds(out, PAGE_HEAD);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < planes[i]->nrows; k++)
            put_row(out, &planes[i]->rows[k]);
    buf_adds(out, "</table></html>");
    return out->failed ? err_set(e, ERR_INTERNAL, "the page does not fit") : 0;
}

static void reply_copy(struct call *c, const char *type, const struct buf *text)
{
    autobuf struct buf copy = BUF_INIT(text->len + 1);

    buf_add(&copy, buf_data(text), text->len);
    call_reply(c, 200, type, &copy);
}

static void openapi_get(struct call *c, const void *in)
{
    (void)in;
    reply_copy(c, "application/json", &CONTAINER_OF(c->plane, struct native, plane)->openapi);
}

static void page_get(struct call *c, const void *in)
{
    (void)in;
    http_reply_header(c->r, "Content-Security-Policy", PAGE_POLICY);
    reply_copy(c, "text/html; charset=utf-8", &CONTAINER_OF(c->plane, struct native, plane)->page);
}

static const struct json_field token_fields[] = {
    {DOCUMENT_TOKEN, JSON_FIELD_STR, 0, 1, AUTH_PRESENTED_MAX, false,
     "API key, for clients that cannot send a header."},
};
static const struct surface_input token_input = {
    .fields = token_fields, .n = ARRAY_LEN(token_fields), .size = sizeof(const char *)};

/* clang-format off */
const struct surface_row surface_document[] = {
    {{"GET", "/v1/openapi.json"}, SCOPE_READ, openapi_get, "getOpenapi",
     "This document.",
     .query = &token_input, .status = 200, .flags = SURFACE_OTHER | SURFACE_EARLY},
    {{"GET", "/v1/openapi.html"}, SCOPE_READ, page_get, "getOpenapiPage",
     "This document as a page.",
     .query = &token_input, .status = 200, .flags = SURFACE_PAGE | SURFACE_EARLY},
    {{"GET", "/v1/openapi"}, SCOPE_READ, page_get, "getOpenapiPageToo",
     "This document.",
     .query = &token_input, .status = 200, .flags = SURFACE_PAGE | SURFACE_EARLY},
    {.op = NULL},
};
/* clang-format on */
