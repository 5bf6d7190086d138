/* config.h - all settings of `cove serve`, in one table.
 *
 * The table yields the command line, the configuration file, `serve --help`,
 * GET /v1/config and the manual. Values come from the defaults, then the file
 * (--config FILE; lines `name = value`, `#` comments), then the command line. A
 * value out of its bounds is refused with the bounds in the message. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/quotas.h"

#define CONFIG_TEXT_MAX 1024

/* clang-format off */
/* The defaults of sandboxes' limits. */
#define CONFIG_LIMIT(X, _, member, name, type, def, min, max, doc, ...) X(type, member, name, def, min, max, doc)
/* The ceilings of sandboxes' limits. */
#define CONFIG_CEILING(X, _, member, name, type, def, min, max, doc, api, value, flag, ceiling, words) X(type, member##_max, name "-max", ceiling, 0, max, words)
/* The quotas of keys that have no value of their own. */
#define CONFIG_QUOTA(X, _, member, name, type, def, max, doc) X(type, quota_##member, "quota-" name, def, 0, max, "default quota of a key, not of admin keys: " doc "; 0: no limit")
#define CONFIG_KEYS(X)                                                                                                         \
    /* type     member        name             default             min    max        one sentence */                           \
    X(TEXT,     listen,       "listen",        "127.0.0.1:7878",   0,     0,         "address and port of everything Cove serves")             \
    X(TEXT,     state,        "state",         "/var/lib/cove",    0,     0,         "directory of all data that Cove stores")             \
    X(TEXT,     base,         "base",          "",                 0,     0,         "directory of the default template, to share it between state directories (default: inside state)") \
    X(TEXT,     domain,       "domain",        "",                 0,     0,         "domain of sandboxes' host names (default: localhost:PORT)") \
    X(TEXT,     hosts,        "hosts",         "",                 0,     0,         "more names that clients may reach this server by, each with the names below it, comma-separated; *: any name (pages of any site can then reach it by DNS rebinding)") \
    X(TEXT,     log_level,    "log-level",     "info",             0,     0,         "error, warn, info or debug")                             \
    X(TEXT,     accept,       "accept",        "",                 0,     0,         "protections that this host lacks and that you accept to run without, comma-separated (see `cove doctor`); lost-database: sandboxes and snapshots of a lost database are given to the first key") \
    X(NUMBER,   sandboxes,    "sandboxes-max", "0",                0,     100000,    "concurrent sandboxes; 0: as many as the host's limits allow") \
    X(NUMBER,   pool,         "pool",          "16",               0,     1000,      "sandboxes of the default template kept ready")           \
    X(SIZE,     disk_pool,    "disk-pool",     "0",                0,     1ull << 50, "size of the image that holds all sandboxes' disks, of which used space and disk-reserve are allocated; 0: four fifths of the free space") \
    X(SIZE,     disk_reserve, "disk-reserve",  "0",                0,     1ull << 50, "free space for sandboxes' disks that is allocated ahead on the host, at least 64M; 0: an eighth of disk-pool, 2G to 4G, or all of a smaller one") \
    X(SIZE,     memory_reserve, "memory-reserve", "0",             0,     1ull << 45, "memory of the host that all sandboxes together never get; 0: a sixteenth of it, 256M to 4G") \
    LIMITS(CONFIG_LIMIT, X, _)                                                                                                 \
    LIMITS(CONFIG_CEILING, X, _)                                                                                               \
    QUOTAS(CONFIG_QUOTA, X, _)                                                                                                 \
    X(TEXT,     fsync,        "fsync",         "durable",          0,     0,         "durable: fsync in a sandbox returns when the data is on the disk; relaxed: at once, and a failure of the host may lose the last writes; for sandboxes that do not choose") \
    X(DURATION, timeout_ms,   "timeout",       "0",                0,     1ull << 50, "default lifetime of a sandbox; 0: until it is deleted")  \
    X(DURATION, token_grace_ms, "token-grace", "24h",              0,     1ull << 40, "how long earlier tokens stay valid after `cove token rotate`") \
    X(TEXT,     mounts,       "mounts",        "",                 0,     0,         "volumes and directories that sandboxes may mount, comma-separated: NAME (a volume of Cove) or NAME=/DIRECTORY (of the host; read-only)") \
    X(DURATION, cloudflare_idle_ms, "cloudflare-idle","10m",              0,     1ull << 40, "a sandbox made by a Cloudflare client is paused after this time without a call; 0: never") \
    X(TEXT,     cloudflare_template, "cloudflare-template", "base",    0,     0,         "template of sandboxes that Cloudflare clients make")     \
    X(DURATION, exec_ms,      "exec-timeout",  "0",                0,     1ull << 50, "default time limit of an exec; 0: none")                 \
    X(SIZE,     output,       "output",        "1M",               4096,  64ull << 20, "output of each process that is kept for replay")           \
    X(NUMBER,   requests,     "requests-max",  "4096",             16,    65536,     "concurrent HTTP connections; at most a third of the limit of open files")\
    X(SIZE,     buffers,      "buffers-max",   "1G",               0,     1ull << 40, "memory that requests of all keys together may hold (see quota-buffers); more are answered 503; 0: no limit") \
    X(NUMBER,   peer_connections, "peer-connections-max", "0",           0,     65536,     "concurrent connections from one address on which no API key was presented; beyond it idle ones are closed, then new ones are answered 503; 0: half of requests-max") \
    X(NUMBER,   creates,      "creates-max",   "256",              1,     65536,     "concurrent creates that may wait for the keeper; more are answered 503")  \
    X(TEXT,     network,      "network",       "auto",             0,     0,         "auto: sandboxes get `egress` (filtered outgoing network) if the host supports it; egress: refuse to start if it does not; none: no sandbox has a network") \
    X(TEXT,     subnet,       "subnet",        "auto",             0,     0,         "private IPv4 network, /20 or larger, of sandboxes' addresses (auto: one that overlaps no route of the host)") \
    X(TEXT,     resolvers,    "resolvers",     "",                 0,     0,         "one or two addresses of DNS servers for sandboxes, comma-separated (default: the host's own)") \
    X(TEXT,     allow_ranges, "allow-ranges",  "",                 0,     0,         "private ranges that sandboxes may reach, comma-separated: NAME=CIDR[:PORT[-PORT]]") \
    X(TEXT,     apt_mirror,   "apt-mirror",    "",                 0,     0,         "URL that apt in the default template fetches from instead of the host's sources; URL,URL: the second one for the security suites") \
    X(TEXT,     pip_index,    "pip-index",     "",                 0,     0,         "URL of the index that pip in the default template fetches from") \
    X(TEXT,     npm_registry, "npm-registry",  "",                 0,     0,         "URL of the registry that npm in the default template fetches from") \
    X(TEXT,     package_proxy, "package-proxy", "",                0,     0,         "URL of the HTTP proxy that apt, pip and npm in the default template use") \
    X(DURATION, metrics_every_ms, "metrics-every", "5s",            1000,  3600000,   "time between two usage samples of a sandbox") \
    X(DURATION, metrics_ms,   "metrics-keep",  "24h",              0,     1ull << 50, "how long usage samples are kept; 0: none are taken") \
    X(NUMBER,   metrics_max,  "metrics-max",   "1000000",          0,     1000000000, "usage samples kept, of all sandboxes together; the oldest are deleted first") \
    X(DURATION, logs_ms,      "logs-keep",     "7d",               0,     1ull << 50, "how long the logs of sandboxes are kept; 0: none are written") \
    X(NUMBER,   logs_max,     "logs-max",      "200000",           0,     1000000000, "log entries kept, of all sandboxes together; the oldest are deleted first") \
    X(NUMBER,   logs_output,  "logs-output",   "0",                0,     1,         "1: the output of commands is also logged, except in sandboxes made with log_output false") \
    X(NUMBER,   logs_output_max, "logs-output-max", "10000",         1,     10000000,  "lines of commands' output kept in the log of one sandbox; the oldest are deleted first") \
    X(NUMBER,   snapshots,    "snapshots-max", "1000",             0,     100000,    "snapshots, including those of running forks") \
    X(TEXT,     archives,     "archives",      "",                 0,     0,         "where archives of workspaces are kept: a directory that user `cove` can write to, or s3://BUCKET/PREFIX (default: front/archives inside state)") \
    X(TEXT,     archives_endpoint, "archives-endpoint", "",        0,     0,         "with s3://: URL of the server, http(s)://HOST[:PORT] (default: Amazon's of the region)") \
    X(TEXT,     archives_region, "archives-region", "us-east-1",   0,     0,         "with s3://: region of the bucket") \
    X(TEXT,     archives_credentials, "archives-credentials", "",  0,     0,         "with s3://: file with the lines aws_access_key_id = ... and aws_secret_access_key = ..., which user `cove` can read") \
    X(DURATION, workspace_grace_ms, "workspace-grace", "10m",       0,     1ull << 40, "time without use after which the sandbox of a workspace is paused, if the workspace does not say") \
    X(DURATION, workspace_archive_ms, "workspace-archive", "12h",   0,     1ull << 40, "further time after which it is archived and deleted, if the workspace does not say; 0: never") \
    X(NUMBER,   connections,  "connections-max", "1024",           16,    1000000,   "concurrent outgoing connections of one sandbox")
/* clang-format on */

#define CONFIG_ONE(...) +1
enum { CONFIG_COUNT = 0 CONFIG_KEYS(CONFIG_ONE) };

enum config_type { CONFIG_TEXT, CONFIG_NUMBER, CONFIG_SIZE, CONFIG_DURATION };

#define CONFIG_C_TEXT char *
#define CONFIG_C_NUMBER uint64_t
#define CONFIG_C_SIZE uint64_t
#define CONFIG_C_DURATION uint64_t

struct config {
#define X(type, member, name, def, min, max, doc) CONFIG_C_##type member;
    CONFIG_KEYS(X)
#undef X
};

struct config_key {
    const char *name;
    enum config_type type;
    size_t offset;
    const char *def;
    uint64_t min, max;
    const char *doc;
};

extern const struct config_key config_keys[];
extern const size_t config_nkeys;

/* Fills `c` from defaults, file and arguments (argv without the program and
 * command names). config_free() also after a failure. */
int config_load(struct config *c, int argc, char *const *argv, struct err *e);
void config_free(struct config *c);

/* One value as text, the way it would be written in the file. */
void config_value(const struct config *c, const struct config_key *k, char out[CONFIG_TEXT_MAX]);
/* The same settings as arguments, for a process that re-reads them: --name, value... NULL.
 * Belongs to the caller; free() once. */
char **config_argv(const struct config *c);
/* True if `what` is in the accept list. */
bool config_accepts(const struct config *c, const char *what);
void config_help(struct buf *out);

#endif
