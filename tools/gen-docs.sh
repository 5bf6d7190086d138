#!/bin/sh
# gen-docs.sh [--check] - writes the documents that are generated from
# tables. With --check it writes nothing and fails if a document differs.
# COVE_BIN names another binary than build/cove.
set -eu
cd "$(dirname "$0")/.."
cove=${COVE_BIN:-build/cove}
mkdir -p docs/man
status=0
for row in errors:docs/errors.md config:docs/config.md commands:docs/commands.md man:docs/man/cove.1 workspaces:docs/workspace-states.md; do
    what=${row%%:*} file=${row#*:} new=$(mktemp)
    "$cove" internal-docs "$what" >"$new"
    if [ "${1:-}" != --check ]; then
        cp "$new" "$file" && chmod 644 "$file"
    elif ! cmp -s "$new" "$file"; then
        echo "$file differs from the table it is made of; run \`make docs\`"
        diff -u "$file" "$new" | head -20 || true
        status=1
    fi
    rm -f "$new"
done
exit $status
