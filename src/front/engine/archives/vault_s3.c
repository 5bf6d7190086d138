/* vault_s3.c - archives in a bucket of S3, or of what speaks its protocol: an object per blob.
 *
 * An object is there as a whole or not at all, so nothing is renamed. A blob is at most a chunk
 * (pack.c), far below what needs several parts. A request that fails in a way that another try may
 * help is tried again; each try has its time limits. */
#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/curl.h"
#include "front/engine/archives/sign.h"
#include "front/engine/archives/vault.h"
#include "mem/mem.h"

#define S3_CONNECT_S 10L
#define S3_SLOW_BYTES 1024L /* a second, on average over... */
#define S3_SLOW_S 30L
#define S3_TRIES 4
#define S3_FIRST_WAIT_MS 200
#define S3_IDLE_MAX 8u /* connections kept */
#define S3_URL_MAX 2048u
#define S3_ANSWER_MAX (4u << 20) /* of a list or an error */
#define S3_FILE_MAX 4096u

struct vault_s3 {
    struct vault v;
    const struct curl_calls *c;
    char endpoint[512]; /* "https://host:port" */
    char host[256], bucket[128], prefix[256], region[65], id[201], secret[501];
    pthread_mutex_t lock;
    CURL *idle[S3_IDLE_MAX];
    size_t nidle;
};

static struct vault_s3 *of(struct vault *v)
{
    return CONTAINER_OF(v, struct vault_s3, v);
}

static CURL *take_handle(struct vault_s3 *s)
{
    CURL *h = NULL;

    pthread_mutex_lock(&s->lock);
    if (s->nidle > 0)
        h = s->idle[--s->nidle];
    pthread_mutex_unlock(&s->lock);
    return h != NULL ? h : s->c->curl_easy_init();
}

static void give_handle(struct vault_s3 *s, CURL *h)
{
    s->c->curl_easy_reset(h); /* its connection stays */
    pthread_mutex_lock(&s->lock);
    if (s->nidle < S3_IDLE_MAX) {
        s->idle[s->nidle++] = h;
        h = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    if (h != NULL)
        s->c->curl_easy_cleanup(h);
}

/* ---- one request ---- */

struct request {
    const char *method, *key, *query; /* key "": the bucket */
    const char *body;
    size_t body_len, sent;
    struct buf *to; /* of the answer */
    struct buf answer;
    long status;
};

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct request *r = arg;
    struct buf *to = r->status == 200 && r->to != NULL ? r->to : &r->answer;

    buf_add(to, p, size * n);
    return to->failed ? 0 : size * n;
}

static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
    struct request *r = arg;

    if (size * n > 12 && strncmp(p, "HTTP/", 5) == 0)
        r->status = strtol(memchr(p, ' ', size * n) != NULL ? strchr(p, ' ') : "0", NULL, 10);
    return size * n;
}

static size_t on_read(char *p, size_t size, size_t n, void *arg)
{
    struct request *r = arg;
    size_t left = r->body_len - r->sent;

    n *= size;
    n = n < left ? n : left;
    memcpy(p, r->body + r->sent, n);
    r->sent += n;
    return n;
}

static struct curl_slist *headers(struct vault_s3 *s, const struct request *r, const char *path)
{
    char hash[SHA256_HEX], line[SIGN_TEXT_MAX + 64];
    struct curl_slist *list = NULL;
    struct signature sig;

    sign_hash(r->body != NULL ? r->body : "", r->body_len, hash);
    sign_request(&(struct sign_request){.method = r->method,
                                        .host = s->host,
                                        .path = path,
                                        .query = r->query,
                                        .payload = hash,
                                        .id = s->id,
                                        .secret = s->secret,
                                        .region = s->region,
                                        .now = time(NULL)},
                 &sig);
    str_fmt(line, sizeof(line), "Authorization: %s", sig.authorization);
    list = s->c->curl_slist_append(list, line);
    str_fmt(line, sizeof(line), "x-amz-date: %s", sig.date);
    list = s->c->curl_slist_append(list, line);
    str_fmt(line, sizeof(line), "x-amz-content-sha256: %s", hash);
    list = s->c->curl_slist_append(list, line);
    return s->c->curl_slist_append(list, "Expect:");
}

static void set_options(struct vault_s3 *s, CURL *h, struct request *r, const char *url,
                        struct curl_slist *list)
{
    __typeof__(curl_easy_setopt) *set = s->c->curl_easy_setopt;

    (set)(h, CURLOPT_URL, url);
    (set)(h, CURLOPT_HTTPHEADER, list);
    (set)(h, CURLOPT_CUSTOMREQUEST, r->method);
    (set)(h, CURLOPT_NOSIGNAL, 1L);
    (set)(h, CURLOPT_PROTOCOLS_STR, "http,https");
    (set)(h, CURLOPT_CONNECTTIMEOUT, S3_CONNECT_S);
    (set)(h, CURLOPT_LOW_SPEED_LIMIT, S3_SLOW_BYTES);
    (set)(h, CURLOPT_LOW_SPEED_TIME, S3_SLOW_S);
    (set)(h, CURLOPT_HEADERFUNCTION, on_head);
    (set)(h, CURLOPT_HEADERDATA, r);
    (set)(h, CURLOPT_WRITEFUNCTION, on_body);
    (set)(h, CURLOPT_WRITEDATA, r);
    if (r->body == NULL)
        return;
    (set)(h, CURLOPT_UPLOAD, 1L);
    (set)(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_len);
    (set)(h, CURLOPT_READFUNCTION, on_read);
    (set)(h, CURLOPT_READDATA, r);
}

/* The text between two tags, or "". */
static const char *tag(const char *xml, const char *name, char *out, size_t room)
{
    char open[64];
    const char *at;

    str_fmt(open, sizeof(open), "<%s>", name);
    at = xml != NULL ? strstr(xml, open) : NULL;
    if (at != NULL)
        at += strlen(open);
    snprintf(out, room, "%.*s", at != NULL ? (int)strcspn(at, "<") : 0, at != NULL ? at : "");
    return out;
}

static int refused(struct vault_s3 *s, struct request *r, struct err *e)
{
    char code[64], message[200];
    const char *xml = buf_cstr(&r->answer);

    tag(xml, "Code", code, sizeof(code));
    tag(xml, "Message", message, sizeof(message));
    if (r->status == 404 && strcmp(code, "NoSuchBucket") != 0)
        return err_set(e, ERR_NOT_FOUND, "the store has no %.120s", r->key);
    return err_set(e, ERR_REMOTE,
                   "the store of archives %s answered %s of bucket %s with %ld %s: %s%s",
                   s->endpoint, r->method, s->bucket, r->status, code, message,
                   r->status == 403 ? "; see the setting archives-credentials" : "");
}

/* 0, -1, or 1: another try may help. */
static int try_once(struct vault_s3 *s, struct request *r, struct err *e)
{
    char path[S3_URL_MAX], url[2 * S3_URL_MAX + 600];
    struct curl_slist *list;
    CURL *h = take_handle(s);
    size_t had = r->to != NULL ? r->to->len : 0;
    CURLcode code;

    if (h == NULL)
        return err_set(e, ERR_INTERNAL, "libcurl: out of memory");
    str_fmt(path, sizeof(path), "/%s%s%s%s", s->bucket, *r->key != '\0' ? "/" : "",
            *r->key != '\0' ? s->prefix : "", r->key);
    str_fmt(url, sizeof(url), "%s%s%s%s", s->endpoint, path, *r->query != '\0' ? "?" : "",
            r->query);
    r->sent = 0;
    r->status = 0;
    buf_clear(&r->answer);
    list = headers(s, r, path);
    set_options(s, h, r, url, list);
    code = s->c->curl_easy_perform(h);
    s->c->curl_slist_free_all(list);
    give_handle(s, h);
    if (code == CURLE_OK && r->status >= 200 && r->status < 300 &&
        (r->to == NULL || r->status == 200)) /* 206: a part of it */
        return 0;
    if (r->to != NULL && !r->to->failed)
        r->to->len = had;
    if (code == CURLE_OK) {
        refused(s, r, e);
        return r->status >= 500 || r->status == 429 ? 1 : -1;
    }
    if (code == CURLE_WRITE_ERROR)
        return err_set(e, ERR_INTERNAL, "%.120s is larger than it was written", r->key);
    err_set(e, ERR_REMOTE, "the store of archives %s cannot be reached: %s", s->endpoint,
            s->c->curl_easy_strerror(code));
    return 1;
}

static int request(struct vault *v, struct request *r, struct err *e)
{
    int wait_ms = S3_FIRST_WAIT_MS, ret = 1;

    buf_init(&r->answer, S3_ANSWER_MAX);
    for (int i = 0; i < S3_TRIES && ret == 1; i++) {
        if (i > 0) {
            poll(NULL, 0, wait_ms);
            wait_ms *= 4;
        }
        ret = try_once(of(v), r, e);
    }
    return ret == 0 ? 0 : -1;
}

/* ---- the calls of vault.h ---- */

static int s3_put(struct vault *v, const char *name, const void *p, size_t n, struct err *e)
{
    struct request r = {.method = "PUT", .key = name, .query = "", .body = p, .body_len = n};
    int ret = request(v, &r, e);

    buf_free(&r.answer);
    return ret;
}

static int s3_get(struct vault *v, const char *name, struct buf *to, struct err *e)
{
    struct request r = {.method = "GET", .key = name, .query = "", .to = to};
    int ret = request(v, &r, e);

    buf_free(&r.answer);
    return ret;
}

static int s3_remove(struct vault *v, const char *name, struct err *e)
{
    struct request r = {.method = "DELETE", .key = name, .query = ""};
    int ret = request(v, &r, e);

    buf_free(&r.answer);
    return ret < 0 && e->kind == ERR_NOT_FOUND ? 0 : ret;
}

static void encode(const char *s, char *out, size_t room)
{
    size_t n = 0;

    for (; *s != '\0' && n + 4 < room; s++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~", *s) !=
            NULL)
            out[n++] = *s;
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", (unsigned char)*s);
    }
    out[n] = '\0';
}

/* Each <Key> below the prefix; names of blobs have nothing that XML escapes. */
static int each_key(const char *xml, const char *prefix,
                    int (*each)(void *arg, const char *name, struct err *e), void *arg,
                    struct err *e)
{
    size_t skip = strlen(prefix);
    char key[S3_URL_MAX];
    int r = 0;

    while (r == 0 && (xml = strstr(xml, "<Key>")) != NULL) {
        tag(xml, "Key", key, sizeof(key));
        if (strncmp(key, prefix, skip) == 0 && key[skip] != '\0')
            r = each(arg, key + skip, e);
        xml += strlen("<Key>");
    }
    return r;
}

static int s3_list(struct vault *v, const char *space, const char *kind,
                   int (*each)(void *arg, const char *name, struct err *e), void *arg,
                   struct err *e)
{
    char prefix[512], encoded[1600], token[1024] = "", was[1024], more[3100] = "", query[5000];
    int r = 0;

    str_fmt(prefix, sizeof(prefix), "%s%s/%s/", of(v)->prefix, space, kind);
    encode(prefix, encoded, sizeof(encoded));
    do {
        struct request q = {.method = "GET", .key = "", .query = query};

        str_fmt(was, sizeof(was), "%s", token);
        encode(token, more, sizeof(more));
        str_fmt(query, sizeof(query), "%s%s%slist-type=2&prefix=%s",
                *token != '\0' ? "continuation-token=" : "", more, *token != '\0' ? "&" : "",
                encoded);
        r = request(v, &q, e);
        tag(r == 0 ? buf_cstr(&q.answer) : NULL, "NextContinuationToken", token, sizeof(token));
        if (r == 0)
            r = each_key(buf_cstr(&q.answer), prefix, each, arg, e);
        buf_free(&q.answer);
        if (r == 0 && *token != '\0' && strcmp(token, was) == 0)
            r = err_set(e, ERR_REMOTE, "the store of archives %s lists the same page for ever",
                        of(v)->endpoint);
    } while (r == 0 && *token != '\0');
    return r;
}

static void s3_free(struct vault *v)
{
    struct vault_s3 *s = of(v);

    while (s->nidle > 0)
        s->c->curl_easy_cleanup(s->idle[--s->nidle]);
    pthread_mutex_destroy(&s->lock);
    memset(s->secret, 0, sizeof(s->secret));
    free(s);
}

static const struct vault_kind kind_s3 = {.name = "s3",
                                          .put = s3_put,
                                          .get = s3_get,
                                          .remove = s3_remove,
                                          .list = s3_list,
                                          .free = s3_free};

/* ---- open ---- */

/* "aws_access_key_id = X", as in the files of the vendor's own tools. */
static void setting(const char *text, const char *name, char *out, size_t room)
{
    const char *at = strstr(text, name);

    *out = '\0';
    if (at == NULL)
        return;
    at += strlen(name);
    at += strspn(at, " \t");
    if (*at++ != '=')
        return;
    at += strspn(at, " \t");
    snprintf(out, room, "%.*s", (int)strcspn(at, " \t\r\n"), at);
}

static int read_credentials(struct vault_s3 *s, const char *path, struct err *e)
{
    char text[S3_FILE_MAX + 1];
    FILE *f = fopen(path, "re");
    size_t n;

    if (f == NULL)
        return err_sys(e, "archives-credentials: open %.300s (user `cove` must be able to read it)",
                       path);
    n = fread(text, 1, S3_FILE_MAX, f);
    fclose(f);
    text[n] = '\0';
    setting(text, "aws_access_key_id", s->id, sizeof(s->id));
    setting(text, "aws_secret_access_key", s->secret, sizeof(s->secret));
    OPENSSL_cleanse(text, sizeof(text));
    if (s->id[0] != '\0' && s->secret[0] != '\0')
        return 0;
    return err_set(e, ERR_INVALID,
                   "archives-credentials: %.300s has no lines aws_access_key_id = ... and "
                   "aws_secret_access_key = ...",
                   path);
}

static bool is_word(const char *s, const char *also, size_t max)
{
    char ok[96];

    str_fmt(ok, sizeof(ok), "abcdefghijklmnopqrstuvwxyz0123456789-.%s", also);
    return *s != '\0' && strlen(s) <= max && s[strspn(s, ok)] == '\0';
}

/* s3://BUCKET[/PREFIX] */
static int place(struct vault_s3 *s, const char *where, struct err *e)
{
    const char *name = where + strlen(VAULT_S3), *slash = strchr(name, '/');
    size_t n = slash != NULL ? (size_t)(slash - name) : strlen(name);
    const char *prefix = slash != NULL ? slash + 1 : "";

    snprintf(s->bucket, sizeof(s->bucket), "%.*s", (int)n, name);
    if (!is_word(s->bucket, "", 63) ||
        (*prefix != '\0' && !is_word(prefix, "_/ABCDEFGHIJKLMNOPQRSTUVWXYZ", 200)))
        return err_set(e, ERR_INVALID,
                       "archives: '%.100s' is not s3://BUCKET or s3://BUCKET/PREFIX, of letters, "
                       "digits, '-', '.', '_' and '/'",
                       where);
    n = strlen(prefix);
    str_fmt(s->prefix, sizeof(s->prefix), "%s%s", prefix, n > 0 && prefix[n - 1] != '/' ? "/" : "");
    return 0;
}

static int server(struct vault_s3 *s, const struct config *c, struct err *e)
{
    const char *host;
    size_t n;

    if (!is_word(c->archives_region, "", 64))
        return err_set(e, ERR_INVALID, "archives-region: '%.60s' is not a region",
                       c->archives_region);
    str_fmt(s->region, sizeof(s->region), "%s", c->archives_region);
    if (c->archives_endpoint[0] == '\0')
        str_fmt(s->endpoint, sizeof(s->endpoint), "https://s3.%s.amazonaws.com", s->region);
    else
        snprintf(s->endpoint, sizeof(s->endpoint), "%s", c->archives_endpoint);
    n = strlen(s->endpoint);
    if (n > 0 && s->endpoint[n - 1] == '/')
        s->endpoint[n - 1] = '\0';
    host = strstr(s->endpoint, "://");
    if (host == NULL ||
        (strncmp(s->endpoint, "http://", 7) != 0 && strncmp(s->endpoint, "https://", 8) != 0) ||
        !is_word(host + 3, ":[]_ABCDEFGHIJKLMNOPQRSTUVWXYZ", sizeof(s->host) - 1))
        return err_set(e, ERR_INVALID,
                       "archives-endpoint: expected http://HOST[:PORT] or https://HOST[:PORT], "
                       "without a path, a user or a password");
    str_fmt(s->host, sizeof(s->host), "%s", host + 3);
    return 0;
}

int vault_s3_open(const struct config *c, struct vault **ret, struct err *e)
{
    struct vault_s3 *s = mem_zeroed(1, sizeof(*s));

    s->v = (struct vault){.kind = &kind_s3, .refs = 1};
    pthread_mutex_init(&s->lock, NULL);
    if (place(s, c->archives, e) < 0 || server(s, c, e) < 0 ||
        read_credentials(s, c->archives_credentials, e) < 0 || curl_load(&s->c, e) < 0) {
        s3_free(&s->v);
        return -1;
    }
    *ret = &s->v;
    return 0;
}
