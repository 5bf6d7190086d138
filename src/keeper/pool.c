/* pool.c - see pool.h. */
#include "keeper/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/image.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/template.h"

#define POOL_BUILD_AT_ONCE 2 /* inits booting at one time on the pool's account */
#define DYING_PAUSE 256      /* teardowns waiting: the pool is not filled meanwhile */
#define DYING_MAX 1000       /* teardowns waiting: creations are answered 503 */
#define POOL_LATER_MS 10     /* between two, while half of the pool is there */
#define POOL_AGAIN_MS 500    /* after a failure to fill it; doubled up to 32 times that */
#define TEARDOWN_FIRST_MS 2
#define TEARDOWN_LAST_MS 100

static void bury(struct sandbox *sb, bool keep_disk);
static void boot_now(struct sandbox *sb);

static void count_asked(struct sandbox *sb, bool asked)
{
    sb->k->nasked += (size_t)asked - (size_t)sb->asked;
    sb->asked = asked;
}

static struct sandbox *find(struct keeper *k, const char *id)
{
    struct map_node *n = map_get(&k->sandboxes, id);

    return n == NULL ? NULL : CONTAINER_OF(n, struct sandbox, by_id);
}

static struct sandbox *find_given(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = find(k, id);

    if (sb != NULL && (sb->rec.phase == PHASE_GIVEN || sb->rec.phase == PHASE_STOPPED))
        return sb;
    err_set(e, ERR_NOT_FOUND, "no sandbox %s", id);
    return NULL;
}

static void answer_ok(struct sandbox *sb)
{
    struct keeper_ok ok = {0};

    if (sb->ask != 0)
        link_send(sb->k, KEEPER_OK, sb->ask, &ok);
    sb->ask = 0;
}

/* ---- going down ---- */

/* It may have been the last on a version of a template that no name means. */
static void free_gone(struct sandbox *sb)
{
    struct keeper *k = sb->k;
    char version[sizeof(sb->rec.layer)];

    memcpy(version, sb->rec.layer, sizeof(version));
    sandbox_free(sb);
    image_left(k, version);
}

static void gone(struct sandbox *sb)
{
    struct keeper *k = sb->k;

    list_del(&sb->link);
    k->ndying--;
    if (sb->reboot) {
        boot_now(sb);
        return;
    }
    answer_ok(sb);
    if (sb->rec.phase == PHASE_STOPPED)
        sb->keep_disk = true; /* what is there stays until somebody deletes it */
    else
        free_gone(sb);
    pool_refill(k);
}

static void try_down(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);
    uint64_t wait = TEARDOWN_FIRST_MS << (sb->retries < 6 ? sb->retries : 6);

    if (closer_is_closing()) {
        loop_timer_set(sb->k->loop, &sb->timer, TEARDOWN_FIRST_MS, try_down);
        return;
    }
    if (sandbox_down(sb) == 0) {
        gone(sb);
        return;
    }
    if (++sb->retries == 100)
        log_warn("sandbox %s: its %s stage does not go down; still trying", sb->rec.id,
                 stages[sb->rec.stage - 1].name);
    if (wait > TEARDOWN_LAST_MS)
        wait = TEARDOWN_LAST_MS;
    loop_timer_set(sb->k->loop, &sb->timer, wait, try_down);
}

/* Its record must already say what is wanted. */
static void bury(struct sandbox *sb, bool keep_disk)
{
    struct keeper *k = sb->k;

    count_asked(sb, false);
    k->nimports -= sb->import;
    sb->import = false;
    loop_io_stop(k->loop, &sb->pid_io);
    loop_io_stop(k->loop, &sb->boot_io);
    list_del(&sb->link);
    sb->keep_disk = keep_disk;
    sb->retries = 0;
    list_add_tail(&k->dying, &sb->link);
    k->ndying++;
    cgroup_kill(sb);
    /* Not at once: the caller's answer goes first, and the dead are still warm. */
    loop_timer_set(k->loop, &sb->timer, 1, try_down);
}

static void say_why(struct sandbox *sb, char *out, size_t room)
{
    if (cgroup_oom_kills(sb) > 0)
        snprintf(out, room, "its init ended: the sandbox ran out of memory");
    else
        snprintf(out, room, "its init ended");
}

/* Nothing runs in it any more: what it unpacked is final. */
static void import_ended(struct sandbox *sb)
{
    struct keeper_commit m;
    struct err e;

    if (sb->commit == NULL)
        err_set(&e, ERR_GONE, "the sandbox that unpacked the template ended");
    else if (wire_get(keeper_msg(KEEPER_COMMIT), sb->commit, sb->commit_len, &m, &e) == 0 &&
             image_commit(sb->k, sb->rec.id, &m, &e) == 0)
        answer_ok(sb);
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, &e);
    sb->ask = 0;
    sb->rec.phase = PHASE_DYING;
    bury(sb, false);
}

static void init_died(struct loop_io *io, uint32_t events)
{
    struct sandbox *sb = CONTAINER_OF(io, struct sandbox, pid_io);
    struct keeper_died news = {.id = sb->rec.id, .reason = sb->rec.reason};
    struct err e;

    (void)events;
    loop_io_stop(sb->k->loop, &sb->pid_io);
    if (sb->rec.phase == PHASE_DYING) {
        answer_ok(sb);
        bury(sb, false);
        return;
    }
    if (sb->rec.phase == PHASE_IMPORT) {
        import_ended(sb);
        return;
    }
    if (sb->rec.phase == PHASE_POOLED) {
        sb->k->npool--;
        sb->rec.phase = PHASE_DYING;
        bury(sb, false);
        return;
    }
    if (sb->rec.phase == PHASE_GIVEN) {
        sb->k->ngiven--;
        say_why(sb, sb->rec.reason, sizeof(sb->rec.reason));
        log_warn("sandbox %s: %s", sb->rec.id, sb->rec.reason);
        link_send(sb->k, KEEPER_DIED, 0, &news);
    }
    sb->rec.phase = PHASE_STOPPED;
    if (record_save(sb, true, &e) < 0)
        log_error("sandbox %s: %s", sb->rec.id, e.msg);
    bury(sb, true);
}

static int watch_init(struct sandbox *sb, struct err *e)
{
    return loop_io_start(sb->k->loop, &sb->pid_io, sb->pidfd, EPOLLIN, init_died, e);
}

/* ---- coming up ---- */

static void answer_given(struct sandbox *sb)
{
    link_sandbox(sb->k, sb->ask, sb);
    sb->ask = 0;
}

/* The record is durable before anybody hears of it. */
static int give(struct sandbox *sb, struct err *e)
{
    sb->rec.phase = PHASE_GIVEN;
    sb->rec.reason[0] = '\0';
    if (record_save(sb, true, e) < 0)
        return -1;
    sb->k->ngiven++;
    count_asked(sb, false);
    return 0;
}

void pool_booted(struct sandbox *sb)
{
    struct keeper *k = sb->k;
    struct err e;

    if (watch_init(sb, &e) < 0) {
        pool_failed(sb, &e);
        return;
    }
    if (sb->ask == ASK_FORGOTTEN) {
        /* The next front has its list already, and this one was not in it. */
        err_set(&e, ERR_GONE, "sandbox %s: the front that asked for it is gone", sb->rec.id);
        pool_failed(sb, &e);
        return;
    }
    if (sb->import) {
        sb->rec.phase = PHASE_IMPORT;
        count_asked(sb, false);
        answer_given(sb);
        return;
    }
    if (sb->ask != 0) {
        if (give(sb, &e) < 0)
            pool_failed(sb, &e);
        else
            answer_given(sb);
        return;
    }
    k->nbuilding--;
    k->refill_fails = 0;
    k->npool++;
    sb->rec.phase = PHASE_POOLED;
    if (record_save(sb, false, &e) < 0)
        log_warn("%s", e.msg);
    list_add_tail(&k->pool, &sb->link);
    pool_refill(k);
}

static void refill_again(struct loop_timer *t)
{
    pool_refill(CONTAINER_OF(t, struct keeper, refill_wait));
}

/* Whatever is wrong, trying again at once would only burn the machine. */
static void refill_failed(struct keeper *k)
{
    k->nbuilding--;
    loop_timer_set(k->loop, &k->refill_wait,
                   POOL_AGAIN_MS << (k->refill_fails < 5 ? k->refill_fails : 5), refill_again);
    k->refill_fails++;
}

void pool_failed(struct sandbox *sb, const struct err *e)
{
    bool stays = sb->keep_disk; /* it was a stopped one that should boot */

    log_error("%s", e->msg);
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, e);
    else if (sb->rec.phase == PHASE_BUILDING)
        refill_failed(sb->k);
    sb->ask = 0;
    sb->rec.phase = stays ? PHASE_STOPPED : PHASE_DYING;
    bury(sb, stays);
}

/* What is asked for. The pool asks for the defaults. */
struct order {
    const char *template; /* NULL: an import, which stands on nothing */
    struct limits limits;
    uint32_t network; /* enum network_bits */
    struct wire_bytes rules;
};

static struct sandbox *build(struct keeper *k, const struct order *o, uint32_t ask, struct err *e)
{
    const char *layer = o->template == NULL ? "" : template_current(k, o->template, e);
    char id[ID_LEN + 1];
    struct sandbox *sb;

    if (layer == NULL)
        return NULL;
    id_random(id, ID_LEN);
    sb = sandbox_new(k, id, e);
    if (sb == NULL)
        return NULL;
    sb->import = o->template == NULL;
    k->nimports += sb->import;
    sb->rec.phase = PHASE_BUILDING;
    sb->rec.limits = o->limits;
    sb->rec.network = o->network;
    sb->rec.created_ms = clock_real_ms();
    sb->ask = ask;
    count_asked(sb, ask != 0);
    str_fmt(sb->rec.template, sizeof(sb->rec.template), "%s",
            o->template == NULL ? "" : o->template);
    str_fmt(sb->rec.layer, sizeof(sb->rec.layer), "%s", layer);
    if (network_keep_rules(sb, &o->rules, e) == 0 && sandbox_up(sb, e) == 0)
        return sb;
    sb->ask = 0;
    sb->rec.phase = PHASE_DYING;
    bury(sb, false);
    return NULL;
}

static struct limits defaults(const struct keeper *k)
{
    const struct config *c = &k->config;

    return (struct limits){c->cpu_milli, c->memory, c->pids, c->disk, c->nofile};
}

static uint64_t alive(const struct keeper *k)
{
    return k->ngiven + k->nasked + k->npool + k->nbuilding;
}

static void refill_later(struct loop_timer *t);

static void refill(struct loop_later *d)
{
    struct keeper *k = CONTAINER_OF(d, struct keeper, refill);
    struct order o = {.template = "base", .limits = defaults(k)};
    struct err e;

    if (k->npool + k->nbuilding >= k->config.pool || k->nbuilding >= POOL_BUILD_AT_ONCE ||
        k->ndying > DYING_PAUSE || alive(k) >= k->nsandboxes_max || k->refill_wait.slot != 0)
        return;
    if (closer_is_closing()) {
        loop_timer_set(k->loop, &k->refill_soon, 1, refill_later);
        return;
    }
    k->nbuilding++;
    if (network_choose(k, "", &o.network, &e) < 0 || build(k, &o, 0, &e) == NULL) {
        refill_failed(k);
        log_error("filling the pool: %s", e.msg);
        return;
    }
    pool_refill(k);
}

static void refill_later(struct loop_timer *t)
{
    struct keeper *k = CONTAINER_OF(t, struct keeper, refill_soon);

    loop_defer(k->loop, &k->refill, refill);
}

/* Who was just given a sandbox is about to use it, and making its successor takes
 * a core for some milliseconds: as long as enough are left, that waits for a quiet
 * moment. */
void pool_refill(struct keeper *k)
{
    if (k->npool < (k->config.pool + 1) / 2)
        loop_defer(k->loop, &k->refill, refill);
    else
        loop_timer_set(k->loop, &k->refill_soon, POOL_LATER_MS, refill_later);
}

void pool_open(struct keeper *k)
{
    list_init(&k->pool);
    list_init(&k->dying);
    map_init(&k->sandboxes);
}

/* ---- requests ---- */

static uint64_t or_default(uint64_t asked, uint64_t def)
{
    return asked != 0 ? asked : def;
}

static struct limits wanted(const struct keeper *k, const struct keeper_create *m)
{
    struct limits d = defaults(k);

    return (struct limits){or_default(m->cpu_milli, d.cpu_milli), or_default(m->memory, d.memory),
                           or_default(m->pids, d.pids), or_default(m->disk, d.disk),
                           or_default(m->nofile, d.nofile)};
}

/* The front has checked these for its clients; this is for a front that has
 * been taken over. The bounds are those of the configuration's own table. */
static int check_limits(const struct limits *l, struct err *e)
{
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"cpu", l->cpu_milli},
               {"memory", l->memory},
               {"pids", l->pids},
               {"disk", l->disk},
               {"nofile", l->nofile}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t j = 0; j < config_nkeys; j++)
            if (strcmp(config_keys[j].name, all[i].name) == 0 &&
                (all[i].value < config_keys[j].min || all[i].value > config_keys[j].max))
                return err_set(e, ERR_INVALID, "%s limit %llu is not between %llu and %llu",
                               all[i].name, (unsigned long long)all[i].value,
                               (unsigned long long)config_keys[j].min,
                               (unsigned long long)config_keys[j].max);
    return 0;
}

static int relimit(struct sandbox *sb, const struct limits *l, struct err *e)
{
    struct limits old = sb->rec.limits;

    if (memcmp(&old, l, sizeof(old)) == 0)
        return 0;
    sb->rec.limits = *l;
    if (cgroup_limit(sb, e) < 0)
        return -1;
    return old.disk == l->disk ? 0 : disk_limit(sb, e);
}

/* A pooled one serves whatever its limits, but for those init has already made
 * its own: the open files and, through the memory, the size of /dev/shm. */
static struct sandbox *from_pool(struct keeper *k, const struct order *o)
{
    const struct limits *l = &o->limits;
    struct sandbox *sb = LIST_FIRST(&k->pool, struct sandbox, link);
    struct limits d = defaults(k);
    struct err e;

    if (sb == NULL || strcmp(o->template, sb->rec.template) != 0 || l->nofile != d.nofile ||
        l->memory != d.memory || o->network != sb->rec.network)
        return NULL;
    list_del(&sb->link);
    k->npool--;
    pool_refill(k);
    if (strcmp(sb->rec.layer, template_current(k, o->template, &e)) == 0 &&
        relimit(sb, l, &e) == 0 && network_rule(sb, &o->rules, &e) == 0)
        return sb;
    sb->rec.phase = PHASE_DYING;
    bury(sb, false);
    return NULL;
}

static int check_room(const struct keeper *k, struct err *e)
{
    if (k->ndying > DYING_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu sandboxes are still being taken down", k->ndying);
    if (k->ngiven + k->nasked >= k->nsandboxes_max)
        return err_set(e, ERR_UNAVAILABLE, "this host holds %llu sandboxes and no more",
                       (unsigned long long)k->nsandboxes_max);
    return 0;
}

int pool_create(struct keeper *k, uint32_t seq, const struct keeper_create *m, struct err *e)
{
    struct order o = {.template = m->template, .limits = wanted(k, m), .rules = m->rules};
    struct sandbox *sb;

    if (check_limits(&o.limits, e) < 0 || rules_check(&o.rules, e) < 0 ||
        network_choose(k, m->network, &o.network, e) < 0)
        return -1;
    if (o.rules.len > 0 && o.network == 0)
        return err_set(e, ERR_INVALID, "network: rules are for `egress`; this sandbox gets `none`");
    if (check_room(k, e) < 0)
        return -1;
    sb = from_pool(k, &o);
    if (sb != NULL) {
        sb->ask = seq;
        sb->rec.created_ms = clock_real_ms();
        if (give(sb, e) < 0) {
            pool_failed(sb, e);
            return 0;
        }
        answer_given(sb);
        return 0;
    }
    return build(k, &o, seq, e) == NULL ? -1 : 0;
}

int pool_import(struct keeper *k, uint32_t seq, struct err *e)
{
    struct order o = {.limits = defaults(k)}; /* no template, no network */

    if (k->nimports >= IMAGE_IMPORTS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu templates are being added already; try again",
                       k->nimports);
    if (check_room(k, e) < 0)
        return -1;
    return build(k, &o, seq, e) == NULL ? -1 : 0;
}

/* The message is kept as a frame: it must outlive the front's buffer, and wire.h
 * knows how to put one together and take it apart. */
static int keep_commit(struct sandbox *sb, const struct keeper_commit *m, struct err *e)
{
    autobuf struct buf b = BUF_INIT(WIRE_FRAME_MAX);

    if (wire_put(&b, keeper_msg(KEEPER_COMMIT), 1, m, e) < 0)
        return -1;
    sb->commit_len = b.len - WIRE_HEAD;
    sb->commit = malloc(sb->commit_len);
    if (sb->commit == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    memcpy(sb->commit, buf_data(&b) + WIRE_HEAD, sb->commit_len);
    return 0;
}

int pool_commit(struct keeper *k, uint32_t seq, const struct keeper_commit *m, struct err *e)
{
    struct sandbox *sb = find(k, m->id);

    if (sb == NULL || sb->rec.phase != PHASE_IMPORT || sb->commit != NULL)
        return err_set(e, ERR_NOT_FOUND, "no import %s", m->id);
    if (keep_commit(sb, m, e) < 0)
        return -1;
    sb->ask = seq;
    cgroup_kill(sb);
    return 0;
}

/* One that is being committed ends by itself; nobody hears of it but the next list. */
void pool_end_imports(struct keeper *k)
{
    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.phase != PHASE_IMPORT || sb->commit != NULL)
                continue;
            sb->rec.phase = PHASE_DYING;
            bury(sb, false);
        }
}

static void boot_now(struct sandbox *sb)
{
    struct err e;

    sb->reboot = false;
    sb->keep_disk = true;
    if (sb->ask == ASK_FORGOTTEN) {
        sb->ask = 0;
        return;
    }
    if (check_room(sb->k, &e) == 0) {
        count_asked(sb, true);
        if (sandbox_up(sb, &e) == 0)
            return;
        bury(sb, true);
    }
    link_fail(sb->k, sb->ask, &e);
    sb->ask = 0;
}

/* One that is still on its way down, as after the death of its init, boots when it
 * is there; one that a front before this one booted is taken over. */
int pool_boot(struct keeper *k, uint32_t seq, const struct keeper_boot *m, struct err *e)
{
    const char *id = m->id;
    struct sandbox *sb = find_given(k, id, e);

    if (sb == NULL || rules_check(&m->rules, e) < 0)
        return -1;
    if (sb->rec.phase != PHASE_STOPPED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is running", id);
    if (sb->ask != 0 && sb->ask != ASK_FORGOTTEN)
        return err_set(e, ERR_UNAVAILABLE, "sandbox %s is still stopping or booting", id);
    if (network_keep_rules(sb, &m->rules, e) < 0)
        return -1;
    sb->ask = seq;
    if (!list_empty(&sb->link))
        sb->reboot = true;
    else if (sb->rec.stage == 0)
        boot_now(sb);
    return 0;
}

/* One that is stopped gets them with its next boot. */
int pool_rules(struct keeper *k, uint32_t seq, const struct keeper_rules *m, struct err *e)
{
    struct sandbox *sb = find_given(k, m->id, e);
    struct keeper_ok ok = {0};

    if (sb == NULL || rules_check(&m->rules, e) < 0)
        return -1;
    if (sb->rec.phase == PHASE_GIVEN && network_rule(sb, &m->rules, e) < 0)
        return -1;
    link_send(k, KEEPER_OK, seq, &ok);
    return 0;
}

/* The answer comes when init, and with it everything in its pid namespace, is
 * dead (init_died), and the record already says that nobody wants it back. */
int pool_destroy(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    struct sandbox *sb = find(k, id);
    bool import = sb != NULL && sb->rec.phase == PHASE_IMPORT, running;

    if (!import)
        sb = find_given(k, id, e);
    if (sb == NULL)
        return -1;
    running = import || sb->rec.phase == PHASE_GIVEN;
    sb->rec.phase = PHASE_DYING;
    if (record_save(sb, true, e) < 0)
        return -1;
    if (sb->ask != 0)
        link_fail(k, sb->ask, &(struct err){.kind = ERR_GONE, .msg = "it was deleted"});
    sb->ask = seq;
    sb->reboot = false;
    if (running) {
        k->ngiven -= !import;
        cgroup_kill(sb);
        return 0;
    }
    answer_ok(sb);
    if (!list_empty(&sb->link))
        sb->keep_disk = false; /* on its way down already */
    else
        bury(sb, false);
    return 0;
}

int pool_halt(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    struct sandbox *sb = find_given(k, id, e);

    if (sb == NULL)
        return -1;
    if (sb->rec.phase == PHASE_STOPPED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is stopped already", id);
    k->ngiven--;
    sb->rec.phase = PHASE_STOPPED;
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "it was stopped");
    if (record_save(sb, true, e) < 0)
        return -1;
    sb->ask = seq;
    bury(sb, true);
    return 0;
}

/* ---- after a restart ---- */

static int adopt_running(struct sandbox *sb, struct err *e)
{
    sb->pid = cgroup_init_pid(sb);
    if (sb->pid == 0)
        return err_set(e, ERR_GONE, "its init ended while no daemon was there");
    sb->pidfd = (int)syscall(SYS_pidfd_open, sb->pid, 0);
    /* The pid could have been used again in between: still the one in the group? */
    if (sb->pidfd < 0 || cgroup_init_pid(sb) != sb->pid)
        return err_set(e, ERR_GONE, "its init ended while no daemon was there");
    if (watch_init(sb, e) < 0)
        return -1;
    ids_keep(sb);
    sb->k->ngiven++;
    return 0;
}

static void adopt(struct sandbox *sb)
{
    struct keeper *k = sb->k;
    bool rebooted = strcmp(sb->rec.host_boot, k->host_boot) != 0;
    struct err e;

    if (sb->rec.phase == PHASE_GIVEN && !rebooted && adopt_running(sb, &e) == 0)
        return;
    if (sb->rec.phase == PHASE_GIVEN) {
        sb->rec.phase = PHASE_STOPPED;
        str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s",
                rebooted ? "the host was restarted" : e.msg);
        log_warn("sandbox %s is stopped: %s", sb->rec.id, sb->rec.reason);
    } else if (sb->rec.phase != PHASE_STOPPED) {
        sb->rec.phase = PHASE_DYING;
    }
    if (rebooted) /* the range is a lease of the last boot; others may have it now */
        sb->rec.range = RANGE_NONE;
    if (record_save(sb, true, &e) < 0)
        log_warn("%s", e.msg);
    if (sb->rec.phase == PHASE_DYING || sb->rec.stage > 0)
        bury(sb, sb->rec.phase == PHASE_STOPPED);
    else
        sb->keep_disk = true;
}

static int each_name(int dfd, int (*fn)(struct keeper *k, const char *name, struct err *e),
                     struct keeper *k, struct err *e)
{
    int copy = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = copy < 0 ? NULL : fdopendir(copy);

    if (d == NULL)
        return err_sys(e, "read a directory of ours");
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.')
            r = fn(k, de->d_name, e);
    closedir(d);
    return r;
}

/* Something of that name may exist, and nothing tells what: it goes, all of it. Its
 * range is not known either and will be given back at once; nothing uses it any
 * more, since bury() begins by killing. */
static int doom(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = sandbox_new(k, id, e);

    if (sb == NULL)
        return -1;
    sb->rec.phase = PHASE_DYING;
    sb->rec.stage = stage_count;
    bury(sb, false);
    return 0;
}

static int adopt_record(struct keeper *k, const char *name, struct err *e)
{
    struct sandbox *sb;
    struct record rec;
    struct err why;

    if (!id_is_valid(name, sizeof(rec.id) - 1)) {
        log_warn("%s in records is not one of ours: removed", name);
        unlinkat(k->records_fd, name, 0);
        return 0;
    }
    if (record_load(k, name, &rec, &why) < 0) {
        log_error("%s: that sandbox is destroyed", why.msg);
        return doom(k, name, e);
    }
    sb = sandbox_new(k, name, e);
    if (sb == NULL)
        return -1;
    sb->rec = rec;
    adopt(sb);
    return 0;
}

static int adopt_group(struct keeper *k, const char *name, struct err *e)
{
    struct stat st;

    if (find(k, name) != NULL || !id_is_valid(name, sizeof(((struct record *)0)->id) - 1) ||
        fstatat(k->cgroups.v2_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    log_error("sandbox %s has no record: it is destroyed", name);
    return doom(k, name, e);
}

static int adopt_socket(struct keeper *k, const char *name, struct err *e)
{
    (void)e;
    if (find(k, name) == NULL && unlinkat(k->run_fd, name, 0) < 0)
        log_warn("remove socket %s: %s", name, strerror(errno));
    return 0;
}

int pool_adopt(struct keeper *k, struct err *e)
{
    if (each_name(k->records_fd, adopt_record, k, e) < 0 ||
        each_name(k->cgroups.v2_fd, adopt_group, k, e) < 0)
        return -1;
    return each_name(k->run_fd, adopt_socket, k, e);
}

void pool_drain(struct keeper *k)
{
    struct sandbox *sb;

    k->config.pool = 0;
    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            sb = CONTAINER_OF(n, struct sandbox, by_id);
            if (sb->rec.phase != PHASE_POOLED && sb->rec.phase != PHASE_BUILDING &&
                sb->rec.phase != PHASE_IMPORT)
                continue;
            sb->rec.phase = PHASE_DYING;
            bury(sb, false);
        }
    k->npool = k->nbuilding = 0;
}

void pool_end_all(struct keeper *k)
{
    struct err e;

    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.phase != PHASE_GIVEN)
                continue; /* stopped, or on its way down since pool_adopt() */
            k->ngiven--;
            sb->rec.phase = PHASE_STOPPED;
            str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "cove stop --all");
            if (record_save(sb, true, &e) < 0)
                log_warn("%s", e.msg);
            bury(sb, true);
        }
}
