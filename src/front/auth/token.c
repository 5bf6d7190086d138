/* token.c - see token.h. */
#include "front/auth/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"
#include "json/read.h"
#include "json/write.h"

#define TOKEN_FILE_NEW TOKEN_FILE ".new"
#define TOKEN_FILE_MAX 1024
#define TOKEN_HEAD "cove tokens 1\n"
#define TOKEN_MAC 32      /* bytes */
#define TOKEN_MAC_TEXT 43 /* characters of base64 without padding */
#define TOKEN_V1_TEXT 64  /* hexadecimal digits */

struct secret {
    unsigned char bytes[TOKEN_SECRET];
    struct token_secret info;
    bool v1; /* made by 0.1.0: its tokens are in use in the form of 0.1.0 too */
};

struct token_mint {
    int dir_fd;
    size_t n; /* at least 1; the current one first */
    struct secret secrets[TOKEN_SECRETS_MAX];
};

static const struct {
    const char *prefix, *name;
    uint64_t lasts_s;
} kinds[TOKEN_KIND_COUNT] = {
#define X(kind, prefix, name, lasts) [kind] = {prefix, name, lasts},
    TOKEN_KINDS(X)
#undef X
};

/* NULL: 0.1.0 had none. */
static const char *const v1_names[TOKEN_KIND_COUNT] = {
    [TOKEN_SANDBOX] = "envd", [TOKEN_PORT] = "traffic"};

static const char *const modes[TOKEN_MODE_COUNT] = {
    [TOKEN_MODE_NONE] = "", [TOKEN_VIEW] = "view", [TOKEN_CONTROL] = "control"};

const char *token_kind_name(enum token_kind kind)
{
    return kinds[kind].name;
}

/* ---- the file: a head, then a line for each secret, the current one first ---- */

static int write_file(const struct token_mint *m, struct err *e)
{
    autobuf struct buf text = BUF_INIT(TOKEN_FILE_MAX);
    char hex[2 * TOKEN_SECRET + 1];
    autofd int fd = openat(m->dir_fd, TOKEN_FILE_NEW,
                           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok;

    if (fd < 0)
        return err_sys(e, "create " TOKEN_FILE_NEW);
    buf_addf(&text, TOKEN_HEAD);
    for (size_t i = 0; i < m->n; i++) {
        const struct secret *s = &m->secrets[i];

        str_hex(hex, s->bytes, TOKEN_SECRET);
        buf_addf(&text, "%s %llu %llu %d\n", hex, (unsigned long long)s->info.made_ms,
                 (unsigned long long)s->info.retires_ms, s->v1);
    }
    ok = !text.failed && write(fd, buf_data(&text), text.len) == (ssize_t)text.len &&
         fsync(fd) == 0 && renameat(m->dir_fd, TOKEN_FILE_NEW, m->dir_fd, TOKEN_FILE) == 0 &&
         fsync(m->dir_fd) == 0;
    if (!ok)
        err_sys(e, "write " TOKEN_FILE);
    OPENSSL_cleanse(hex, sizeof(hex));
    OPENSSL_cleanse(buf_data(&text), text.len);
    return ok ? 0 : -1;
}

static bool read_hex(const char *text, unsigned char out[TOKEN_SECRET])
{
    for (size_t i = 0; i < TOKEN_SECRET; i++) {
        int high = str_hex_digit((unsigned char)text[2 * i]);
        int low = high < 0 ? -1 : str_hex_digit((unsigned char)text[2 * i + 1]);

        if (low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* One line, without its end. */
static bool read_line(char *line, struct secret *s)
{
    char *made = strchr(line, ' ');
    char *retires = made != NULL ? strchr(made + 1, ' ') : NULL;
    char *v1 = retires != NULL ? strchr(retires + 1, ' ') : NULL;
    uint64_t is_v1;

    if (v1 == NULL || made - line != 2 * TOKEN_SECRET)
        return false;
    *retires = *v1 = '\0';
    if (!read_hex(line, s->bytes) || str_u64(made + 1, UINT64_MAX, &s->info.made_ms) < 0 ||
        str_u64(retires + 1, UINT64_MAX, &s->info.retires_ms) < 0 || str_u64(v1 + 1, 1, &is_v1) < 0)
        return false;
    s->v1 = is_v1 == 1;
    return true;
}

static int read_text(struct token_mint *m, char *text, struct err *e)
{
    char *line = text + strlen(TOKEN_HEAD), *end;

    if (strncmp(text, TOKEN_HEAD, strlen(TOKEN_HEAD)) != 0)
        return err_set(e, ERR_INTERNAL, TOKEN_FILE " does not begin as this release writes it");
    for (; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        if (end == NULL || m->n >= TOKEN_SECRETS_MAX)
            return err_set(e, ERR_INTERNAL, TOKEN_FILE " is damaged");
        *end = '\0';
        if (!read_line(line, &m->secrets[m->n++]))
            return err_set(e, ERR_INTERNAL, TOKEN_FILE ": line %zu is damaged", m->n + 1);
    }
    if (m->n == 0 || m->secrets[0].info.retires_ms != 0)
        return err_set(e, ERR_INTERNAL, TOKEN_FILE " has no current secret");
    return 0;
}

/* The whole file with a NUL; ERR_NOT_FOUND. */
static int read_file(int dir_fd, const char *name, char out[TOKEN_FILE_MAX + 1], size_t *ret_len,
                     struct err *e)
{
    autofd int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "there is no %s", name);
    n = fd < 0 ? -1 : read(fd, out, TOKEN_FILE_MAX + 1);
    if (n < 0)
        return err_sys(e, "read %s", name);
    if (n > TOKEN_FILE_MAX)
        return err_set(e, ERR_INTERNAL, "%s is longer than %d bytes", name, TOKEN_FILE_MAX);
    out[n] = '\0';
    *ret_len = (size_t)n;
    return 0;
}

/* The secret of 0.1.0, or a new one. */
static int first_secret(struct token_mint *m, char text[TOKEN_FILE_MAX + 1], struct err *e)
{
    struct secret *s = &m->secrets[0];
    size_t len;

    m->n = 1;
    if (read_file(m->dir_fd, TOKEN_FILE_V1, text, &len, e) == 0) {
        if (len != TOKEN_SECRET)
            return err_set(e, ERR_INTERNAL, TOKEN_FILE_V1 " does not hold %d bytes", TOKEN_SECRET);
        memcpy(s->bytes, text, TOKEN_SECRET);
        s->v1 = true;
    } else if (e->kind == ERR_NOT_FOUND) {
        id_bytes(s->bytes, TOKEN_SECRET);
        s->info.made_ms = clock_real_ms();
    } else {
        return -1;
    }
    return write_file(m, e);
}

int token_open(int dir_fd, struct token_mint **ret, struct err *e)
{
    autofree struct token_mint *m = mem_zeroed(1, sizeof(*m));
    char text[TOKEN_FILE_MAX + 1];
    size_t len;
    int r;

    m->dir_fd = dir_fd;
    r = read_file(dir_fd, TOKEN_FILE, text, &len, e);
    if (r == 0 && strlen(text) != len)
        r = err_set(e, ERR_INTERNAL, TOKEN_FILE " is damaged");
    else if (r == 0)
        r = read_text(m, text, e);
    else if (e->kind == ERR_NOT_FOUND)
        r = first_secret(m, text, e);
    OPENSSL_cleanse(text, sizeof(text));
    if (r < 0)
        return err_wrap(e, "tokens");
    /* Only now: with both files the new one counts. */
    unlinkat(dir_fd, TOKEN_FILE_V1, 0);
    *ret = take_ptr(&m);
    return 0;
}

void token_free(struct token_mint *m)
{
    if (m != NULL)
        OPENSSL_cleanse(m, sizeof(*m));
    free(m);
}

/* ---- the secrets ---- */

static bool is_in_use(const struct secret *s)
{
    return s->info.retires_ms == 0 || s->info.retires_ms > clock_real_ms();
}

int token_rotate(struct token_mint *m, uint64_t grace_ms, struct err *e)
{
    uint64_t retires = clock_real_ms() + grace_ms;
    struct token_mint next = {.dir_fd = m->dir_fd, .n = 1};
    int r;

    id_bytes(next.secrets[0].bytes, TOKEN_SECRET);
    next.secrets[0].info.made_ms = clock_real_ms();
    for (size_t i = 0; i < m->n && grace_ms > 0; i++) {
        struct secret s = m->secrets[i];

        if (!is_in_use(&s))
            continue;
        if (next.n == TOKEN_SECRETS_MAX)
            return err_set(e, ERR_LIMIT,
                           "rotate tokens: %d secrets are in use; wait for the end of a grace "
                           "time, or rotate with a grace of 0, which refuses all earlier tokens",
                           TOKEN_SECRETS_MAX);
        if (s.info.retires_ms == 0 || s.info.retires_ms > retires)
            s.info.retires_ms = retires;
        next.secrets[next.n++] = s;
    }
    r = write_file(&next, e);
    if (r == 0)
        *m = next;
    OPENSSL_cleanse(&next, sizeof(next));
    return r < 0 ? err_wrap(e, "rotate tokens") : 0;
}

size_t token_secrets(const struct token_mint *m, struct token_secret ret[TOKEN_SECRETS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (is_in_use(&m->secrets[i]))
            ret[n++] = m->secrets[i].info;
    return n;
}

/* ---- the envelope ---- */

static void mac_of(const void *secret, size_t nsecret, const char *text, size_t n,
                   unsigned char out[TOKEN_MAC])
{
    if (HMAC(EVP_sha256(), secret, (int)nsecret, (const unsigned char *)text, n, out, NULL) == NULL)
        abort(); /* no SHA-256: nothing here is safe any more */
}

/* Of base64, without padding. */
static void add_base64url(struct buf *out, const void *p, size_t n)
{
    autobuf struct buf text = BUF_INIT(2 * TOKEN_SIZE);

    str_base64(&text, p, n);
    for (size_t i = 0; i < text.len; i++) {
        char c = buf_data(&text)[i];

        if (c != '=')
            buf_addc(out, c == '+' ? '-' : c == '/' ? '_' : c);
    }
}

static int from_base64url(struct buf *out, const char *s, size_t n)
{
    autobuf struct buf text = BUF_INIT(2 * TOKEN_SIZE);

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '+' || s[i] == '/' || s[i] == '=')
            return -1;
        buf_addc(&text, s[i] == '-' ? '+' : s[i] == '_' ? '/' : s[i]);
    }
    while (text.len % 4 != 0 && !text.failed)
        buf_addc(&text, '=');
    return text.failed ? -1 : str_unbase64(out, buf_data(&text), text.len);
}

int token_seal(const char *prefix, const void *secret, size_t nsecret, const char *json,
               char out[TOKEN_SIZE], struct err *e)
{
    autobuf struct buf text = BUF_INIT(TOKEN_SIZE);
    unsigned char mac[TOKEN_MAC];

    buf_addf(&text, "%s", prefix);
    add_base64url(&text, json, strlen(json));
    if (!text.failed)
        mac_of(secret, nsecret, buf_data(&text) + strlen(prefix), text.len - strlen(prefix), mac);
    buf_addc(&text, '.');
    add_base64url(&text, mac, sizeof(mac));
    if (text.failed || text.len >= TOKEN_SIZE)
        return err_set(e, ERR_INVALID, "token: its claims are longer than %d bytes", TOKEN_SIZE);
    memcpy(out, buf_data(&text), text.len);
    out[text.len] = '\0';
    return 0;
}

/* Its parts: the claims as base64, of *ret_n characters, then a dot and the MAC. False: it does
 * not look like one. */
static bool split(const char *prefix, const char *presented, const char **ret_text, size_t *ret_n)
{
    size_t len = strnlen(presented, TOKEN_SIZE), begin = strlen(prefix);

    if (len >= TOKEN_SIZE || len <= begin + 1 + TOKEN_MAC_TEXT ||
        memcmp(presented, prefix, begin) != 0 || presented[len - TOKEN_MAC_TEXT - 1] != '.')
        return false;
    *ret_text = presented + begin;
    *ret_n = len - begin - 1 - TOKEN_MAC_TEXT;
    return true;
}

static bool is_sealed(const void *secret, size_t nsecret, const char *text, size_t n)
{
    autobuf struct buf want = BUF_INIT(TOKEN_SIZE);
    unsigned char mac[TOKEN_MAC];

    mac_of(secret, nsecret, text, n, mac);
    add_base64url(&want, mac, sizeof(mac));
    return want.len == TOKEN_MAC_TEXT &&
           CRYPTO_memcmp(buf_data(&want), text + n + 1, TOKEN_MAC_TEXT) == 0;
}

static int open_text(const char *text, size_t n, char json[TOKEN_SIZE])
{
    autobuf struct buf out = BUF_INIT(TOKEN_SIZE);

    if (from_base64url(&out, text, n) < 0 || out.failed || out.len >= TOKEN_SIZE)
        return -1;
    memcpy(json, buf_data(&out), out.len);
    json[out.len] = '\0';
    return strlen(json) == out.len ? 0 : -1;
}

int token_unseal(const char *prefix, const void *secret, size_t nsecret, const char *presented,
                 char json[TOKEN_SIZE])
{
    const char *text;
    size_t n;

    return split(prefix, presented, &text, &n) && is_sealed(secret, nsecret, text, n)
               ? open_text(text, n, json)
               : -1;
}

/* ---- claims ---- */

static int check_word(const char *what, const char *text, struct err *e)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
            return err_set(e, ERR_INVALID, "token: its %s has a character that none can have",
                           what);
    return 0;
}

static int check_claims(const struct token_claims *c, struct err *e)
{
    uint64_t lasts = kinds[c->kind].lasts_s, now = clock_real_ms() / 1000;

    if (check_word("key", c->key, e) < 0 || check_word("subject", c->subject, e) < 0 ||
        check_word("id", c->id, e) < 0)
        return -1;
    if (lasts == 0 && c->expires_s != 0)
        return err_set(e, ERR_INVALID, "token: one of kind %s does not expire",
                       kinds[c->kind].name);
    if (lasts != 0 && (c->expires_s < now || c->expires_s > now + lasts))
        return err_set(e, ERR_INVALID, "token: one of kind %s expires within %llu seconds",
                       kinds[c->kind].name, (unsigned long long)lasts);
    return 0;
}

static void write_claims(const struct token_claims *c, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_kstr(&w, "kind", kinds[c->kind].name);
    jw_kstr(&w, "key", c->key);
    jw_kstr(&w, "sub", c->subject);
    if (c->id[0] != '\0')
        jw_kstr(&w, "jti", c->id);
    if (c->mode != TOKEN_MODE_NONE)
        jw_kstr(&w, "mode", modes[c->mode]);
    if (c->port != 0)
        jw_ku64(&w, "port", c->port);
    if (c->expires_s != 0)
        jw_ku64(&w, "exp", c->expires_s);
    jw_close(&w);
}

struct claims_in {
    const char *kind, *key, *sub, *jti, *mode;
    uint64_t port, exp;
};
/* clang-format off */
static const struct json_field claims_fields[] = {
    {"kind", JSON_FIELD_STR, offsetof(struct claims_in, kind), 0, TOKEN_ID_MAX, true, ""},
    {"key",  JSON_FIELD_STR, offsetof(struct claims_in, key),  0, TOKEN_KEY_MAX, true, ""},
    {"sub",  JSON_FIELD_STR, offsetof(struct claims_in, sub),  0, TOKEN_SUBJECT_MAX, true, ""},
    {"jti",  JSON_FIELD_STR, offsetof(struct claims_in, jti),  0, TOKEN_ID_MAX, false, ""},
    {"mode", JSON_FIELD_STR, offsetof(struct claims_in, mode), 0, TOKEN_ID_MAX, false, ""},
    {"port", JSON_FIELD_U64, offsetof(struct claims_in, port), 0, 65535, false, ""},
    {"exp",  JSON_FIELD_U64, offsetof(struct claims_in, exp),  0, UINT64_MAX, false, ""},
};
/* clang-format on */

static int read_claims(const char *json, enum token_kind kind, struct token_claims *ret,
                       struct err *e)
{
    struct claims_in in = {.jti = "", .mode = ""};
    autojson json_t *doc = NULL;

    if (json_parse(json, strlen(json), &doc, e) < 0 ||
        json_decode(doc, claims_fields, sizeof(claims_fields) / sizeof(*claims_fields), &in, e) < 0)
        return -1;
    if (strcmp(in.kind, kinds[kind].name) != 0)
        return err_set(e, ERR_UNAUTHORIZED, "it is a token for something else");
    *ret = (struct token_claims){.kind = kind, .port = (unsigned)in.port, .expires_s = in.exp};
    strcpy(ret->key, in.key);
    strcpy(ret->subject, in.sub);
    strcpy(ret->id, in.jti);
    while (strcmp(modes[ret->mode], in.mode) != 0)
        if (++ret->mode == TOKEN_MODE_COUNT)
            return err_set(e, ERR_UNAUTHORIZED, "its mode is unknown");
    return 0;
}

/* ---- tokens ---- */

static int make_with(const struct secret *s, const struct token_claims *c, char out[TOKEN_SIZE],
                     struct err *e)
{
    autobuf struct buf json = BUF_INIT(TOKEN_SIZE);

    write_claims(c, &json);
    if (json.failed)
        return err_set(e, ERR_INVALID, "token: its claims are longer than %d bytes", TOKEN_SIZE);
    return token_seal(kinds[c->kind].prefix, s->bytes, TOKEN_SECRET, buf_cstr(&json), out, e);
}

int token_make(const struct token_mint *m, const struct token_claims *claims, char out[TOKEN_SIZE],
               struct err *e)
{
    return check_claims(claims, e) < 0 ? -1 : make_with(&m->secrets[0], claims, out, e);
}

int token_check(const struct token_mint *m, enum token_kind kind, const char *presented,
                struct token_claims *ret, struct err *e)
{
    char json[TOKEN_SIZE];
    const char *text;
    bool ours = false;
    size_t n;

    if (presented == NULL)
        return err_set(e, ERR_UNAUTHORIZED, "a token of kind %s is needed", kinds[kind].name);
    if (!split(kinds[kind].prefix, presented, &text, &n))
        return err_set(e, ERR_UNAUTHORIZED, "this is not a token of kind %s", kinds[kind].name);
    /* No early end: how long this takes does not tell which secret matched. */
    for (size_t i = 0; i < m->n; i++)
        ours |= is_sealed(m->secrets[i].bytes, TOKEN_SECRET, text, n) && is_in_use(&m->secrets[i]);
    if (!ours)
        return err_set(e, ERR_UNAUTHORIZED,
                       "this token of kind %s is not valid here, or no longer since the secret was "
                       "changed; get a new one",
                       kinds[kind].name);
    if (open_text(text, n, json) < 0)
        return err_set(e, ERR_UNAUTHORIZED, "this token is damaged");
    if (read_claims(json, kind, ret, e) < 0) {
        e->kind = ERR_UNAUTHORIZED;
        return err_wrap(e, "token");
    }
    if (ret->expires_s == 0 ? kinds[kind].lasts_s != 0 : ret->expires_s < clock_real_ms() / 1000)
        return err_set(e, ERR_UNAUTHORIZED, "this token of kind %s has expired; get a new one",
                       kinds[kind].name);
    return 0;
}

/* ---- tokens of 0.1.0: hexadecimal digits of the HMAC of "envd:ID" or "traffic:ID" ---- */

static void make_v1(const struct secret *s, enum token_kind kind, const char *subject,
                    char out[TOKEN_SIZE])
{
    unsigned char mac[TOKEN_MAC];
    char text[TOKEN_SUBJECT_MAX + 16];

    str_fmt(text, sizeof(text), "%s:%.*s", v1_names[kind], TOKEN_SUBJECT_MAX, subject);
    mac_of(s->bytes, TOKEN_SECRET, text, strlen(text), mac);
    str_hex(out, mac, TOKEN_MAC);
}

static bool is_v1(const struct token_mint *m, enum token_kind kind, const char *subject,
                  const char *presented)
{
    char want[TOKEN_SIZE];
    bool is = false;

    if (v1_names[kind] == NULL || strnlen(presented, TOKEN_V1_TEXT + 1) != TOKEN_V1_TEXT)
        return false;
    for (size_t i = 0; i < m->n; i++)
        if (m->secrets[i].v1 && is_in_use(&m->secrets[i])) {
            make_v1(&m->secrets[i], kind, subject, want);
            is |= CRYPTO_memcmp(want, presented, TOKEN_V1_TEXT) == 0;
        }
    return is;
}

bool token_opens(const struct token_mint *m, enum token_kind kind, const char *subject,
                 const char *presented)
{
    struct token_claims c;
    struct err e;

    if (presented == NULL)
        return false;
    return (token_check(m, kind, presented, &c, &e) == 0 && strcmp(c.subject, subject) == 0) ||
           is_v1(m, kind, subject, presented);
}

size_t token_texts(const struct token_mint *m, const struct token_claims *claims,
                   char out[TOKEN_TEXTS_MAX][TOKEN_SIZE])
{
    struct err ignored;
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct secret *s = &m->secrets[i];

        if (!is_in_use(s))
            continue;
        if (make_with(s, claims, out[n], &ignored) == 0)
            n++;
        if (s->v1 && v1_names[claims->kind] != NULL)
            make_v1(s, claims->kind, claims->subject, out[n++]);
    }
    return n;
}
