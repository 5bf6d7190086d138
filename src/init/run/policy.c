/* policy.c - see policy.h. */
#include "init/run/policy.h"

#include <linux/openat2.h>

/* A sandbox's; host mode replaces it (boot/host.c). */
struct policy init_policy = {.mounts = RESOLVE_NO_XDEV, .identities = true};
