#!/bin/sh
# check_layers.sh - checks every #include of src/ against layers.txt: the direct includes of a folder,
# its transitive includes, that no permission is unused, and that there are no cycles. A folder
# without a line is an error too, and so is one that the tour in README.md does not name: in a row of
# its own, or in that of the folder above it.
cd "$(dirname "$0")/.." || exit 1
bad=0
# shellcheck disable=SC2046
awk '
function folder(path) { return sub(/\/[^\/]*$/, "", path) ? path : "" }
function complain(text) { print text; bad = 1 }
# Marks the folder of every header that `file` reaches.
function reach(top, file,    n, i, to) {
    n = split(headers[file], to, " ")
    for (i = 1; i <= n; i++) {
        if ((top, to[i]) in seen) continue
        seen[top, to[i]] = 1
        if (folder(to[i]) != folder(top)) sees[folder(top), folder(to[i])] = top
        reach(top, to[i])
    }
}
# A path from one folder to another along direct includes.
function leads(from, goal, trail,    i) {
    for (i = 1; i <= folders; i++)
        if ((from, name[i]) in may && !((goal, name[i]) in walked)) {
            walked[goal, name[i]] = 1
            if (name[i] == goal) { complain("a cycle: " trail " " name[i]); return }
            leads(name[i], goal, trail " " name[i])
        }
}
FILENAME == "tools/layers.txt" {
    sub(/#.*/, "")
    if (!match($0, /^[^:]+:/)) next
    dir = substr($0, 1, RLENGTH - 1); name[++folders] = dir; law[dir] = 1; through = 0
    n = split(substr($0, RLENGTH + 1), word, " ")
    for (i = 1; i <= n; i++)
        if (word[i] == "|") through = 1
        else if (through) through_others[dir, word[i]] = 1
        else may[dir, word[i]] = 1
    next
}
FNR == 1 {
    file = FILENAME; sub(/^src\//, "", file); files[++nfiles] = file; dir = folder(file)
    if (dir != "" && !(dir in law)) { complain(FILENAME ": no line for " dir " in layers.txt"); law[dir] = 1 }
}
/^[ \t]*#[ \t]*include[ \t]*"[^"]*\// {
    split($0, q, "\""); headers[file] = headers[file] " " q[2]; to = folder(q[2])
    if (dir == "" || to == dir) next
    used[dir, to] = 1
    if (!((dir, to) in may)) complain(FILENAME ":" FNR ": " dir " may not include " q[2])
}
END {
    for (i = 1; i <= nfiles; i++) if (folder(files[i]) != "") reach(files[i], files[i])
    for (pair in sees) {
        split(pair, p, SUBSEP)
        if (!(pair in may) && !(pair in through_others)) complain("src/" sees[pair] ": " p[1] " may not see " p[2] ", through the headers it includes")
    }
    for (pair in may) if (!(pair in used)) { split(pair, p, SUBSEP); complain("layers.txt: " p[1] " includes nothing of " p[2]) }
    for (pair in through_others) if (!(pair in sees) || pair in may) { split(pair, p, SUBSEP); complain("layers.txt: " p[1] " need not see " p[2]) }
    for (i = 1; i <= folders; i++) leads(name[i], name[i], name[i])
    exit bad
}' tools/layers.txt $(find src -name '*.[ch]' | sort) || bad=1
awk -F'|' '
FILENAME == "README.md" {
    n = split($2, named, "`")
    for (i = 2; i <= n; i += 2) row[named[i]] = $3
    next
}
/^[a-z]/ {
    sub(/:.*/, ""); last = above = $0; sub(/.*\//, "", last); sub(/\/?[^\/]*$/, "", above)
    if (!(($0 "/") in row) && !index(row[above "/"], "`" last "/`")) { print "README.md: the tour does not name src/" $0; bad = 1 }
}
END { exit bad }' README.md tools/layers.txt || bad=1
exit $bad
