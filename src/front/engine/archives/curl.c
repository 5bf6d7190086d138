/* curl.c - see curl.h. */
#include "front/engine/archives/curl.h"

#include <dlfcn.h>
#include <stdbool.h>

#define LIBRARY "libcurl.so.4"

int curl_load(const struct curl_calls **ret, struct err *e)
{
    static struct curl_calls calls;
    static bool loaded;
    void *library;

    *ret = &calls;
    if (loaded)
        return 0;
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "this needs " LIBRARY ", which is not there (%.200s); on Debian: apt-get "
                       "install libcurl4",
                       dlerror());
#define X(name)                                                                                    \
    calls.name = (__typeof__(name) *)dlsym(library, #name);                                        \
    if (calls.name == NULL)                                                                        \
        return err_set(e, ERR_UNSUPPORTED, LIBRARY " has no " #name);
    CURL_CALLS(X)
#undef X
    if (calls.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(e, ERR_INTERNAL, LIBRARY ": cannot be initialised");
    loaded = true;
    return 0;
}
