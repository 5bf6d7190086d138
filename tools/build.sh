#!/bin/sh
# build.sh DIR [MESON OPTIONS] - sets DIR up once, then lets ninja decide.
# Quiet unless something is wrong.
set -eu
cd "$(dirname "$0")/.."
dir=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "$dir/build.ninja" ]; then
    echo "building in $dir"
    rm -rf "$dir"
    set -- meson setup "$dir" "$@"
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
fi
ninja -C "$dir" >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
