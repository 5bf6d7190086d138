/* target.h - which port of which sandbox a request is for, if it names one.
 *
 * A host `<port>-<id>.<domain>` names one and always wins: a page that a sandbox
 * serves must not be able to name another one by a header. Else the headers
 * E2b-Sandbox-Id and E2b-Sandbox-Port do, on hosts that no page of a sandbox has:
 * localhost, an address, `sandbox.<domain>`. Which hosts are ours at all: host.h. */
#ifndef FRONT_PROXY_TARGET_H
#define FRONT_PROXY_TARGET_H

#include "front/engine/engine.h"

struct http_req;

#define PROXY_TOKEN_MAX 63

struct proxy_target {
    char id[ENGINE_ID_MAX + 1];
    unsigned port;
    char token[PROXY_TOKEN_MAX + 1]; /* what followed the id; "": nothing */
    bool by_headers;                 /* the host is ours, and so is what a client sends to it */
    size_t prefix;                   /* bytes of the path that named it; 0: the host did */
};

/* 1: it names one; 0: it does not; -1: half of one, and *ret_why says what is wrong. */
int proxy_target_of(struct http_req *r, struct proxy_target *ret, const char **ret_why);

/* The same by a path, `<prefix>/<port>-<id>-<token>[/...]`: false if it names none. */
bool proxy_target_path(const char *prefix, const char *path, struct proxy_target *ret);

/* `<port>-<id>[-<token>].<domain>[:<port>]`; exposed for its test. */
bool proxy_target_host(const char *host, struct proxy_target *ret);

#endif
