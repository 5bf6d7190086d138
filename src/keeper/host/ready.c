/* ready.c - see ready.h. */
#include "keeper/host/ready.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/str.h"
#include "cove-version.h"

#define DEFAULT_FILE "/run/cove/default"

static void text_of(const struct keeper *k, char *out, size_t room)
{
    snprintf(out, room, "url=%s\nkey_file=%s/api-key\n", k->url, k->dir);
}

static void write_default(const struct keeper *k)
{
    char text[800];
    autofd int fd =
        open(DEFAULT_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    text_of(k, text, sizeof(text));
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
        rename(DEFAULT_FILE ".new", DEFAULT_FILE) < 0)
        log_warn("%s: %s", DEFAULT_FILE, strerror(errno));
}

void ready_unsay(struct keeper *k)
{
    char mine[800], theirs[800] = "";
    autofd int fd = open(DEFAULT_FILE, O_RDONLY | O_CLOEXEC);
    const char *key = strstr(mine, "key_file=");

    text_of(k, mine, sizeof(mine));
    key = strstr(mine, "key_file=");
    if (fd < 0 || read(fd, theirs, sizeof(theirs) - 1) <= 0 || strstr(theirs, key) == NULL)
        return;
    unlink(DEFAULT_FILE);
}

void ready_say(struct keeper *k)
{
    write_default(k);
    printf("cove %s ready on %s\n", COVE_VERSION, k->url);
    printf("\n  In another terminal, as root:\n\n"
           "    cove run -- uname -a              a sandbox for one command\n"
           "    id=$(cove create)                 one that stays\n"
           "    cove exec $id -- bash -c 'echo hello from $HOSTNAME'\n\n"
           "  Over HTTP:\n\n"
           "    export COVE_URL=%s COVE_API_KEY=$(cat %s/api-key)\n"
           "    curl -H \"Authorization: Bearer $COVE_API_KEY\" --json '{}' "
           "$COVE_URL/v1/sandboxes\n\n",
           k->url, k->dir);
    printf("  For the SDK and the CLI of E2B (docs/e2b.md):\n\n"
           "    export E2B_API_KEY=$(cat %s/api-key) E2B_API_URL=%s E2B_SANDBOX_URL=%s\n\n",
           k->dir, k->url, k->url);
    printf("  For clients of Cloudflare's sandboxes (docs/cloudflare.md):\n\n"
           "    export CLOUDFLARE_SANDBOX_WORKER_URL=%s CLOUDFLARE_SANDBOX_API_KEY=$(cat "
           "%s/api-key)\n\n",
           k->url, k->dir);
    fflush(stdout);
}
