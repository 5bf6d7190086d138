/* keeper.h - concurrent requests to the keeper, each answered once.
 *
 * A request cannot be cancelled: when its deadline passes the asker is told (`late`), but the answer
 * may still come and must be handled. If the keeper closes the connection or sends an invalid
 * message, the link is lost and the front exits; the next front joins with what exists. */
#ifndef FRONT_ENGINE_TALK_KEEPER_H
#define FRONT_ENGINE_TALK_KEEPER_H

#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"

struct keeper_link;
struct keeper_died;

struct keeper_link_opts {
    struct loop *loop;
    int fd; /* borrowed */
    void (*on_died)(void *arg, const struct keeper_died *m);
    /* Called once, from the loop; after it the link only waits to be freed. */
    void (*on_lost)(void *arg, const struct err *why);
    void *arg;
};

struct keeper_asker {                                              /* any but `last` may be NULL */
    void (*each)(void *arg, const void *msg);                      /* an answer before the last */
    void (*last)(void *arg, const void *msg, const struct err *e); /* msg is NULL if e is not */
    void (*late)(void *arg, const struct err *e);
    void (*drop)(void *arg); /* the link is freed first: no answer comes; free `arg` */
};

int keeper_link_new(const struct keeper_link_opts *o, struct keeper_link **ret, struct err *e);
/* No callback follows, whatever is still under way. */
void keeper_link_free(struct keeper_link *k);

/* `type` is one of the requests of wire/keeper.h, `msg` its struct (borrowed for
 * the call), `asker` must be static. Callbacks come from the loop. */
void keeper_ask(struct keeper_link *k, uint16_t type, const void *msg,
                const struct keeper_asker *asker, void *arg);
/* For requests without an answer. */
void keeper_tell(struct keeper_link *k, uint16_t type, const void *msg);

#endif
