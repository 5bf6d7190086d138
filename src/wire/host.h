/* host.h - the message with which `cove host` starts its init (docs/host-mode.md).
 *
 * Sent once over a SOCK_SEQPACKET pair that init has as fd BOOT_FD, with the fds of enum host_fd;
 * init answers with a struct boot_answer (wire/boot.h). Both ends are of one build. */
#ifndef WIRE_HOST_H
#define WIRE_HOST_H

#include <stdint.h>

#define HOST_ARG "host" /* argv[1] of cove-init */
#define HOST_SESSIONS_MAX 200u

enum host_fd {
    HOST_LISTEN, /* bound socket; init calls listen() on it, so that its peers see init */
    HOST_HELPER, /* cove-helper, to execute */
    HOST_RUN,    /* the cgroup in which init makes one per command; without: repeats HOST_HELPER */
    HOST_FD_COUNT
};

struct host_message {
    uint32_t version;    /* INIT_VERSION */
    uint32_t cgroups;    /* HOST_RUN is one */
    uint32_t identities; /* commands may run as any user */
    char boot_id[40];
    char sessions[HOST_SESSIONS_MAX + 1]; /* directory for the files of sessions */
};

#endif
