/* work.h - one call of cove-helper: work on trees, done inside a sandbox in the
 * identity the caller names.
 *
 * What the helper prints to stdout comes as it is; it runs among the tenant's
 * processes, so whoever reads that trusts none of it. Why it failed is the last
 * line of its stderr, "E CODE TEXT" with a code of base/err.h. The helper waits
 * while the caller is paused and ends when the caller goes away, the front's
 * death included: what it was making and is not whole is removed. */
#ifndef FRONT_ENGINE_WORK_H
#define FRONT_ENGINE_WORK_H

#include "front/engine/process.h"

struct work_opts {           /* all borrowed for the call */
    const char *const *argv; /* behind "cove-helper": the kind of work, what it wants; NULL ends */
    const char *user, *cwd;  /* as in struct process_opts */
    bool input;              /* work_feed() follows */
};

/* Every pointer is borrowed for the call; all come from the loop. */
struct work_ops {
    void (*on_data)(void *arg, const char *p, size_t n); /* of stdout; may be NULL */
    void (*on_drain)(void *arg); /* bytes may come: when it runs, and when those given are gone */
    void (*on_done)(void *arg, const struct err *e); /* the last one; the handle is gone */
};

#define WORK_ARGS_MAX 256u /* arguments of one call */

struct work;
struct work *work_start(struct ref ref, const struct work_opts *o, const struct work_ops *ops,
                        void *arg);
/* As process_feed(). */
size_t work_feed(struct work *w, const void *p, size_t n, bool last);
void work_pause(struct work *w, bool paused);
/* No callback follows; the helper is told to end. */
void work_close(struct work *w);

/* For whoever runs a helper in another way: keeps the last of its stderr, in a buf of
 * WORK_WORDS_MAX, and makes of that and of its exit why it failed. */
#define WORK_WORDS_MAX 4096u
void work_words(struct buf *words, const struct process_output *m);
void work_error(const struct process_exit *m, struct buf *words, struct err *e);

#endif
