#!/bin/sh
# e2b.sh - the published SDK against the daemon of run.sh; see e2b.mjs.
set -eu
cd "$(dirname "$0")/.."
tools/install-deps.sh --test >&2
exec node bench/e2b.mjs
