/* birth.h - how the keeper orders a newborn from the nursery (init/boot/nursery.h).
 *
 * One struct birth_order with the files of enum birth_fd over a SOCK_SEQPACKET pair,
 * one struct birth_answer back, with a pidfd when it went well; never two at a time.
 * Both ends are always of one build. */
#ifndef WIRE_BIRTH_H
#define WIRE_BIRTH_H

#include <stdint.h>

#define NURSERY_FD 3 /* the nursery's end */

enum birth_fd {
    BIRTH_BOOT,   /* what becomes BOOT_FD (wire/boot.h) of the newborn */
    BIRTH_CGROUP, /* the v2 group it is born into */
    BIRTH_V1,     /* from here on: `tasks` of the v1 groups that it joins by itself */
    BIRTH_FDS_MAX = BIRTH_V1 + 3
};

struct birth_order {
    uint32_t id;  /* who makes it: the first id of its range, on the host */
    uint32_t nv1; /* files from BIRTH_V1 on; the others repeat BIRTH_CGROUP */
};

struct birth_answer {
    int32_t pid;   /* 0: none */
    int32_t error; /* errno, then */
};

#endif
