/* tbf.h - the message that limits what an interface sends: a token bucket (tc-tbf(8)).
 *
 * A sandbox's bandwidth is limited where bytes are sent: by the keeper at the host's end of the
 * veth, by init at eth0. Shaped rather than dropped: a sender slows down instead of losing
 * packets. The tenant has no CAP_NET_ADMIN to change it with. */
#ifndef BASE_TBF_H
#define BASE_TBF_H

#include <stddef.h>
#include <stdint.h>

#define TBF_MESSAGE_MAX 256u

struct nlmsghdr;

/* Makes the rtnetlink message that puts the bucket on an interface, or changes it; bytes per second,
 * not 0. `room` is aligned for a struct nlmsghdr. Type, flags (without NLM_F_ACK) and length are
 * set. */
struct nlmsghdr *tbf_message(void *room, unsigned ifindex, uint64_t rate);
/* Bytes that may be sent at once after a silence, and that may wait. */
uint32_t tbf_burst(uint64_t rate);
uint32_t tbf_queue(uint64_t rate);

#endif
