/* curl.h - libcurl, loaded when it is first needed.
 *
 * Linked in, it would load thirty more libraries with every `cove exec`, and `cove serve` would need
 * it. */
#ifndef FRONT_ENGINE_ARCHIVES_CURL_H
#define FRONT_ENGINE_ARCHIVES_CURL_H

#include <curl/curl.h>

#include "base/err.h"

#define CURL_CALLS(X)                                                                              \
    X(curl_global_init)                                                                            \
    X(curl_easy_init)                                                                              \
    X(curl_easy_reset)                                                                             \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_perform)                                                                           \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_easy_cleanup)                                                                           \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)

struct curl_calls {
#define X(name) __typeof__(name) *name;
    CURL_CALLS(X)
#undef X
};
/* ERR_UNSUPPORTED: it is not installed. On the loop's thread only; stays valid. */
int curl_load(const struct curl_calls **ret, struct err *e);

#endif
