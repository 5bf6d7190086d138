#!/bin/sh
# lint.sh - formatting, layers, and a build with a second compiler.
# TIDY=1 adds clang-tidy, which takes minutes.
set -eu
cd "$(dirname "$0")/.."
files=$(git ls-files '*.c' '*.h')
# shellcheck disable=SC2086
clang-format --dry-run -Werror $files
tools/check_layers.sh
CC=clang tools/build.sh build-clang
if [ "${TIDY:-}" = 1 ]; then
    # shellcheck disable=SC2046
    clang-tidy --quiet -p build-clang --warnings-as-errors='*' \
        --checks='-*,bugprone-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,clang-analyzer-*,-clang-analyzer-security.insecureAPI.*' \
        $(git ls-files 'src/*.c')
fi
