/* maps.c - see maps.h. */
#include "front/plane/maps.h"

#include <string.h>

#include "front/engine/engine.h"

int maps_env(json_t *env, struct buf *out, struct err *e)
{
    const char *name;
    json_t *value;

    json_object_foreach(env, name, value)
    {
        if (*name == '\0' || strchr(name, '=') != NULL)
            return err_set(e, ERR_INVALID, "env: '%.60s' is not the name of a variable", name);
        buf_adds(out, name);
        buf_addc(out, '=');
        buf_add(out, json_string_value(value), json_string_length(value) + 1);
    }
    if (out->failed)
        return err_set(e, ERR_TOO_LARGE, "env: more than %zu bytes", out->max);
    return 0;
}

int maps_metadata(json_t *metadata, char **ret, struct err *e)
{
    char *text;

    if (metadata == NULL)
        return 0;
    *ret = text = json_dumps(metadata, JSON_COMPACT);
    if (strlen(text) > ENGINE_METADATA_MAX)
        return err_set(e, ERR_TOO_LARGE, "metadata: more than %u bytes", ENGINE_METADATA_MAX);
    return 0;
}
