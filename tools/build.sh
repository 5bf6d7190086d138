#!/bin/sh
# build.sh DIR [MESON OPTIONS] - sets DIR up once, then lets ninja decide.
# Quiet unless something is wrong.
set -eu
cd "$(dirname "$0")/.."
dir=$1
shift
if [ ! -f "$dir/build.ninja" ]; then
    rm -rf "$dir"
    meson setup "$dir" "$@" >"/tmp/cove-meson.$$" 2>&1 || {
        cat "/tmp/cove-meson.$$" >&2
        rm -f "/tmp/cove-meson.$$"
        exit 1
    }
    rm -f "/tmp/cove-meson.$$"
fi
exec ninja -C "$dir" --quiet
