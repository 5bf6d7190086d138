#!/bin/sh
# install-deps.sh - installs the Debian 12 packages that Cove needs, and makes its system user.
#
# Idempotent, and silent when nothing is missing. `--test` adds packages that only
# tests and benchmarks need, `--heavy` those and what tests/heavy needs. Each package has its
# reason in docs/dependencies.md.
set -eu

# to build it
build="gcc make meson ninja-build pkg-config libc6-dev libjansson-dev libwslay-dev libsqlite3-dev
       libseccomp-dev libmnl-dev libnftables-dev libssl-dev libcurl4-openssl-dev zlib1g-dev libarchive-dev libzstd-dev libcmocka-dev
       musl-tools"
# to run it: the disk stage, and the contents of the default template
run="btrfs-progs util-linux iproute2 procps passwd bash sudo python3 python-is-python3 python3-pip python3-venv git curl
     ncurses-bin ca-certificates debootstrap"
# to test it: a second compiler, nginx to compare strictness with, the tools of the benchmarks
test="nftables clang clang-format clang-tidy libclang-rt-14-dev nginx-light bubblewrap crun runc strace
      zstd tmux less iptables"

# to test it beside other programs that change the host's firewall
heavy="docker.io ufw firewalld"

want="$build $run"
case "${1:-}" in
--heavy) want="$want $heavy" && set -- --test ;;
esac
if [ "${1:-}" = --test ]; then
    want="$want $test"
    # any node from 18.19 on, also one that is not Debian's
    command -v node >/dev/null || want="$want nodejs"
    # any vi
    command -v vi >/dev/null || want="$want vim-tiny"
    command -v npm >/dev/null || want="$want npm"
fi

missing=
for p in $want; do
    case "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" in
    installed) ;;
    *) missing="$missing $p" ;;
    esac
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "missing packages, and only root can install them:$missing" >&2
        exit 77
    fi
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # No package starts a service here: Docker's and the firewalls' would change this host's rules.
    rcd=/usr/sbin/policy-rc.d
    if [ ! -e $rcd ]; then
        trap 'rm -f $rcd' EXIT
        printf '#!/bin/sh\nexit 101\n' >$rcd
        chmod 755 $rcd
    fi
    # shellcheck disable=SC2086  # a list of words, on purpose
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

# The unprivileged half of the daemon runs as this user.
if ! getent passwd cove >/dev/null && [ "$(id -u)" = 0 ]; then
    useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin cove
fi

# The published clients that tests/clients runs, as pinned there.
if [ "${1:-}" = --test ]; then
    cd "$(dirname "$0")/../tests/clients"
    if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
        echo "installing the clients of tests/clients"
        npm ci --silent --no-audit --no-fund
        touch node_modules/.package-lock.json
    fi
fi
