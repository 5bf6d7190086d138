/* beside.h - egress beside other firewalls of the host.
 *
 * A packet is forwarded if every table accepts it: ours, and those of others. Docker sets the policy
 * of iptables' FORWARD to drop and leaves others a chain, DOCKER-USER: two rules in it accept the
 * interfaces of our sandboxes, after the operator's own rules there. Our table filters them as
 * before. Where there is no such chain nothing is changed; the rule that is in the way is named. */
#ifndef KEEPER_BESIDE_H
#define KEEPER_BESIDE_H

#include "keeper/host.h"

#define BESIDE_TEXT_MAX 240

enum beside { BESIDE_FREE, BESIDE_PERHAPS, BESIDE_BLOCKED };

/* What stands between sandboxes of the daemon `tag` ("": of any) and their network, and what to do;
 * *text is "" if nothing does. */
enum beside beside_look(const char *tag, char text[BESIDE_TEXT_MAX]);

/* Adds our rules and names what is in the way (k->network.beside); then again whenever the firewall
 * of the host changes. */
void beside_start(struct keeper *k);
/* Something changed in one of these chains. */
bool beside_is_chain(const char *chain);
void beside_changed(struct keeper *k);
void beside_stop(struct keeper *k);
/* Removes our rules, also those of a daemon that was killed. */
void beside_give_back(const struct keeper *k);

#endif
