#!/bin/bash
# run-tests.sh [STEP...] - runs all tests and ends with the line
# `N passed, N failed`. With names, only those steps: checks smoke unit fuzz
# api http isolation network chaos upgrade host clients, and heavy, which runs only by its name.
#
#   checks      layers, generated documents, formatting
#   smoke       one look at each surface of the release build
#   unit        C, with address and undefined behaviour sanitizers
#   fuzz        every parser for FUZZ_SECONDS with clang's libFuzzer
#   upgrade     each release that CHANGES.md names, built from the history, then this build on its state
#   api         node's test runner against the sanitized binary (build-asan/cove)
#   host        host mode, and in it the files of tests/api that apply (tests/host/files.txt)
#   heavy       `make test-heavy`: Docker, debootstrap, whole systems, minutes of load
#   the others  node's test runner against the release binary (build/cove)
#
# ONLY=WHAT runs one test file, one unit test (http_parse), or all tests whose names contain
# these words.
set -u
cd "$(dirname "$0")/.." || exit 1

passed=0 failed=0
logs=build/test-logs
STEP_SECONDS=${STEP_SECONDS:-1800} # a step that hangs is a failure, and the others still run
HEAVY_SECONDS=${HEAVY_SECONDS:-7200}
only=" $* "

wanted() {
    [ "$only" = "  " ] || [[ $only == *" $1 "* ]]
}

say() {
    printf '%-42s %s\n' "$1" "$2"
}

# One check that passes or fails.
check() {
    local name=$1 log
    shift
    log="$logs/${name// /-}.log"
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        say "$name" ok
    else
        failed=$((failed + 1))
        say "$name" FAILED
        tail -n 60 "$log" | sed 's/^/    /'
    fi
}

must() {
    "$@" || {
        echo "run-tests: \`$*\` failed; nothing further can be tested"
        echo "$passed passed, $((failed + 1)) failed"
        exit 1
    }
}

unit() {
    local xml=build-asan/meson-logs/testlog.junit.xml good bad
    rm -f "$xml"
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        meson test -C build-asan --no-rebuild --no-suite http --print-errorlogs >"$logs/unit.log" 2>&1
    # the first line is the sum of all cases of all programs
    read -r good bad < <(sed -n 's/^.*<testsuites tests="\([0-9]*\)" errors="\([0-9]*\)" failures="\([0-9]*\)".*$/\1 \2 \3/p' \
        "$xml" | awk '{ bad += $2 + $3; good += $1 - $2 - $3 } END { print good + 0, bad + 0 }')
    [ "$((good + bad))" = 0 ] && bad=1
    passed=$((passed + good)) failed=$((failed + bad))
    say "unit tests with sanitizers" "$good passed, $bad failed"
    [ "$bad" = 0 ] || grep -v '^ *[0-9]*/[0-9]* .* OK ' "$logs/unit.log" | tail -n 100 | sed 's/^/    /'
}

# One folder of node tests. Files run one after another: each starts a daemon,
# and its timing must not depend on another file.
node_tests() {
    local name=$1 dir=$2 log good bad stopped
    log="$logs/${name//[ \/]/-}.log"
    shopt -s nullglob
    local files=("$dir"/*.test.mjs)
    [ ${#files[@]} -gt 0 ] || return 0
    timeout -k 30 "$STEP_SECONDS" node --test --test-concurrency=1 --test-reporter=spec \
        --test-reporter-destination="$log.spec" --test-reporter=tap --test-reporter-destination="$log" "${files[@]}"
    stopped=$?
    good=$(sed -n 's/^# pass \([0-9]*\)$/\1/p' "$log" | tail -1)
    bad=$(sed -n 's/^# fail \([0-9]*\)$/\1/p;s/^# cancelled \([0-9]*\)$/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    good=${good:-0}
    [ "$((good + bad))" = 0 ] && bad=1
    if [ "$stopped" = 124 ] || [ "$stopped" = 137 ]; then
        bad=$((bad + 1))
        echo "    stopped after $STEP_SECONDS seconds, after: $(grep -E '^(not )?ok |^# Subtest' "$log" | tail -1)"
    fi
    passed=$((passed + good)) failed=$((failed + bad))
    say "$name" "$good passed, $bad failed"
    [ "$bad" = 0 ] || sed -n '/failing tests:/,$p' "$log.spec" | head -n 200 | sed 's/^/    /'
}

# One file, one unit test, or tests by their names.
only() {
    local what=$1 unit=${1#test_} files
    unit=${unit%.c} unit=${unit##*/} unit=${unit#test_}
    if [ -f "tests/unit/test_$unit.c" ]; then
        must tools/build.sh build-asan -Db_sanitize=address,undefined -Db_lundef=false
        exec meson test -C build-asan --no-rebuild --print-errorlogs "$unit"
    fi
    if [ -f "$what" ]; then
        exec node --test --test-reporter=spec "$what"
    fi
    mapfile -t files < <(grep -rlF --include='*.test.mjs' --exclude-dir=node_modules -e "$what" tests)
    if [ ${#files[@]} -gt 0 ]; then
        # a name is words, not a pattern
        exec node --test --test-concurrency=1 --test-reporter=spec \
            --test-name-pattern="$(printf %s "$what" | sed 's/[][\\.*^$+?(){}|/]/\\&/g')" "${files[@]}"
    fi
    unit=$(grep -rlF "TEST(${what// /_}" tests/unit | head -1)
    [ -n "$unit" ] && only "$unit"
    echo "run-tests: ONLY='$what' is no file of tests, no unit test, and in no test's name" >&2
    exit 64
}

must tools/build.sh build
[ -n "${ONLY:-}" ] && only "$ONLY"
mkdir -p "$logs"
if wanted checks; then
    check "layers" tools/check_layers.sh
    check "documents match their tables" tools/gen-docs.sh --check
    # shellcheck disable=SC2046
    check "formatting" clang-format --dry-run -Werror $(git ls-files '*.c' '*.h')
fi
wanted smoke && node_tests tests/smoke tests/smoke
if wanted unit || wanted http || wanted api; then
    must tools/build.sh build-asan -Db_sanitize=address,undefined -Db_lundef=false
fi
wanted unit && unit
wanted fuzz && check "fuzzing, ${FUZZ_SECONDS:-3} s each" tools/fuzz.sh "${FUZZ_SECONDS:-3}"
if wanted http; then # the same bytes to our server, sanitized, and to nginx
    ECHO_SERVER=$PWD/build-asan/tests/http/echo_server node_tests tests/http tests/http
fi
wanted api && COVE_BIN=build-asan/cove node_tests "tests/api with sanitizers" tests/api
for dir in isolation network chaos upgrade host; do
    wanted $dir && node_tests "tests/$dir" "tests/$dir"
done
if wanted clients; then
    for dir in tests/clients/*/; do
        [ "$dir" = tests/clients/node_modules/ ] || node_tests "${dir%/}" "${dir%/}"
    done
fi
[[ $only == *" heavy "* ]] && STEP_SECONDS=$HEAVY_SECONDS node_tests tests/heavy tests/heavy

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
