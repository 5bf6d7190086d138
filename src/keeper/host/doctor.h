/* doctor.h - checks what this host offers. */
#ifndef KEEPER_HOST_DOCTOR_H
#define KEEPER_HOST_DOCTOR_H

#include "keeper/host.h"

/* For `serve`: ERR_UNSUPPORTED names the first wall that is missing and was not accepted. */
int doctor_check(struct keeper *k, struct err *e);
/* The number of sandboxes that the host's limits allow, or the setting if that is lower. */
uint64_t doctor_capacity(struct keeper *k);

#endif
