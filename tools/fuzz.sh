#!/bin/sh
# fuzz.sh SECONDS [NAME...] - runs each harness (or those named) for SECONDS; without names also
# fuzz/api, which sends requests made from the API's description to the release build.
# Builds in build-fuzz with clang; the corpus is kept in build-fuzz/corpus.
set -eu
seconds=${1:?usage: tools/fuzz.sh SECONDS [NAME...]}
shift
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-fuzz

[ -d "$build" ] || CC=clang meson setup "$build" "$root" -Dfuzz=true -Dbuildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false -Db_pie=false -Dc_args=-fsanitize=fuzzer-no-link
api=0
[ $# -gt 0 ] || api=1
[ $# -gt 0 ] || set -- $(cd "$root/fuzz" && ls fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')

for name in "$@"; do
    ninja -C "$build" "fuzz/fuzz_$name" >/dev/null
    mkdir -p "$build/corpus/$name"
    dict=$root/fuzz/dict/$name.dict
    echo "== $name"
    "$build/fuzz/fuzz_$name" "$build/corpus/$name" "$root/fuzz/seeds/$name" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/corpus/$name-" ${dict:+$([ -f "$dict" ] && echo "-dict=$dict")} 2>&1 |
        grep -E 'ERROR|SUMMARY|stat::number|stat::average|cov:.*DONE|Test unit' || true
    if ls "$build/corpus/$name"-* >/dev/null 2>&1; then
        echo "found: $(ls "$build/corpus/$name"-*)" >&2
        exit 1
    fi
done

# `make test` has its own short run (tests/isolation/cannot-break-the-front-by-requests.test.mjs)
if [ "$api" = 1 ] && [ "$seconds" -ge 30 ]; then
    echo "== api"
    "$root/tools/build.sh" "$root/build"
    node "$root/fuzz/api/run.mjs" "$seconds"
fi
