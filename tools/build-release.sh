#!/bin/sh
# build-release.sh VERSION - builds a released version from the commit that CHANGES.md names for it,
# in build/releases/VERSION, and prints the path of its binary. An existing build is reused.
set -eu
cd "$(dirname "$0")/.."
version=${1:?usage: tools/build-release.sh VERSION}
commit=$(awk -v v="## $version" '$0 == v { on = 1; next } /^## / { on = 0 } on && $1 == "Commit" { sub(/\.$/, "", $2); print $2; exit }' CHANGES.md)
[ -n "$commit" ] || {
    echo "build-release: CHANGES.md names no commit for version $version" >&2
    exit 66
}
dir=$PWD/build/releases/$version
if [ "$(cat "$dir/commit" 2>/dev/null)" != "$commit" ]; then
    git cat-file -e "$commit^{commit}" 2>/dev/null || {
        echo "build-release: commit $commit (version $version) is not in this repository; fetch its whole history" >&2
        exit 66
    }
    rm -rf "$dir"
    mkdir -p "$dir/src"
    git archive "$commit" | tar -x -C "$dir/src"
    {
        meson setup "$dir/build" "$dir/src"
        ninja -C "$dir/build" cove
    } >"$dir/log" 2>&1 || {
        cat "$dir/log" >&2
        exit 70
    }
    echo "$commit" >"$dir/commit"
fi
echo "$dir/build/cove"
