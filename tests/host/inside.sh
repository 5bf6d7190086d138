#!/bin/bash
# inside.sh COMMAND... - runs COMMAND as root on a copy of this machine: its files below an overlay
# that is dropped at the end, a network with a loopback only, a user `user` and /workspace as in the
# template `base`. In it host mode is tested: what tests write and listen on stays there.
set -euo pipefail
if [ "${COVE_HOST_INSIDE:-}" = "" ]; then
    exec env COVE_HOST_INSIDE=1 unshare --mount --net --propagation private -- "$0" "$@"
fi
here=$PWD
ip link set lo up
top=/run
mount -t tmpfs tmpfs "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" "$top/root"
root=$top/root
for at in /proc /sys /dev; do
    mount --rbind "$at" "$root$at"
done
for at in /tmp /var/tmp /run; do
    mount -t tmpfs -o mode=1777 tmpfs "$root$at"
done
mkdir -p "$root$here" "$root/workspace" "$root/home/user"
mount --rbind "$here" "$root$here"
grep -q ^user: "$root/etc/passwd" || {
    echo 'user:x:1000:1000::/home/user:/bin/bash' >>"$root/etc/passwd"
    echo 'user:x:1000:' >>"$root/etc/group"
}
chown 1000:1000 "$root/workspace" "$root/home/user"
exec chroot "$root" env -C "$here" "$@"
