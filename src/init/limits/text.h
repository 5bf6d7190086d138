/* text.h - the sandbox's limits in the form of files of /proc. */
#ifndef INIT_LIMITS_TEXT_H
#define INIT_LIMITS_TEXT_H

#include "base/buf.h"
#include "init/limits/values.h"

#define LIMITS_TEXT_MAX (2u << 20) /* of one file: /proc/cpuinfo has some 2 KiB per processor */

void limits_meminfo(const struct limits_memory *m, struct buf *out);
/* `booted_s` is the Unix time of the boot. */
void limits_stat(const struct limits_cpu *c, uint64_t booted_s, struct buf *out);
void limits_loadavg(const struct limits_cpu *c, uint64_t last_pid, struct buf *out);
void limits_uptime(const struct limits_cpu *c, struct buf *out);
/* A list of processors as in /sys/devices/system/cpu. */
void limits_online(unsigned cpus, struct buf *out);
/* The first `cpus` paragraphs of a text like /proc/cpuinfo: the bytes of `text` to use, all of it
 * if there are fewer. *seen counts over several pieces of the text. */
size_t limits_paragraphs(const char *text, size_t len, unsigned cpus, unsigned *seen, char *last);

#endif
