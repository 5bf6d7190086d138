#!/bin/sh
# files.sh - bench-files, with an nginx beside the daemon that serves and receives the same
# files; without nginx installed only our own half is measured.
set -eu
build=${COVE_BUILD:-build}
dir=$(mktemp -d /tmp/cove-bench-nginx.XXXXXX)
pid=
clean_up() {
    trap - EXIT INT TERM
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || :; }
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

if command -v nginx >/dev/null; then
    mkdir "$dir/root" "$dir/tmp"
    chmod 755 "$dir"
    cat >"$dir/nginx.conf" <<CONF
user root;
daemon off;
pid $dir/pid;
error_log $dir/log;
worker_processes 1;
events { }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    client_body_temp_path $dir/tmp;
    proxy_temp_path $dir/tmp;
    fastcgi_temp_path $dir/tmp;
    uwsgi_temp_path $dir/tmp;
    scgi_temp_path $dir/tmp;
    client_max_body_size 0;
    server {
        listen unix:$dir/unused;
        listen 127.0.0.1:${BENCH_NGINX_PORT:-7979};
        root $dir/root;
        dav_methods PUT;
    }
}
CONF
    nginx -c "$dir/nginx.conf" 2>/dev/null &
    pid=$!
    BENCH_NGINX_URL=http://127.0.0.1:${BENCH_NGINX_PORT:-7979}
    BENCH_NGINX_ROOT=$dir/root
    export BENCH_NGINX_URL BENCH_NGINX_ROOT
    tries=0
    until [ -s "$dir/pid" ] || [ $tries -gt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
fi
"$build/bench/bench-files"
