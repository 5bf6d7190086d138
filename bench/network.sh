#!/bin/sh
# network.sh - runs bench-network in a network namespace of its own, against two daemons
# there: one that gives its sandboxes `none`, one that gives them `egress`. The way out
# leads to the other end of a veth, where nothing listens. Called by run.sh.
#
# COVE_BUILD and BENCH_BASE as run.sh has them.
set -eu
cd "$(dirname "$0")/.."
build=${COVE_BUILD:-build}
dir=$(mktemp -d /tmp/cove-bench-net.XXXXXX)
chmod 711 "$dir"
ns=cove-bench-$$

clean_up() {
    trap - EXIT INT TERM
    for mode in none egress; do
        [ ! -d "$dir/$mode" ] || inside "$build/cove" stop --all --state "$dir/$mode" >/dev/null 2>&1 || :
    done
    ip netns del "$ns" 2>/dev/null || :
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# not `ip netns exec`, which hides the cgroups
inside() { nsenter --net=/run/netns/"$ns" "$@"; }

serve() { # MODE: sets url and key
    inside "$build/cove" serve --listen 127.0.0.1:0 --state "$dir/$1" --base "$BENCH_BASE" --network "$1" \
        >"$dir/$1.out" 2>"$dir/$1.log" &
    pid=$!
    tries=0
    until grep -q ' ready on ' "$dir/$1.out"; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ] || ! kill -0 $pid 2>/dev/null; then
            cat "$dir/$1.log" >&2
            exit 1
        fi
        sleep 0.1
    done
    url=$(sed -n 's/.* ready on //p' "$dir/$1.out")
    key=$(cat "$dir/$1/api-key")
}

ip netns add "$ns"
inside ip link set lo up
inside ip link add out0 type veth peer name nobody0
inside ip addr add 192.0.2.1/24 dev out0
inside ip link set out0 up
inside ip link set nobody0 up
inside ip route add default via 192.0.2.2
serve none
COVE_URL=$url COVE_API_KEY=$key
serve egress
BENCH_EGRESS_URL=$url BENCH_EGRESS_KEY=$key
export COVE_URL COVE_API_KEY BENCH_EGRESS_URL BENCH_EGRESS_KEY
inside "$build/bench/bench-network"
