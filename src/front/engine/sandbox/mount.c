/* mount.c - mounts directories of the operator in a sandbox. The keeper mounts them; mounts end with
 * the next boot and are not stored. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/internal.h"

static void on_mounted(void *arg, const void *msg, const struct err *e)
{
    (void)msg;
    waiter_answer(arg, "", e);
}

static const struct keeper_asker mounter = {.last = on_mounted, .drop = free};

static bool is_running(struct ref ref, const char *path, struct waiter *w)
{
    struct err e;

    if (strlen(path) > KEEPER_PATH_MAX)
        err_set(&e, ERR_INVALID, "path: more than %u bytes", KEEPER_PATH_MAX);
    else if (box_running(ref, &e) != NULL)
        return w != NULL;
    waiter_answer(w, "", &e);
    return false;
}

void engine_mount(struct ref ref, const struct mount_opts *o, engine_done_cb *cb, void *arg)
{
    struct keeper_mount ask = {
        .id = ref.id, .name = o->name, .path = o->path, .read_only = o->read_only};
    struct waiter *w = waiter_new(ref.engine, cb, NULL, arg);

    if (strlen(o->name) > KEEPER_NAME_MAX)
        waiter_fail(w, ERR_UNSUPPORTED,
                    "nothing named '%.64s' can be mounted; the operator lists the names in the "
                    "setting `mounts`",
                    o->name);
    else if (is_running(ref, o->path, w))
        keeper_ask(ref.engine->keeper, KEEPER_MOUNT, &ask, &mounter, w);
}

void engine_unmount(struct ref ref, const char *path, engine_done_cb *cb, void *arg)
{
    struct keeper_unmount ask = {.id = ref.id, .path = path};
    struct waiter *w = waiter_new(ref.engine, cb, NULL, arg);

    if (is_running(ref, path, w))
        keeper_ask(ref.engine->keeper, KEEPER_UNMOUNT, &ask, &mounter, w);
}
