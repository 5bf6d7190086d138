/* signature.c - see signature.h. */
#include "front/planes/e2b/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/internal.h"
#include "http/http.h"
#include "mem/mem.h"

static void add(EVP_MD_CTX *md, const char *text)
{
    EVP_DigestUpdate(md, text, strlen(text));
}

void signature_make(const struct signature *s, const char *token, char out[SIGNATURE_SIZE])
{
    const char *parts[] = {s->path != NULL ? s->path : "", ":", s->operation, ":",
                           s->user != NULL ? s->user : "", ":", token};
    autobuf struct buf text = BUF_INIT(SIGNATURE_SIZE);
    unsigned char hash[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    if (md == NULL || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1)
        abort(); /* as token.c does */
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        add(md, parts[i]);
    if (s->expiration != NULL) {
        add(md, ":");
        add(md, s->expiration);
    }
    EVP_DigestFinal_ex(md, hash, NULL);
    EVP_MD_CTX_free(md);
    str_base64(&text, hash, 32);
    str_fmt(out, SIGNATURE_SIZE, "v1_%.43s", buf_cstr(&text));
}

static bool is_of(const struct e2b *p, const struct sandbox *box, const struct signature *s,
                  const char *presented)
{
    char tokens[TOKEN_TEXTS_MAX][TOKEN_SIZE], want[SIGNATURE_SIZE];
    struct token_claims claims = e2b_claims(box, TOKEN_SANDBOX);
    bool is = false;
    size_t n;

    if (strlen(presented) != SIGNATURE_SIZE - 1 || !e2b_has_owner(p, box))
        return false;
    n = token_texts(p->o.tokens, &claims, tokens);
    for (size_t i = 0; i < n; i++) {
        signature_make(s, tokens[i], want);
        is |= CRYPTO_memcmp(want, presented, SIGNATURE_SIZE - 1) == 0;
    }
    return is;
}

static int check_time(const char *expiration, struct err *e)
{
    uint64_t ends;

    if (expiration == NULL)
        return 0;
    if (str_u64(expiration, UINT64_MAX / 1000, &ends) < 0)
        return err_set(e, ERR_UNAUTHORIZED, "invalid signature expiration");
    if (ends * 1000 < clock_real_ms())
        return err_set(e, ERR_UNAUTHORIZED, "signature is already expired");
    return 0;
}

int signature_check(struct call *c, const struct signature *s, const char *presented, struct err *e)
{
    const struct sandbox *box = engine_find(c->plane->engine, c->ref.id);

    if (e2b_has_token(c))
        return 0;
    if (http_header(c->r, "X-Access-Token") != NULL)
        return err_set(e, ERR_UNAUTHORIZED, "access token present in header but does not match");
    if (presented == NULL)
        return err_set(e, ERR_UNAUTHORIZED, "missing signature query parameter");
    if (box == NULL || !is_of(e2b_of_data(c), box, s, presented))
        return err_set(e, ERR_UNAUTHORIZED, "invalid signature");
    return check_time(s->expiration, e);
}

/* ---- before there is a call: whose it is ---- */

struct signed_url {
    struct signature s; /* points into the rest */
    char path[E2B_PATH_MAX + 1], user[E2B_USER_MAX + 1], expiration[24];
    char presented[SIGNATURE_SIZE];
};

/* False: it has no signature, or is not of a file. */
static bool read_url(struct http_req *r, struct signed_url *u)
{
    const struct http_head *h = http_head(r);
    const char *query = h->query.p;
    struct err e;
    int expires =
        route_query(query, "signature_expiration", u->expiration, sizeof(u->expiration), &e);

    *u->path = *u->user = '\0';
    u->s = (struct signature){.path = u->path,
                              .user = u->user,
                              .operation = strcmp(h->method.p, "POST") == 0 ? "write" : "read",
                              .expiration = expires == 1 ? u->expiration : NULL};
    return strcmp(h->path.p, "/files") == 0 && expires >= 0 &&
           route_query(query, "path", u->path, sizeof(u->path), &e) >= 0 &&
           route_query(query, "username", u->user, sizeof(u->user), &e) >= 0 &&
           route_query(query, "signature", u->presented, sizeof(u->presented), &e) == 1;
}

bool signature_opens(const struct e2b *p, struct http_req *r, const struct sandbox *s)
{
    struct signed_url u;
    struct err e;

    return read_url(r, &u) && is_of(p, s, &u.s, u.presented) && check_time(u.s.expiration, &e) == 0;
}

#define SEARCH_MAX 10000u /* signatures computed for one address in a second: 4 us each */
#define SEARCH_STEP 400u  /* before other requests have their turn */

/* A request whose sandbox is looked for. */
struct search {
    struct e2b *p;
    struct http_req *r;
    struct loop *loop;
    signature_found_cb *done;
    struct list link;
    struct loop_timer next;
    struct signed_url u;
    const struct sandbox *found;
    uint64_t after, tried;
    uint64_t second, charged; /* to the address */
};

static void try_one(void *arg, const struct sandbox *box)
{
    struct search *f = arg;

    if (f->found != NULL)
        return;
    f->tried++;
    if (is_of(f->p, box, &f->u.s, f->u.presented))
        f->found = box;
}

static void search_free(struct search *f)
{
    loop_timer_stop(f->loop, &f->next);
    list_del(&f->link);
    free(f);
}

static void search_gone(struct http_req *r, void *arg)
{
    (void)r;
    search_free(arg);
}

static struct search_budget *budget_of(const struct search *f)
{
    struct search_budget *b = &f->p->budgets[http_peer(f->r) % E2B_BUDGETS];
    uint64_t now = clock_mono_ms() / 1000;

    if (b->second != now)
        *b = (struct search_budget){.second = now};
    return b;
}

/* Steps are charged when they are taken, since others may run beside them. Who has a right signature
 * gets them back. */
static void charge(struct search *f)
{
    struct search_budget *b = budget_of(f);

    if (b->second != f->second)
        f->charged = 0;
    f->second = b->second;
    if (f->found != NULL) {
        b->tried -= f->charged;
        f->charged = f->tried = 0;
    }
    b->tried += f->tried + 1;
    f->charged += f->tried + 1;
    f->tried = 0;
}

static void search_step(struct loop_timer *t)
{
    struct search *f = CONTAINER_OF(t, struct search, next);
    bool more = engine_each_some(f->p->o.engine, &f->after, SEARCH_STEP, try_one, f);
    struct search done = {.p = f->p, .r = f->r, .done = f->done, .found = f->found};

    charge(f);
    if (f->found == NULL && more && loop_timer_set(f->loop, &f->next, 0, search_step) == 0)
        return;
    http_on_gone(f->r, NULL, NULL);
    search_free(f);
    done.done(done.p, done.r, done.found);
}

int signature_owner(struct e2b *p, struct http_req *r, signature_found_cb *cb, struct err *e)
{
    struct search *f = mem_zeroed(1, sizeof(*f));

    *f = (struct search){.p = p, .r = r, .loop = http_loop(r), .done = cb};
    list_add_tail(&p->searches, &f->link);
    if (!read_url(r, &f->u)) {
        search_free(f);
        cb(p, r, NULL);
        return 0;
    }
    if (budget_of(f)->tried >= SEARCH_MAX) {
        search_free(f);
        return err_set(e, ERR_LIMIT,
                       "too many signed URLs without a sandbox from this address in "
                       "this second; put the sandbox's id into the host name");
    }
    http_on_gone(r, search_gone, f);
    search_step(&f->next);
    return 0;
}

void signature_free(struct e2b *p)
{
    struct search *f;

    while ((f = LIST_FIRST(&p->searches, struct search, link)) != NULL)
        search_free(f);
}
