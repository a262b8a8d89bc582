#!/bin/bash
# What `./dev package --rpm --try` does with the installed .rpm, as root of a Debian 11 that was booted for it: a system whose
# C library (2.31) is older than the programs want. The services, confined as they are, and the node of a user whom only a
# name service of that system knows move files. Every command is shown.
# SPDX-License-Identifier: Apache-2.0
set -Eeuo pipefail

say() { echo; echo "== $*"; }
shown() { echo "+ $*"; "$@"; }
fail() {
  trap - ERR
  echo "FAILED: $*"
  systemctl --no-pager --full -n 20 status sluice-host sluice-dataplane sluice-control sluice-users || true
  exit 1
}
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
must() { "$@" || fail "not so: $*"; }
must_not() { if "$@"; then fail "so, and should not be: $*"; fi; }
as() { setpriv --reuid "$1" --regid "$1" --init-groups -- "${@:2}"; }
pid() { systemctl show --property MainPID --value "$1"; }

say "what the system has, and what its scripts have made"
shown /lib/x86_64-linux-gnu/libc.so.6 | head -n1
shown getent passwd sluice-control sluice-dataplane
for unit in sluice-host sluice-dataplane sluice-control; do must systemctl --quiet is-enabled $unit; done

say "the node of the services"
shown sluice node setup --yes --name alpha --listen 127.0.0.1:7400 --address 127.0.0.1/8
shown systemctl start sluice-host sluice-dataplane sluice-control
for unit in sluice-control sluice-dataplane; do
  must [ "$(stat -c %U "/proc/$(pid $unit)")" = $unit ]
  must [ "$(cat "/proc/$(pid $unit)/comm")" = "${unit:0:15}" ] # the kernel keeps so many characters
  shown grep -E '^Cap(Eff|Bnd|Amb)|^NoNewPrivs|^Seccomp:' "/proc/$(pid $unit)/status"
done
must_not grep -q '/lib/x86_64-linux-gnu/libc' "/proc/$(pid sluice-control)/maps"

say "a user whom a name service of the system knows has a node"
mkdir -p /var/lib/extrausers /home/asmith
echo 'asmith:x:4711:4711::/home/asmith:/bin/sh' >/var/lib/extrausers/passwd
echo 'asmith:x:4711:' >/var/lib/extrausers/group
sed -i -E 's/^(passwd|group):.*/\1: files extrausers systemd/' /etc/nsswitch.conf
chown 4711:4711 /home/asmith
ip address add 127.0.0.2/8 dev lo
as 4711 sluice node init /home/asmith/n --name beta --listen 127.0.0.2:7400 --address 127.0.0.2/8 --udp-port-base 48000 \
  --export data=/home/asmith:rw >/dev/null
systemd-run --quiet --uid=4711 --gid=4711 --unit=beta-dataplane /usr/sbin/sluice-dataplane --node /home/asmith/n
systemd-run --quiet --uid=4711 --gid=4711 --unit=beta-control /usr/sbin/sluice-control --node /home/asmith/n
for _ in $(seq 300); do as 4711 sluice --node /home/asmith/n node show | grep 'dataplane    attached' >/dev/null && break; sleep 0.2; done
as 4711 sluice --node /home/asmith/n node show --certificate | sluice node trust beta - --address 127.0.0.2:7400
sluice node show --certificate | as 4711 sluice --node /home/asmith/n node trust alpha - --address 127.0.0.1:7400
head -c 64M /dev/urandom >/srv/sluice/run42
chmod 644 /srv/sluice/run42
shown sluice send /srv/sluice/run42 beta:data/run42
shown cmp /srv/sluice/run42 /home/asmith/run42
shown sluice get beta:data/run42 /srv/sluice/back
shown cmp /srv/sluice/run42 /srv/sluice/back

say "and sends as himself"
# sluice-control has to be of the group that its socket is given to.
echo 'senders:x:4712:asmith,sluice-control' >>/var/lib/extrausers/group
sed -i '/^\[control\]/a users_group = "senders"' /etc/sluice/node.toml
shown systemctl enable --now sluice-users.socket
shown systemctl restart sluice-control
install -d -o 4711 -g 4711 -m 700 /srv/sluice/asmith
chmod o+x /srv/sluice
as 4711 cp /home/asmith/run42 /srv/sluice/asmith/own
shown as 4711 sluice send /srv/sluice/asmith/own beta:data/of-asmith
shown cmp /srv/sluice/asmith/own /home/asmith/of-asmith
must [ "$(stat -c %u "/proc/$(pid sluice-users)")" = 0 ]

say "no call that a sandbox did not allow"
must_not grep -r 'the sandbox did not allow' /var/log
must_not sh -c "journalctl -b --no-pager | grep 'the sandbox did not allow'"
shown sluice doctor || true
echo
echo "the trial is over, all is well"
