#!/bin/sh
# ports.sh - bench-ports, with two nginxes on the host: a server as it also runs in the sandbox, and a proxy
# before it that keeps its connections. Without nginx installed nothing is measured.
set -eu
build=${COVE_BUILD:-build}
dir=$(mktemp -d /tmp/cove-bench-ports.XXXXXX)
pids=
clean_up() {
    trap - EXIT INT TERM
    for p in $pids; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# conf DIR SERVER-LINES: one line, so that it also fits into a JSON string
conf() {
    printf 'daemon off; pid %s/pid; error_log %s/log; worker_processes 1; events { } ' "$1" "$1"
    printf 'http { access_log off; sendfile on; keepalive_requests 100000000; keepalive_timeout 60; '
    for t in client_body fastcgi proxy scgi uwsgi; do printf '%s_temp_path %s; ' $t "$1/tmp"; done
    printf '%s }' "$2"
}
server() {
    printf 'server { listen 127.0.0.1:%s; root %s/root; location = / { return 200 hello; } }' "$1" "$2"
}
if command -v nginx >/dev/null; then
    up=${BENCH_NGINX_PORT:-7979} proxy=$((${BENCH_NGINX_PORT:-7979} + 1))
    chmod 755 "$dir"
    mkdir -p "$dir/a/root" "$dir/a/tmp" "$dir/b/tmp"
    chmod -R 777 "$dir/a" "$dir/b"
    head -c 1048576 /dev/zero >"$dir/a/root/big"
    conf "$dir/a" "$(server "$up" "$dir/a")" >"$dir/a/conf"
    conf "$dir/b" "upstream u { server 127.0.0.1:$up; keepalive 32; } server { listen 127.0.0.1:$proxy; location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection \"\"; } }" >"$dir/b/conf"
    nginx -c "$dir/a/conf" 2>/dev/null &
    pids=$!
    nginx -c "$dir/b/conf" 2>/dev/null &
    pids="$pids $!"
    tries=0
    until { [ -s "$dir/a/pid" ] && [ -s "$dir/b/pid" ]; } || [ $tries -gt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    BENCH_NGINX_URL=http://127.0.0.1:$proxy
    BENCH_NGINX_CONF=$(conf /tmp "$(server 8000 /tmp)")
    export BENCH_NGINX_URL BENCH_NGINX_CONF
fi
"$build/bench/bench-ports"
