#!/bin/sh
# check_layers.sh - holds every #include of src/ against layers.txt.
# A folder without a line there is refused too: who it may know is a decision.
cd "$(dirname "$0")/.." || exit 1
# shellcheck disable=SC2046
awk '
FILENAME == "tools/layers.txt" {
    sub(/#.*/, "")
    if (match($0, /^[^:]+:/)) {
        dir = substr($0, 1, RLENGTH - 1)
        law[dir] = " " dir " " substr($0, RLENGTH + 1) " "
    }
    next
}
FNR == 1 { dir = FILENAME; sub(/^src\//, "", dir); if (!sub(/\/[^\/]*$/, "", dir)) dir = "" }
FNR == 1 && dir != "" && !(dir in law) { print FILENAME ": no line for " dir " in layers.txt"; bad = 1 }
dir != "" && /^[ \t]*#[ \t]*include[ \t]*"[^"]*\// {
    split($0, q, "\""); to = q[2]; sub(/\/[^\/]*$/, "", to)
    if (index(law[dir], " " to " ") == 0) {
        print FILENAME ":" FNR ": " dir " may not include " q[2]; bad = 1
    }
}
END { exit bad }' tools/layers.txt $(find src -name '*.[ch]' | sort)
