/* file.c - see file.h: where a file is, and looking at it. */
#include "front/engine/file.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/command.h"
#include "front/engine/files/internal.h"
#include "front/engine/process.h"
#include "mem/mem.h"

void file_cancel(struct file_call *c)
{
    if (c != NULL)
        c->cancel(c);
}

void file_pause(struct file_call *c, bool paused)
{
    if (c->pause != NULL)
        c->pause(c, paused);
}

/* ---- where ---- */

static int keep_path(struct file_kept *k, const char *path, const char *cwd, struct err *e)
{
    bool home = path[0] == '~' && (path[1] == '\0' || path[1] == '/');
    bool relative = path[0] != '/' && !home;

    if (path[0] == '\0')
        return err_set(e, ERR_INVALID, "path: must not be empty");
    if (strlen(path) + (relative ? strlen(cwd) + 1 : 0) > FILE_PATH_MAX)
        return err_set(e, ERR_INVALID, "path: longer than %u bytes", FILE_PATH_MAX);
    str_fmt(k->path, sizeof(k->path), "%s%s%s", relative ? cwd : "", relative ? "/" : "", path);
    return 0;
}

struct box *file_keep(const struct file_at *at, struct file_kept *ret, struct err *e)
{
    struct box *b = box_running(at->ref, e);
    const char *user;

    if (b == NULL)
        return NULL;
    user = at->user != NULL ? at->user : command_user(&b->pub);
    if (user[0] == '\0' || strlen(user) > INIT_USER_MAX) {
        err_set(e, ERR_INVALID, "user: expected a name, a uid or uid:gid of at most %u bytes",
                INIT_USER_MAX);
        return NULL;
    }
    str_fmt(ret->key, sizeof(ret->key), "%s", at->ref.key);
    str_fmt(ret->sandbox, sizeof(ret->sandbox), "%s", b->pub.id);
    ret->g = at->ref.engine;
    str_fmt(ret->user, sizeof(ret->user), "%s", user);
    ret->as_root = at->as_root;
    return keep_path(ret, at->path, command_cwd(&b->pub), e) < 0 ? NULL : b;
}

struct file_at file_kept_at(const struct file_kept *k)
{
    return (struct file_at){
        .ref = file_kept_ref(k), .path = k->path, .user = k->user, .as_root = k->as_root};
}

/* ---- looking: by init; where init does not look, by the helper ---- */

static const struct talk_kind kind_look = {INIT_LOOK, {{INIT_FILE, TALK_LAST}}};

struct look {
    struct file_call call; /* first */
    struct engine *g;
    struct talk talk;        /* until init has answered, then... */
    struct file_call *other; /* ...perhaps the helper */
    struct file_kept kept;
    bool follow, told;
    file_entry_cb *cb;
    void *arg;
};

static void look_entry(void *arg, const struct file_info *f)
{
    struct look *l = arg;

    if (!l->told)
        l->cb(l->arg, f, NULL);
    l->told = true;
}

static void look_done(void *arg, const struct file_result *d, const struct err *e)
{
    struct look *l = arg;
    file_entry_cb *cb = l->told ? NULL : l->cb;
    void *to = l->arg;
    struct err none;

    (void)d;
    free(l);
    if (cb == NULL)
        return;
    if (e == NULL)
        err_set(&none, ERR_UNRESPONSIVE, "cove-helper sent no information about the file");
    cb(to, NULL, e != NULL ? e : &none);
}

static const struct file_work_ops look_ops = {.on_entry = look_entry, .on_done = look_done};

static int looked(struct talk *t, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct look *l = CONTAINER_OF(t, struct look, talk);
    const char *const args[] = {l->follow ? "follow" : NULL, NULL};
    struct file_info f = file_info_of(&m->init_file);
    struct file_at at = file_kept_at(&l->kept);
    struct look was = *l;

    (void)type, (void)e;
    if (m->init_file.elsewhere) {
        l->other = file_work(&at, "stat", args, &look_ops, l);
        return 0;
    }
    free(l);
    was.cb(was.arg, &f, NULL);
    return 0;
}

static void look_failed(struct talk *t, const struct err *e)
{
    struct look *l = CONTAINER_OF(t, struct look, talk);
    struct look was = *l;

    free(l);
    was.cb(was.arg, NULL, e);
}

static const struct talk_ops look_talk = {.on_msg = looked, .on_fail = look_failed};

static void look_cancel(struct file_call *c)
{
    struct look *l = CONTAINER_OF(c, struct look, call);

    if (l->other != NULL)
        file_cancel(l->other);
    else
        talk_end(&l->talk);
    free(l);
}

struct file_call *file_stat(const struct file_at *at, bool follow, file_entry_cb *cb, void *arg)
{
    struct look *l = mem_zeroed(1, sizeof(*l));
    struct init_look m;
    struct err e;
    struct box *b;

    *l = (struct look){
        .call.cancel = look_cancel, .g = at->ref.engine, .follow = follow, .cb = cb, .arg = arg};
    b = file_keep(at, &l->kept, &e);
    if (b == NULL) {
        talk_begin_failed(&l->talk, at->ref.engine->hub, &look_talk, &e);
        return &l->call;
    }
    m = (struct init_look){.path = l->kept.path,
                           .user = l->kept.user,
                           .flags = (follow ? INIT_LOOK_FOLLOW : 0u) |
                                    (at->as_root ? INIT_LOOK_ROOT : 0u)};
    talk_begin(&l->talk, &b->peer, &kind_look, &m, PROCESS_DEADLINE_MS, &look_talk);
    return &l->call;
}
