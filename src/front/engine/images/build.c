/* build.c - builds a template from Debian packages: debootstrap runs in a temporary sandbox of
 * `base`, its result is packed there with tar, and added like any archive.
 *
 * The sandbox has no row, so after a crash the next front destroys it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "front/engine/process.h"
#include "mem/mem.h"

#define BUILD_TAIL 400u /* bytes of what was printed last, for the message of a failure */
#define EXIT_LACKS 77   /* of the script: this template or this host cannot */

/* No mknod and no mount inside: debootstrap gets ones that do nothing but leave a
 * file. What it makes in /dev is not packed: a sandbox has its own. */
static const char make_script[] =
    "command -v debootstrap >/dev/null || { echo 'the template base has no debootstrap: install "
    "the package on this host, then refresh base'; exit 77; }\n"
    "case $2 in file:*) ;; *) ls /sys/class/net | grep -qv '^lo$' || { echo 'sandboxes have no "
    "network here, and the packages are on one'; exit 77; } ;; esac\n"
    "mkdir -p /run/shim /build && cd /run/shim && printf '#!/bin/sh\\n' >mount && cp mount umount\n"
    "printf '#!/bin/sh\\nfor a; do case $a in /*|./*|[a-z]*/*) : >\"$a\" ;; esac; done\\n' >mknod\n"
    "chmod 755 mount umount mknod && cd / && export PATH=/run/shim:$PATH\n"
    "exec debootstrap --variant=minbase ${3:+--include=$3} \"$1\" /build ${2:+\"$2\"}\n";
static const char pack_script[] =
    "exec tar -C /build --numeric-owner --xattrs --exclude='./dev/*' --exclude='./proc/*' "
    "--exclude='./sys/*' --exclude='./var/cache/apt/archives/*.deb' -cf - .";

struct build {
    struct engine *g;
    engine_done_cb *cb;
    void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total);
    void *arg;
    char key[ENGINE_KEY_MAX + 1], name[IMAGE_NAME], id[KEEPER_ID_MAX + 1];
    struct buf argv; /* of the first script */
    struct talk_peer peer;
    struct process_stream *stream;
    struct engine_import *import;
    bool packing;
    char tail[BUILD_TAIL + 1];
    struct loop_later later;
    struct err why;
};

static void build_free(void *arg)
{
    struct build *b = arg;

    loop_undefer(&b->later);
    buf_free(&b->argv);
    free(b);
}

static void end(struct build *b, const struct err *e)
{
    struct err gone;

    if (b->import != NULL)
        engine_import_cancel(take_ptr(&b->import));
    if (b->id[0] != '\0') {
        err_set(&gone, ERR_GONE, "the build ended");
        if (b->stream != NULL)
            process_close(take_ptr(&b->stream));
        talk_peer_reset(&b->peer, &gone);
        life_destroy_leftover(b->g, b->id);
    }
    b->cb(b->arg, e);
    build_free(b);
}

/* ---- what is printed ---- */

static void keep_tail(struct build *b, const char *p, size_t n)
{
    size_t have = strlen(b->tail), drop;

    if (n > BUILD_TAIL) {
        p += n - BUILD_TAIL;
        n = BUILD_TAIL;
    }
    drop = have + n > BUILD_TAIL ? have + n - BUILD_TAIL : 0;
    memmove(b->tail, b->tail + drop, have - drop);
    for (size_t i = 0; i < n; i++) /* text for a message: nothing that controls */
        b->tail[have - drop + i] = (unsigned char)p[i] < 0x20 && p[i] != '\n' ? ' ' : p[i];
    b->tail[have - drop + n] = '\0';
}

static const char *last_line(struct build *b)
{
    size_t n = strlen(b->tail);
    char *nl;

    while (n > 0 && b->tail[n - 1] == '\n')
        b->tail[--n] = '\0';
    nl = strrchr(b->tail, '\n');
    return nl != NULL ? nl + 1 : b->tail;
}

static void on_text(struct build *b, const struct process_output *m)
{
    keep_tail(b, m->data.p, m->data.len);
    if (b->progress != NULL && memchr(m->data.p, '\n', m->data.len) != NULL &&
        str_is_utf8(b->tail, strlen(b->tail)))
        b->progress(b->arg, last_line(b), 0, 0);
}

/* ---- packing ---- */

static void on_output(void *arg, const struct process_output *m)
{
    struct build *b = arg;

    if (!b->packing || m->stream == PROCESS_STDERR)
        on_text(b, m);
    else if (b->import != NULL &&
             engine_import_feed(b->import, m->data.p, m->data.len, false) > ENGINE_IMPORT_HIGH)
        process_pause(b->stream, true);
}

static void on_fail(void *arg, const struct err *e)
{
    struct build *b = arg;
    struct err why = *e;

    b->stream = NULL;
    end(b, &why);
}

static void on_ended(void *arg, const struct process_exit *m);

static const struct process_ops ops = {
    .on_output = on_output, .on_exit = on_ended, .on_fail = on_fail};

static void run(struct build *b, const struct buf *argv)
{
    static const char env[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0"
                              "LANG=C.UTF-8\0container=lxc";
    struct init_start start = {.id = b->packing ? "pack" : "build",
                               .argv = wire_strv_of(argv),
                               .env = {env, sizeof(env), 3},
                               .cwd = "/",
                               .user = "root",
                               .flags = INIT_START_OWN | INIT_START_FORGET};

    b->stream = stream_run(b->g, &b->peer, &start, &ops, b);
}

static void on_import_drain(void *arg)
{
    struct build *b = arg;
    autobuf struct buf argv = BUF_INIT(8192);

    if (b->packing) {
        if (b->stream != NULL)
            process_pause(b->stream, false);
        return;
    }
    b->packing = true;
    wire_strv_add(&argv, "/bin/bash");
    wire_strv_add(&argv, "-c");
    wire_strv_add(&argv, pack_script);
    run(b, &argv);
}

static void on_import_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct build *b = arg;

    if (b->progress != NULL)
        b->progress(b->arg, text, done, total);
}

static void on_import_done(void *arg, const struct err *e)
{
    struct build *b = arg;

    b->import = NULL;
    end(b, e);
}

static const struct import_ops import_ops = {
    .on_drain = on_import_drain, .on_progress = on_import_progress, .on_done = on_import_done};

static void on_ended(void *arg, const struct process_exit *m)
{
    struct build *b = arg;
    struct err e;

    b->stream = NULL;
    if (m->code != 0 || m->signal != 0) {
        err_set(&e, m->code == EXIT_LACKS ? ERR_UNSUPPORTED : ERR_INVALID, "%s%.300s",
                m->code == EXIT_LACKS ? "" : "debootstrap failed: ", last_line(b));
        end(b, &e);
    } else if (b->packing) {
        engine_import_feed(b->import, NULL, 0, true);
    } else {
        b->import = engine_import(b->g, b->key, b->name, 0, &import_ops, b);
    }
}

/* ---- the beginning ---- */

static void on_sandbox(void *arg, const void *msg, const struct err *e)
{
    const struct keeper_sandbox *m = msg;
    struct build *b = arg;
    struct err why;

    if (e == NULL && id_is_valid(m->id, KEEPER_ID_MAX)) {
        str_fmt(b->id, sizeof(b->id), "%s", m->id);
        talk_peer_init(&b->peer, b->g->hub, b->id);
        run(b, &b->argv);
        return;
    }
    if (e != NULL)
        why = *e;
    else
        err_set(&why, ERR_INTERNAL, "invalid sandbox id '%s' from the keeper", m->id);
    end(b, &why);
}

static bool is_made_of(const char *s, const char *chars, size_t max)
{
    size_t n = strspn(s, chars);

    return n > 0 && n <= max && s[n] == '\0' && s[0] != '-';
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* All three become words of a command line: only characters that mean nothing. */
static int check(const struct build_opts *o, struct err *e)
{
    if (!is_made_of(o->suite, LOWER ".-", 32))
        return err_set(e, ERR_INVALID,
                       "suite: expected the name of a release, for example bookworm");
    if (o->mirror[0] != '\0' &&
        (!is_made_of(o->mirror, LOWER UPPER "._~:/%+-", 256) ||
         (strncmp(o->mirror, "http://", 7) != 0 && strncmp(o->mirror, "https://", 8) != 0 &&
          strncmp(o->mirror, "file:///", 8) != 0)))
        return err_set(e, ERR_INVALID, "mirror: expected an http, https or file URL");
    if (o->packages[0] != '\0' && !is_made_of(o->packages, LOWER UPPER "+.-,:", 8192))
        return err_set(e, ERR_INVALID, "packages: expected names of packages");
    return 0;
}

static void fail_later(struct loop_later *l)
{
    struct build *b = CONTAINER_OF(l, struct build, later);
    struct err e = b->why;

    end(b, &e);
}

void engine_template_build(struct engine *g, const char *key, const char *name,
                           const struct build_opts *o,
                           void (*progress)(void *arg, const char *text, uint64_t done,
                                            uint64_t total),
                           engine_done_cb *cb, void *arg)
{
    static const struct keeper_asker asker = {.last = on_sandbox, .drop = build_free};
    const char *const words[] = {"/bin/bash", "-c",      make_script, "build",
                                 o->suite,    o->mirror, o->packages};
    struct build *b = mem_zeroed(1, sizeof(*b));
    struct keeper_create ask = {.template = "base"};
    struct quotas more;

    b->g = g;
    b->cb = cb;
    b->progress = progress;
    b->arg = arg;
    buf_init(&b->argv, 32u << 10);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        wire_strv_add(&b->argv, words[i]);
    str_fmt(b->key, sizeof(b->key), "%.*s", (int)ENGINE_KEY_MAX, key);
    if (image_check_name(name, &b->why) < 0 || check(o, &b->why) < 0 ||
        template_may_add(g, b->key, name, &more, &b->why) < 0) {
        loop_defer(g->loop, &b->later, fail_later);
        return;
    }
    str_fmt(b->name, sizeof(b->name), "%s", name);
    keeper_ask(g->keeper, KEEPER_CREATE, &ask, &asker, b);
}
