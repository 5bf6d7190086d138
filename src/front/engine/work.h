/* work.h - one call of cove-helper: work on trees inside a sandbox, as the given user.
 *
 * The helper's stdout is passed on unchanged. It runs among the tenant's processes, so its output
 * is not trusted. The last line of its stderr says why it failed: "E CODE TEXT" with a code of
 * base/err.h. The helper waits while the caller is paused and ends when the caller disconnects or
 * the front dies; it then removes incomplete results. */
#ifndef FRONT_ENGINE_WORK_H
#define FRONT_ENGINE_WORK_H

#include "front/engine/process.h"

struct work_opts { /* all borrowed for the call */
    const char *const
        *argv;              /* after "cove-helper": the kind of work and its arguments; NULL ends */
    const char *user, *cwd; /* as in struct process_opts */
    bool input;             /* work_feed() follows */
};

/* Every pointer is borrowed for the call; all come from the loop. */
struct work_ops {
    void (*on_data)(void *arg, const char *p, size_t n); /* of stdout; may be NULL */
    void (*on_drain)(
        void *arg); /* more bytes may be fed: when it runs, and when the queue was sent */
    void (*on_done)(void *arg, const struct err *e); /* the last callback; the handle is freed */
};

#define WORK_ARGS_MAX 256u /* arguments of one call */

struct work;
struct work *work_start(struct ref ref, const struct work_opts *o, const struct work_ops *ops,
                        void *arg);
/* As process_feed(). */
size_t work_feed(struct work *w, const void *p, size_t n, bool last);
void work_pause(struct work *w, bool paused);
/* No callback follows; the helper is ended. */
void work_close(struct work *w);

/* For callers that run a helper in another way: keeps the end of its stderr, in a buf of
 * WORK_WORDS_MAX, and makes an error from that and its exit. */
#define WORK_WORDS_MAX 4096u
void work_words(struct buf *words, const struct process_output *m);
void work_error(const struct process_exit *m, struct buf *words, struct err *e);

#endif
