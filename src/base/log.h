/* log.h - log lines for the operator, on stderr.
 *
 * Each line: time, level, the part of the program, what happened. Bytes that are
 * not printable are shown as \xNN, so a tenant cannot forge a line. Secrets and
 * the contents of commands never go here. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_COUNT
};

/* `part` is borrowed for the life of the program ("front", "keeper"). */
void log_open(const char *part, enum log_level level);
/* -1 if `name` is none of error, warn, info, debug. */
int log_level_from(const char *name);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
