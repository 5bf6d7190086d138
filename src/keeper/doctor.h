/* doctor.h - what this host can and cannot give. */
#ifndef KEEPER_DOCTOR_H
#define KEEPER_DOCTOR_H

#include "keeper/host.h"

/* For `serve`: ERR_UNSUPPORTED names the first wall that is missing and was not
 * accepted. */
int doctor_check(struct keeper *k, struct err *e);
/* How many sandboxes the host's limits allow (or the configuration, if less). */
uint64_t doctor_capacity(struct keeper *k);

#endif
