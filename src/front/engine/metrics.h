/* metrics.h - resource usage of sandboxes over time, and their logs.
 *
 * One point per `metrics-every` for each running sandbox. Both are kept within the configured
 * limits. No caller waits for them to be durable: a kill may lose the last second of a log. */
#ifndef FRONT_ENGINE_METRICS_H
#define FRONT_ENGINE_METRICS_H

#include "front/engine/engine.h"

#define METRIC_POINTS_MAX 10000u /* of one answer */

struct metric {
    uint64_t at_ms;
    uint64_t cpu_milli; /* thousandths of a core, on average since the previous point */
    uint64_t memory, cache, disk, pids;
    uint64_t in_bytes, out_bytes; /* over its network since its boot */
};

/* The newest `limit` points of the period, oldest first. */
int engine_metrics(struct ref ref, uint64_t since_ms, uint64_t until_ms, size_t limit,
                   void (*each)(void *arg, const struct metric *m), void *arg, struct err *e);
#define METRIC_FRESH_MS 1000u
/* Takes a point now, unless the last is newer than METRIC_FRESH_MS or the sandbox does not run.
 * ERR_NOT_FOUND. */
void engine_measure(struct ref ref, engine_sandbox_cb *done, void *arg);
/* Of all running sandboxes, of every key; none if that was done less than METRIC_FRESH_MS ago. */
void engine_measure_all(struct engine *g, engine_done_cb *done, void *arg);
/* The last one, or NULL; points into the engine until the next turn of the loop. */
const struct metric *engine_last_metric(struct ref ref);

/* Of every sandbox of the key that has one. */
void engine_last_metrics(struct engine *g, const char *key,
                         void (*each)(void *arg, const char *id, const struct metric *m),
                         void *arg);

enum log_severity {
    LOG_ENTRY_DEBUG,
    LOG_ENTRY_INFO,
    LOG_ENTRY_WARN,
    LOG_ENTRY_ERROR,
    LOG_ENTRY_COUNT
};
const char *log_severity_name(enum log_severity l); /* "debug", "info", "warn", "error" */

#define LOG_ENTRIES_MAX 1000u /* of one answer */
#define LOG_SCAN_MAX 20000u   /* entries scanned for one answer */
#define LOG_SEARCH_MAX 256u   /* bytes */

struct log_entry {
    uint64_t n, at_ms;
    enum log_severity level;
    const char *message, *fields; /* fields: a JSON object */
};

struct log_opts { /* all borrowed for the call */
    struct ref ref;
    bool backward;           /* newest first */
    uint64_t from;           /* only after entry n, in that direction; 0: from the end */
    uint64_t from_ms;        /* only after that time, in that direction; 0: all */
    enum log_severity level; /* minimum */
    const char *search;      /* in the message, ignoring case; NULL: all */
    size_t limit;
};
/* *ret_next: pass it as `from` to continue; 0: no more entries now. */
int engine_logs(const struct log_opts *o, void (*each)(void *arg, const struct log_entry *l),
                void *arg, uint64_t *ret_next, struct err *e);

#endif
