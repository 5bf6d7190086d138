/* template_system.h - the parts of the default template that package managers need: accounts that
 * agree with the dpkg database, the distribution's package sources, and the settings of apt, pip and npm. */
#ifndef KEEPER_IMAGES_TEMPLATE_SYSTEM_H
#define KEEPER_IMAGES_TEMPLATE_SYSTEM_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SYSTEM_FILE_MAX                                                                            \
    (1u << 20) /* bytes of one file of the host that is read, or of ours that is written */

/* What the operator named; each may be "". Borrowed for the call. */
struct system_settings {
    const char *apt_mirror;   /* URL[,URL of the security suites] */
    const char *pip_index;    /* URL of a simple index */
    const char *npm_registry; /* URL */
    const char *proxy;        /* URL, for all three */
};

/* Adds the lines of the host's `file` (passwd or group) whose account a package made: its id is from 100
 * to 999, its name is in `names`, and neither is in `out` already. Login shells and homes are not taken. */
void system_accounts(const char *file, const char *names, struct buf *out);
/* The text in which names of accounts are looked for: maintainer scripts, sysusers.d, statoverride. */
void system_account_names(struct buf *out);

/* The package sources of the distribution, in deb822 form. `text` is a file of the host: one-line form
 * (`deb ...`) or deb822. An entry is taken if its suites begin with `codename`, if it is signed by the
 * archive's own keyring, and if its URI is http or https without credentials. */
void system_sources(const char *text, const char *id, const char *codename,
                    const struct system_settings *s, struct buf *out);

/* Configuration files: each is "" where nothing is to be said. */
void system_apt_conf(const struct system_settings *s, struct buf *out);
void system_pip_conf(const struct system_settings *s, struct buf *out);
void system_npmrc(const struct system_settings *s, struct buf *out);

/* ERR_INVALID names the setting: it must be an http or https URL without white space or quotes. */
int system_check(const struct system_settings *s, struct err *e);

/* The value of KEY in the host's /etc/os-release, without quotes; "" if there is none. */
void system_release(const char *key, char *out, size_t room);

#endif
