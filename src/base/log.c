/* log.c - see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX 1024

static struct {
    const char *part;
    enum log_level level;
} state = {"cove", LOG_LEVEL_INFO};

static const char *const names[LOG_LEVEL_COUNT] = {"error", "warn", "info", "debug"};

void log_open(const char *part, enum log_level level)
{
    state.part = part;
    state.level = level;
}

int log_level_from(const char *name)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static size_t escape(char *to, size_t room, const char *from)
{
    size_t n = 0;

    for (; *from != '\0' && n + 5 < room; from++) {
        unsigned char c = (unsigned char)*from;

        if (c >= 0x20 && c != 0x7f)
            to[n++] = (char)c;
        else
            n += (size_t)snprintf(to + n, room - n, "\\x%02x", c);
    }
    return n;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char text[LOG_LINE_MAX], line[LOG_LINE_MAX + 128];
    struct timespec ts;
    struct tm tm;
    size_t n;
    va_list ap;

    if (level > state.level)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ %s %s: ", ts.tv_nsec / 1000000,
                          names[level], state.part);
    n += escape(line + n, sizeof(line) - n - 1, text);
    line[n++] = '\n';
    /* One write, so that lines of front and keeper never interleave. */
    if (write(STDERR_FILENO, line, n) < 0)
        return;
}
