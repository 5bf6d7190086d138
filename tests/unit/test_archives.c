/* test_archives.c - manifests, and the store in a directory. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "front/engine/archives.h"
#include "front/engine/archives/internal.h"

static struct manifest some(void)
{
    struct manifest m = {.template = "base", .created_ms = 7, .entries = 3, .bytes = 9};
    struct manifest_chunk *c = manifest_add(&m, MANIFEST_TAR);

    memset(m.base, 'a', SHA256_HEX - 1);
    manifest_digest("x", 1, c->digest);
    c->size = 1;
    return m;
}

static int reads(const char *text)
{
    struct manifest m;
    struct err e;
    int r = manifest_read(text, strlen(text), &m, &e);

    if (r == 0)
        manifest_free(&m);
    return r == 0 ? -1 : (int)e.kind;
}

TEST(a_manifest_reads_back_as_it_was_written)
{
    autobuf struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
    struct manifest m = some(), back;
    struct err e;

    m.spec = strdup("{\"a\":[1,2]}");
    CHECK(manifest_write(&m, &text, &e) == 0);
    CHECK(manifest_read(buf_data(&text), text.len, &back, &e) == 0);
    CHECK_STR(back.template, "base");
    CHECK_STR(back.base, m.base);
    CHECK_STR(back.spec, m.spec);
    CHECK(back.entries == 3 && back.bytes == 9 && back.created_ms == 7);
    CHECK(back.parts[MANIFEST_TAR].n == 1 && back.parts[MANIFEST_GONE].n == 0);
    CHECK_STR(back.parts[MANIFEST_TAR].v[0].digest, m.parts[MANIFEST_TAR].v[0].digest);
    CHECK(manifest_stored(&back) == 1);
    manifest_free(&m);
    manifest_free(&back);
}

TEST(a_manifest_of_a_newer_release_or_one_that_is_damaged_is_refused)
{
    autobuf struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
    struct manifest m = some();
    struct err e;
    char *at;

    CHECK(manifest_write(&m, &text, &e) == 0);
    manifest_free(&m);
    CHECK(reads(buf_cstr(&text)) == -1);
    at = strstr(buf_data(&text), "\"version\":1");
    at[strlen("\"version\":")] = '2';
    CHECK(reads(buf_cstr(&text)) == ERR_UNSUPPORTED);
    at[strlen("\"version\":")] = '1';
    at = strstr(buf_data(&text), "\"tar\":[[\"") + strlen("\"tar\":[[\"");
    *at = '/'; /* a digest becomes a name in the store */
    CHECK(reads(buf_cstr(&text)) == ERR_INTERNAL);
    CHECK(reads("{}") == ERR_INTERNAL);
    CHECK(reads("no") == ERR_INTERNAL);
}

/* ---- the store ---- */

struct rig {
    char dir[64];
    int fd;
    struct vault *v;
};

static struct rig rig_new(void)
{
    struct rig r = {.dir = "/tmp/cove-archives-XXXXXX"};
    struct err e;

    CHECK(mkdtemp(r.dir) != NULL);
    r.fd = open(r.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(vault_dir_open("", r.fd, &r.v, &e) == 0);
    return r;
}

static void rig_end(struct rig *r)
{
    char command[96];

    vault_unref(r->v);
    close(r->fd);
    snprintf(command, sizeof(command), "rm -rf %s", r->dir);
    CHECK(system(command) == 0);
}

static int count_one(void *arg, const char *name, struct err *e)
{
    (void)name;
    (void)e;
    ++*(int *)arg;
    return 0;
}

static int chunks_of(struct rig *r, const char *space)
{
    struct err e;
    int n = 0;

    CHECK(r->v->kind->list(r->v, space, BLOB_CHUNKS, count_one, &n, &e) == 0);
    return n;
}

TEST(a_blob_is_stored_once_and_read_back_by_its_digest)
{
    autobuf struct buf back = BUF_INIT(100);
    char digest[SHA256_HEX], again[SHA256_HEX];
    struct rig r = rig_new();
    struct err e;

    CHECK(blob_put(r.v, "s", BLOB_CHUNKS, "hello", 5, digest, &e) == 0);
    CHECK(blob_put(r.v, "s", BLOB_CHUNKS, "hello", 5, again, &e) == 0);
    CHECK_STR(digest, again);
    CHECK(chunks_of(&r, "s") == 1 && chunks_of(&r, "t") == 0);
    CHECK(blob_get(r.v, "s", BLOB_CHUNKS, digest, &back, &e) == 0);
    CHECK(back.len == 5 && memcmp(buf_data(&back), "hello", 5) == 0);
    buf_clear(&back);
    CHECK(blob_get(r.v, "t", BLOB_CHUNKS, digest, &back, &e) < 0 && e.kind == ERR_NOT_FOUND);
    rig_end(&r);
}

TEST(a_damaged_blob_is_refused_and_stored_again)
{
    autobuf struct buf back = BUF_INIT(100);
    char digest[SHA256_HEX], path[300];
    struct rig r = rig_new();
    struct err e;
    int fd;

    CHECK(blob_put(r.v, "s", BLOB_CHUNKS, "hello", 5, digest, &e) == 0);
    snprintf(path, sizeof(path), "%s/archives/s/chunks/%s", r.dir, digest);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(pwrite(fd, "j", 1, 0) == 1);
    close(fd);
    CHECK(blob_get(r.v, "s", BLOB_CHUNKS, digest, &back, &e) < 0 && e.kind == ERR_INTERNAL);
    CHECK(strstr(e.msg, "damaged") != NULL);
    CHECK(blob_put(r.v, "s", BLOB_CHUNKS, "hello", 5, digest, &e) == 0);
    buf_clear(&back);
    CHECK(blob_get(r.v, "s", BLOB_CHUNKS, digest, &back, &e) == 0);
    rig_end(&r);
}

TEST(half_a_blob_is_never_listed_and_removed_at_the_next_list)
{
    struct rig r = rig_new();
    char path[300];
    struct err e;

    CHECK(r.v->kind->put(r.v, "s/chunks/a", "x", 1, &e) == 0);
    snprintf(path, sizeof(path), "%s/archives/s/new/half", r.dir);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CHECK(chunks_of(&r, "s") == 1);
    CHECK(access(path, F_OK) < 0);
    CHECK(r.v->kind->remove(r.v, "s/chunks/a", &e) == 0);
    CHECK(r.v->kind->remove(r.v, "s/chunks/a", &e) == 0);
    CHECK(chunks_of(&r, "s") == 0);
    rig_end(&r);
}
