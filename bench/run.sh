#!/bin/sh
# run.sh [PROGRAM...] - starts a daemon of its own, runs the programs of bench/ against
# it, prints their table and writes docs/benchmarks.md. With programs named (exec,
# create, idle, pause, session, snapshot, stream, ports, terminal, network, cloudflare, e2b, files, git, inside, neighbour, workspace) only those run, and the documents stay as
# they are.
#
# COVE_BUILD: the build directory. COVE_BENCH_BASE: a template to share, which saves
# making one. Leaves nothing but the document.
set -eu
cd "$(dirname "$0")/.."
build=${COVE_BUILD:-build}
programs=${*:-exec create idle pause session snapshot stream ports terminal network cloudflare e2b files git inside neighbour workspace}
[ "$(id -u)" = 0 ] || {
    echo "bench/run.sh: needs root, as the daemon does" >&2
    exit 77
}

work=$(mktemp -d /tmp/cove-bench.XXXXXX)
chmod 711 "$work"
state=$work/state
base=${COVE_BENCH_BASE:-$state/base}
keeper=

clean_up() {
    trap - EXIT INT TERM
    if [ -n "$keeper" ]; then
        "$build/cove" stop --all --state "$state" >/dev/null 2>&1 || kill "$keeper" 2>/dev/null || :
        wait "$keeper" 2>/dev/null || :
    fi
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

"$build/cove" serve --listen 127.0.0.1:0 --state "$state" --base "$base" --network none \
    >"$work/out" 2>"$work/log" &
keeper=$!
tries=0
until grep -q ' ready on ' "$work/out"; do
    tries=$((tries + 1))
    if [ $tries -gt 600 ] || ! kill -0 "$keeper" 2>/dev/null; then
        cat "$work/log" >&2
        exit 1
    fi
    sleep 0.1
done
COVE_URL=$(sed -n 's/.* ready on //p' "$work/out")
COVE_API_KEY=$(cat "$state/api-key")
BENCH_KEEPER_PID=$keeper
BENCH_BASE=$base
BENCH_WORK=$build/bench/bench-inside-work
for f in /sys/fs/cgroup/memory/cove-"$(cat "$state/tag")"/memory.usage_in_bytes \
    /sys/fs/cgroup/cove-"$(cat "$state/tag")"/memory.current; do
    [ ! -f "$f" ] || BENCH_MEMORY_FILE=$f
done
for d in "$base"/base-*/root; do
    BENCH_ROOTFS=$d
done
[ $# -gt 0 ] || export BENCH_PLOT=docs/snapshots.svg
export COVE_URL COVE_API_KEY BENCH_KEEPER_PID BENCH_MEMORY_FILE BENCH_ROOTFS BENCH_BASE BENCH_WORK

load() { cut -d' ' -f1 /proc/loadavg; }
before=$(load)
: >"$work/rows"
for p in $programs; do
    echo "bench: $p" >&2
    program=$build/bench/bench-$p
    [ ! -x "bench/$p.sh" ] || program=bench/$p.sh # needs more than one daemon
    timeout 180 "$program" >>"$work/rows" || {
        echo "bench: $p failed" >&2
        tail -5 "$work/log" >&2
        exit 1
    }
done

# The rows as a table, aligned for people.
table() {
    awk -F'\t' '
        $1 == "row" { n++; for (i = 2; i <= 7; i++) cell[n, i] = $i }
        END {
            split("what|Cove|next to|result|wanted|met", head, "|")
            for (i = 2; i <= 7; i++) cell[0, i] = head[i - 1]
            for (r = 0; r <= n; r++) for (i = 2; i <= 7; i++)
                if (length(cell[r, i]) > w[i]) w[i] = length(cell[r, i])
            for (r = 0; r <= n; r++) {
                for (i = 2; i <= 7; i++) printf "| %-*s ", w[i], cell[r, i]
                print "|"
                if (r == 0) {
                    for (i = 2; i <= 7; i++) { s = sprintf("%*s", w[i], ""); gsub(/ /, "-", s); printf "|-%s-", s }
                    print "|"
                }
            }
        }' "$work/rows"
}
notes() { awk -F'\t' '$1 == "note" { print "- " $2 }' "$work/rows"; }

table
notes
[ $# -eq 0 ] || exit 0

cat >docs/benchmarks.md <<END
# Benchmarks

Written by \`make bench\`; the programs are in \`bench/\`. Times are medians of one run, in which our work and what it is compared
with took turns: the ratio says something about Cove, the times mostly about the machine.

Machine: $(nproc) cores of a virtual machine, $(awk '/MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo) of memory, Linux $(uname -r | cut -d. -f1-2), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release). Load average before the run: $before.

$(table)

- create, run, delete: over HTTP with one keep-alive connection, from the pool of ready sandboxes, which has a moment to refill
  between two turns; against a new process of each tool. Only Cove's sandbox has a disk with a quota, limits for CPU, memory and
  pids, ids of its own, a seccomp filter and a supervisor. bwrap: \`--unshare-all --ro-bind / / --proc /proc --dev /dev\`. unshare:
  user, mount, pid, net, ipc and uts namespaces. crun and runc: our template read-only, five namespaces, no limits.
- with egress: two daemons take turns, in a network namespace of their own; 1,000 concurrent ones are more than any pool holds, so
  most of them are made while the client waits.
- per second: until the answer to the last delete and until the teardown queue is empty, whichever is later.
- memory per idle sandbox: of the whole host (MemAvailable), kernel memory included; a process of the host that grows or shrinks in
  these seconds shows as the difference between taken and given back. With other work on the machine the result moved between
  0.4 and 0.8 MB from run to run: believe it only from a quiet one, in which the two are close.
- pause: sandboxes in which one process sleeps, twenty one after the other, each beside a group of its own: on which core the
  process sits decides more than anything else. The answer comes when it is frozen; the kernel keeps that, the row follows.
- snapshot, fork: with a little written before each. A fork is a snapshot and as many creations.
  ![against size](snapshots.svg)
- stream: 1 GB of zeros and 256 MB of \`yes\`, until the client has the last byte.
END
notes >>docs/benchmarks.md
