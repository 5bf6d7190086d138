/* internal.h - what the three files of talk.h share: a line is one connection to an
 * init (talk/line.c), what comes over it is heard in talk/hear.c, and a talk has one for
 * itself as long as it lasts (talk.c). */
#ifndef FRONT_ENGINE_TALK_INTERNAL_H
#define FRONT_ENGINE_TALK_INTERNAL_H

#include "base/buf.h"
#include "front/engine/talk/talk.h"

enum line_state {
    LINE_WAITING, /* the listener's queue is full: connect again soon */
    LINE_SILENT,  /* connected; hello has not come */
    LINE_OPEN,    /* hello was right; busy if it has a talk, else idle */
    LINE_DEAD,    /* closed; freed when nobody is inside it any more */
};

struct line {
    struct talk_hub *hub;
    struct talk_peer *peer;
    enum line_state state;
    int fd;
    struct loop_io io;
    struct loop_timer timer; /* retry of connect, or end of idleness */
    struct loop_later again; /* parse what is left after a pause */
    struct list idle;
    struct talk *talk;
    uint32_t seq;
    bool inside; /* being parsed: must not be freed */
    bool fed;    /* more than the request was sent, and may cross the last answer on
                  * its way: whoever spoke next here would hear of it */
    struct buf left, out;
};

struct talk_hub {
    struct loop *loop;
    int run_fd;
    size_t nconns, nidle;
    /* One memory for all reads: what arrived is parsed in place, and only an
     * unfinished frame is copied to its connection. */
    char scratch[TALK_IN_MAX];
};

/* talk/line.c */
struct line *line_get(struct talk_peer *p, struct err *e);
/* The conversation is over in good order: it is kept if there is room. */
void line_release(struct line *c);
/* Freed at once, or by who is inside it. */
void line_close(struct line *c);
void line_free(struct line *c);
/* Its talk, if it has one, fails; else it is closed. */
void line_fail(struct line *c, const struct err *why);
/* Sends what may be sent, and waits for what there is to wait for. */
int line_flush(struct line *c, struct err *e);
void line_wait(struct line *c);
void line_push(struct line *c);
/* The socket takes bytes again. */
void line_drain(struct line *c);

/* talk/hear.c */
void line_on_io(struct loop_io *io, uint32_t events);
void line_again(struct loop_later *l);

/* talk.c */
void talk_fail(struct talk *t, const struct err *why);
void talk_detach(struct talk *t);
void talk_count(struct talk *t, bool starting);
void talk_arm(struct talk *t);
void talk_tell(struct loop_later *l);

#endif
