/* life.h - what happens to a sandbox when, and the counts that follow from it.
 *
 * A sandbox changes its state in sandbox_enter() and nowhere else; what an event means in a
 * state is a cell of the table in life/states.c. The pool holds running sandboxes of the
 * default template: giving one to a client is a write to its record and its limits. Teardown
 * is a queue in the background: what cannot go down yet (a cgroup that still has processes) is
 * tried again. */
#ifndef KEEPER_LIFE_H
#define KEEPER_LIFE_H

#include "keeper/host.h"

enum event {
    /* requests of the front: seq and message are in the news, the answer comes when it is known */
    EV_BOOT,
    EV_STOP,
    EV_DELETE,
    EV_PAUSE,
    EV_RESUME,
    EV_SNAPSHOT,
    EV_COMMIT,
    EV_RECOVER,
    /* decisions of the keeper */
    EV_GIVE,     /* a client gets it from the pool */
    EV_DROP,     /* it is not needed: goes, if no client has it */
    EV_STOP_ALL, /* `cove stop --all` */
    /* observations */
    EV_BOOTED,       /* its init has answered: all stages are up */
    EV_FAILED,       /* a stage could not go up; news.why */
    EV_FREEZE_CHECK, /* time to see whether a pause is complete */
    EV_INIT_DIED,
    EV_DOWN, /* all stages are down */
    EV_FRONT_GONE,
    EV_COUNT
};

struct news {
    uint32_t seq;          /* of a request */
    const void *msg;       /* of a request: the struct of wire/keeper.h */
    const struct err *why; /* of EV_FAILED */
};

/* 0, or -1 when a request is refused. */
int sandbox_event(struct sandbox *sb, enum event ev, const struct news *n, struct err *e);
/* The same for an observation, which nothing refuses. */
void sandbox_tell(struct sandbox *sb, enum event ev);
/* EV_FAILED, logged. */
void sandbox_failed(struct sandbox *sb, const struct err *why);

struct sandbox *sandbox_find(struct keeper *k, const char *id);
/* One that a client has, or NULL and ERR_NOT_FOUND or ERR_CONFLICT. */
struct sandbox *sandbox_find_given(struct keeper *k, const char *id, struct err *e);
/* A request about it is not answered yet, and the front that made it is there. */
bool sandbox_is_busy(const struct sandbox *sb);
/* Answers the request in sb->ask, if there is one. */
void sandbox_answer_ok(struct sandbox *sb);
void sandbox_answer_fail(struct sandbox *sb, const struct err *e);

/* Requests that make a sandbox. */
int sandbox_create(struct keeper *k, uint32_t seq, const struct keeper_create *m, struct err *e);
int sandbox_import(struct keeper *k, uint32_t seq, const struct keeper_import *m, struct err *e);
/* Rules of one that is stopped come with its next boot. */
int sandbox_rules(struct keeper *k, uint32_t seq, const struct keeper_rules *m, struct err *e);
/* Replaces the limits of one that runs or is stopped. */
int sandbox_relimit(struct keeper *k, uint32_t seq, const struct keeper_relimit *m, struct err *e);
/* Fails while no sandbox can be made. */
int sandbox_check_room(struct keeper *k, struct err *e);
/* What the host has too little of for another sandbox: "deletes" (finished ones), "sandboxes", "memory",
 * "disk"; "" if nothing, and then `e` is not set. */
const char *sandbox_lacks(struct keeper *k, struct err *e);
int sandbox_check_limits(const struct limits *l, struct err *e);

/* Sandboxes that use a version of a template; without `all`, not those that are being deleted. */
unsigned sandbox_users(struct keeper *k, const char *version, bool all);

void pool_open(struct keeper *k);
void pool_refill(struct keeper *k);
/* True: the request is answered with link_stats() when it is known whether sandboxes can be made; else that
 * is known already. */
bool proof_wait(struct keeper *k, uint32_t seq);
/* The front that asked is gone. */
void proof_forget(struct keeper *k);
/* The default template has a new version: deletes pooled sandboxes of the old one. */
void pool_drop_stale(struct keeper *k);
/* At the end of the daemon: deletes every sandbox that no client has. */
void pool_drain(struct keeper *k);

/* At start: reads the records and decides the state of each sandbox of an earlier keeper. */
int sandbox_adopt_all(struct keeper *k, struct err *e);
/* The disk `name` is removed: if it was a sandbox's, its teardown goes on now. */
void sandbox_disk_removed(struct keeper *k, const char *name);

#endif
