/* keeper.h - the requests that the front may send to the keeper, and their answers.
 *
 * One socket, many concurrent requests, matched by seq. An attacker who has taken over
 * the front can do what this table allows and nothing else. `when` says in which
 * state of the conversation a request is allowed (OpenSSH's monitor): before the
 * front has asked for the list of sandboxes, it may change nothing.
 *
 * EXTEND  A new operation: a row here, a row in keeper/host/ops.c, a caller in
 *         front/engine, a seed in fuzz/seeds/wire_keeper. */
#ifndef WIRE_KEEPER_H
#define WIRE_KEEPER_H

#include "base/limits.h"
#include "wire/image.h"
#include "wire/rules.h"
#include "wire/wire.h"

#define KEEPER_ID_MAX 32u
#define KEEPER_NAME_MAX 64u /* of a template */
#define KEEPER_TEXT_MAX 500u
#define KEEPER_PATH_MAX 4096u

#define WIRE_LIMIT(F, S, member, ...) F(S, U64, member, 0)

enum keeper_state { KEEPER_RUNNING, KEEPER_STOPPED, KEEPER_PAUSED, KEEPER_DAMAGED };

/* clang-format off */
/* answers and notices */
#define KEEPER_FAIL_FIELDS(F, S)     F(S, STR, code, 32) F(S, STR, message, KEEPER_TEXT_MAX)
#define KEEPER_OK_FIELDS(F, S)       F(S, U64, value, 0)
#define KEEPER_SANDBOX_FIELDS(F, S)  F(S, STR, id, KEEPER_ID_MAX) F(S, U32, state, KEEPER_DAMAGED) \
                                     F(S, STR, template, KEEPER_NAME_MAX) F(S, STR, boot_id, 64) \
                                     F(S, STR, reason, KEEPER_TEXT_MAX) \
                                     LIMITS(WIRE_LIMIT, F, S) F(S, U64, created_ms, 0) \
                                     F(S, BYTES, settings, IMAGE_SETTINGS_MAX) \
                                     F(S, STR, network, 16) F(S, U32, address, UINT32_MAX) F(S, U32, told, 1) \
                                     F(S, U32, relaxed, 1) F(S, U64, lost_ms, 0)
#define KEEPER_TEMPLATE_FIELDS(F, S) F(S, STR, name, KEEPER_NAME_MAX) F(S, STR, state, 32) F(S, U64, bytes, 0) \
                                     F(S, U64, files, 0) F(S, U64, created_ms, 0) F(S, STR, note, KEEPER_TEXT_MAX) \
                                     F(S, STR, id, KEEPER_ID_MAX) F(S, STR, format, 16) F(S, U32, layers, 0) \
                                     F(S, BYTES, settings, IMAGE_SETTINGS_MAX)
#define KEEPER_END_FIELDS(F, S)      F(S, U64, count, 0)
#define KEEPER_STATS_FIELDS(F, S)    F(S, U64, sandboxes, 0) F(S, U64, pooled, 0) F(S, U64, teardown, 0) \
                                     F(S, U64, sandboxes_max, 0) F(S, U64, disk_total, 0) F(S, U64, disk_free, 0) \
                                     F(S, U64, disk_allocated, 0) F(S, U64, disk_used, 0) F(S, U64, reserve_wanted, 0) \
                                     F(S, U64, reserve, 0) F(S, U32, disk_low, 0) F(S, U32, disk_backed, 0) \
                                     F(S, STR, lacks, 16) /* for a create: sandboxes, memory, disk, deletes; "": nothing */ \
                                     F(S, STR, failing, 16) /* the stage that no sandbox gets past; "": none */ \
                                     F(S, U32, proven, 1) /* a sandbox was built: `failing` is known */ \
                                     F(S, U64, proofs, 0) /* sandboxes that were built only to know that */ \
                                     F(S, U32, io_weights, 1) F(S, U32, io_limits, 1) F(S, U32, bandwidth, 1) \
                                     F(S, STR, firewall, KEEPER_TEXT_MAX) /* in the way of sandboxes; "": none */ \
                                     F(S, U64, memory_total, 0) F(S, U64, memory_left, 0) F(S, U32, memory_low, 1)
#define KEEPER_DIED_FIELDS(F, S)     F(S, STR, id, KEEPER_ID_MAX) F(S, STR, reason, KEEPER_TEXT_MAX)
#define KEEPER_PROGRESS_FIELDS(F, S) F(S, STR, text, KEEPER_TEXT_MAX) F(S, U64, done, 0) F(S, U64, total, 0)
#define KEEPER_COUNT_FIELDS(F, S)    F(S, STR, id, KEEPER_ID_MAX) F(S, U64, in_bytes, 0) F(S, U64, in_packets, 0) \
                                     F(S, U64, out_bytes, 0) F(S, U64, out_packets, 0)
#define KEEPER_SNAP_FIELDS(F, S)     F(S, STR, id, KEEPER_ID_MAX) F(S, STR, sandbox, KEEPER_ID_MAX) \
                                     F(S, STR, template, KEEPER_NAME_MAX) F(S, U64, bytes, 0) F(S, U64, created_ms, 0) \
                                     F(S, U32, damaged, 1) F(S, U32, told, 1)
#define KEEPER_POINT_FIELDS(F, S)    F(S, STR, id, KEEPER_ID_MAX) F(S, U64, cpu_us, 0) F(S, U64, memory, 0) \
                                     F(S, U64, cache, 0) F(S, U64, disk, 0) F(S, U64, pids, 0) \
                                     F(S, U64, in_bytes, 0) F(S, U64, out_bytes, 0)
/* requests */
#define KEEPER_LIST_FIELDS(F, S)     F(S, U32, settings, 1)
#define KEEPER_CREATE_FIELDS(F, S)   F(S, STR, template, KEEPER_NAME_MAX) F(S, STR, network, 16) \
                                     LIMITS(WIRE_LIMIT, F, S) F(S, BYTES, rules, WIRE_RULES_BYTES) \
                                     F(S, STR, snapshot, KEEPER_ID_MAX) F(S, U32, relaxed, 1)
#define KEEPER_BOOT_FIELDS(F, S)     F(S, STR, id, KEEPER_ID_MAX) F(S, BYTES, rules, WIRE_RULES_BYTES) \
                                     F(S, U32, relaxed, 1)
#define KEEPER_DESTROY_FIELDS(F, S)  F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_TEMPLATES_FIELDS(F, S) F(S, U32, unused, 0)
#define KEEPER_REFRESH_FIELDS(F, S)  F(S, STR, name, KEEPER_NAME_MAX)
#define KEEPER_STAT_FIELDS(F, S)     F(S, U32, prove, 1)
#define KEEPER_HALT_FIELDS(F, S)     F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_READY_FIELDS(F, S)    F(S, U32, unused, 0)
#define KEEPER_IMPORT_FIELDS(F, S)   F(S, U64, disk, 0)
#define KEEPER_COMMIT_FIELDS(F, S)   F(S, STR, id, KEEPER_ID_MAX) F(S, STR, name, KEEPER_NAME_MAX) F(S, STR, format, 16) \
                                     F(S, STRV, layers, (IMAGE_LAYERS_MAX * (IMAGE_CHAIN + 1))) \
                                     F(S, BYTES, settings, IMAGE_SETTINGS_MAX) F(S, U64, bytes, 0) F(S, U64, files, 0)
#define KEEPER_ALIAS_FIELDS(F, S)    F(S, STR, name, KEEPER_NAME_MAX) F(S, STR, alias, KEEPER_NAME_MAX)
#define KEEPER_FORGET_FIELDS(F, S)   F(S, STR, name, KEEPER_NAME_MAX)
#define KEEPER_RULES_FIELDS(F, S)    F(S, STR, id, KEEPER_ID_MAX) F(S, BYTES, rules, WIRE_RULES_BYTES)
#define KEEPER_TRAFFIC_FIELDS(F, S)  F(S, U32, unused, 0)
#define KEEPER_PAUSE_FIELDS(F, S)    F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_THAW_FIELDS(F, S)     F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_SNAPSHOT_FIELDS(F, S) F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_SNAPSHOTS_FIELDS(F, S) F(S, U32, unused, 0)
#define KEEPER_UNSNAP_FIELDS(F, S)   F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_SAMPLE_FIELDS(F, S)   F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_MOUNT_FIELDS(F, S)    F(S, STR, id, KEEPER_ID_MAX) F(S, STR, name, KEEPER_NAME_MAX) \
                                     F(S, STR, path, KEEPER_PATH_MAX) F(S, U32, read_only, 1)
#define KEEPER_UNMOUNT_FIELDS(F, S)  F(S, STR, id, KEEPER_ID_MAX) F(S, STR, path, KEEPER_PATH_MAX)
#define KEEPER_FLUSH_FIELDS(F, S)    F(S, U32, unused, 0)
#define KEEPER_TOLD_FIELDS(F, S)     F(S, STR, id, KEEPER_ID_MAX)
#define KEEPER_RECOVER_FIELDS(F, S)  F(S, STR, id, KEEPER_ID_MAX) F(S, STR, boot_id, 64) F(S, STR, network, 16) \
                                     LIMITS(WIRE_LIMIT, F, S) F(S, U64, created_ms, 0) F(S, U32, relaxed, 1)
#define KEEPER_RELIMIT_FIELDS(F, S)  F(S, STR, id, KEEPER_ID_MAX) LIMITS(WIRE_LIMIT, F, S)

/*  list      -> sandbox..., end     sandboxes that were given out; with the settings of their image
 *                                   only if asked for
 *  create    -> sandbox             running, its init listening; or fail. From `snapshot` if one
 *                                   is named, else from `template`
 *  boot      -> sandbox             a stopped one, on its old disk; fail conflict if running
 *  destroy   -> ok                  its processes are dead, its record says so; teardown continues
 *  templates -> template..., end
 *  refresh   -> progress..., ok     builds it again; existing sandboxes keep the old version
 *  stat      -> stats               with `prove` only when it is known whether sandboxes can be made
 *  halt      -> ok                  its processes are dead, its files kept; its state is stopped
 *  pause     -> ok                  the tenant's processes are frozen; ok if it was paused already
 *  thaw      -> ok                  its processes run again; ok if it was running already
 *  snapshot  -> snap                its files at one moment; then it continues
 *  snapshots -> snap..., end        snapshots that a client wants
 *  unsnap    -> ok                  no client wants it; removed after its last user
 *  sample    -> point..., end       usage of each running sandbox, now and since its boot; only of
 *                                   `id` if it is not ""
 *  ready     (no answer)            the front has joined and serves requests
 *  import    -> sandbox             a temporary one with an empty root, for cove-helper; it ends
 *                                   with commit, with destroy, or with this front
 *  commit    -> ok                  its files become the template `name`, or without a name a
 *                                   snapshot with the id of the import; its processes are dead,
 *                                   also if this fails. `layers` are chain ids, lowest first
 *  alias     -> ok                  adds a name to a template
 *  forget    -> ok                  removes a name of a template; fail conflict while it is in use
 *  rules     -> ok                  replaces the rules of its network (wire/rules.h)
 *  traffic   -> count..., end       traffic of each sandbox since its boot
 *  mount     -> ok                  a directory listed by the operator, mounted inside until the
 *                                   next boot
 *  unmount   -> ok                  fail not_found if no such mount is there
 *  flush     -> ok                  all records written before are on the disk: clients may be told
 *  told      (no answer)            a client was told of this sandbox or snapshot: its row is on the disk
 *  recover   -> sandbox             a damaged one is running or stopped again; its record is made
 *                                   from the front's row and the kernel's state
 *  relimit   -> ok                  other limits, now if it runs and at each later boot; fail conflict
 *                                   if it uses more, or if that limit only changes at a boot
 *  died      (notice, seq 0)        an init ended without a request */
#define KEEPER_MSGS(X) \
    X(KEEPER_FAIL,      keeper_fail,      1,  KEEPER_FAIL_FIELDS) \
    X(KEEPER_OK,        keeper_ok,        2,  KEEPER_OK_FIELDS) \
    X(KEEPER_SANDBOX,   keeper_sandbox,   3,  KEEPER_SANDBOX_FIELDS) \
    X(KEEPER_TEMPLATE,  keeper_template,  4,  KEEPER_TEMPLATE_FIELDS) \
    X(KEEPER_END,       keeper_end,       5,  KEEPER_END_FIELDS) \
    X(KEEPER_STATS,     keeper_stats,     6,  KEEPER_STATS_FIELDS) \
    X(KEEPER_DIED,      keeper_died,      7,  KEEPER_DIED_FIELDS) \
    X(KEEPER_PROGRESS,  keeper_progress,  8,  KEEPER_PROGRESS_FIELDS) \
    X(KEEPER_COUNT,     keeper_count,     20, KEEPER_COUNT_FIELDS) \
    X(KEEPER_SNAP,      keeper_snap,      21, KEEPER_SNAP_FIELDS) \
    X(KEEPER_POINT,     keeper_point,     22, KEEPER_POINT_FIELDS) \
    X(KEEPER_LIST,      keeper_list,      32, KEEPER_LIST_FIELDS) \
    X(KEEPER_CREATE,    keeper_create,    33, KEEPER_CREATE_FIELDS) \
    X(KEEPER_BOOT,      keeper_boot,      34, KEEPER_BOOT_FIELDS) \
    X(KEEPER_DESTROY,   keeper_destroy,   35, KEEPER_DESTROY_FIELDS) \
    X(KEEPER_TEMPLATES, keeper_templates, 36, KEEPER_TEMPLATES_FIELDS) \
    X(KEEPER_REFRESH,   keeper_refresh,   37, KEEPER_REFRESH_FIELDS) \
    X(KEEPER_STAT,      keeper_stat,      38, KEEPER_STAT_FIELDS) \
    X(KEEPER_HALT,      keeper_halt,      39, KEEPER_HALT_FIELDS) \
    X(KEEPER_READY,     keeper_ready,     40, KEEPER_READY_FIELDS) \
    X(KEEPER_IMPORT,    keeper_import,    48, KEEPER_IMPORT_FIELDS) \
    X(KEEPER_COMMIT,    keeper_commit,    49, KEEPER_COMMIT_FIELDS) \
    X(KEEPER_ALIAS,     keeper_alias,     50, KEEPER_ALIAS_FIELDS) \
    X(KEEPER_FORGET,    keeper_forget,    51, KEEPER_FORGET_FIELDS) \
    X(KEEPER_RULES,     keeper_rules,     60, KEEPER_RULES_FIELDS) \
    X(KEEPER_TRAFFIC,   keeper_traffic,   61, KEEPER_TRAFFIC_FIELDS) \
    X(KEEPER_PAUSE,     keeper_pause,     62, KEEPER_PAUSE_FIELDS) \
    X(KEEPER_THAW,      keeper_thaw,      63, KEEPER_THAW_FIELDS) \
    X(KEEPER_SNAPSHOT,  keeper_snapshot,  64, KEEPER_SNAPSHOT_FIELDS) \
    X(KEEPER_SNAPSHOTS, keeper_snapshots, 65, KEEPER_SNAPSHOTS_FIELDS) \
    X(KEEPER_UNSNAP,    keeper_unsnap,    66, KEEPER_UNSNAP_FIELDS) \
    X(KEEPER_SAMPLE,    keeper_sample,    67, KEEPER_SAMPLE_FIELDS) \
    X(KEEPER_MOUNT,     keeper_mount,     90, KEEPER_MOUNT_FIELDS) \
    X(KEEPER_UNMOUNT,   keeper_unmount,   91, KEEPER_UNMOUNT_FIELDS) \
    X(KEEPER_FLUSH,     keeper_flush,     92, KEEPER_FLUSH_FIELDS) \
    X(KEEPER_RECOVER,   keeper_recover,   93, KEEPER_RECOVER_FIELDS) \
    X(KEEPER_TOLD,      keeper_told,      94, KEEPER_TOLD_FIELDS) \
    X(KEEPER_RELIMIT,   keeper_relimit,   110, KEEPER_RELIMIT_FIELDS)
/* clang-format on */

#define X(kind, s, number, fields) kind = number,
enum keeper_msg_type { KEEPER_MSGS(X) };
#undef X

#define X(kind, s, number, fields)                                                                 \
    struct s {                                                                                     \
        fields(WIRE_MEMBER, s)                                                                     \
    };
KEEPER_MSGS(X)
#undef X

const struct wire_msg *keeper_msg(uint16_t type);

#endif
