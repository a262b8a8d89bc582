#!/bin/bash
# What `./dev package --try` does with the installed package, as root of a Debian that was booted for it: the node of the
# services and one of another user move files; meanwhile daemons are restarted and the package is installed anew; in the
# end it is removed. Every command is shown. The network is the loopback interface alone.
# SPDX-License-Identifier: Apache-2.0
set -Eeuo pipefail
deb=$(echo /root/sluice_*.deb)
export DEBIAN_FRONTEND=noninteractive

say() { echo; echo "== $*"; }
shown() { echo "+ $*"; "$@"; }
fail() {
  trap - ERR
  echo "FAILED: $*"
  systemctl --no-pager --full -n 20 status sluice-host sluice-dataplane sluice-control sluice-console || true
  exit 1
}
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
must() { "$@" || fail "not so: $*"; }
must_not() { if "$@"; then fail "so, and should not be: $*"; fi; }
as() { runuser -u "$1" -- "${@:2}"; }
pid() { systemctl show --property MainPID --value "$1"; }
active() { systemctl --quiet is-active "$1"; }

[ ! -d /root/before ] || say "first an older package: $(ls /root/before)"
say "installed, and nothing runs before there is a node"
shown dpkg-query -W sluice
shown getent passwd sluice-control sluice-dataplane
shown getent group sluice sluice-dataplane
for unit in sluice-host sluice-dataplane sluice-control; do
  must systemctl --quiet is-enabled $unit
  must_not active $unit
done

say "the node of the services"
shown sluice node setup --yes --name alpha --listen 127.0.0.1:7400 --address 127.0.0.1/8
shown systemctl start sluice-host sluice-dataplane sluice-control
for unit in sluice-host sluice-dataplane sluice-control; do must active $unit; done
shown ls -ld /etc/sluice /etc/sluice/identity /etc/sluice/run /run/sluice /var/lib/sluice /srv/sluice
shown ls -l /run/sluice
shown cat /proc/sys/net/core/rmem_max || true # a container may not have it
systemctl show -p StatusText sluice-control sluice-dataplane
for unit in sluice-control sluice-dataplane; do
  shown systemctl show -p User -p MainPID -p ActiveState -p Type $unit
  must [ "$(stat -c %U "/proc/$(pid $unit)")" = $unit ]
done
shown grep -E '^Cap(Eff|Bnd|Amb)|^NoNewPrivs|^Seccomp:' "/proc/$(pid sluice-dataplane)/status"
shown grep 'locked memory' "/proc/$(pid sluice-dataplane)/limits"

say "another node, of another user, without a service"
ip address add 127.0.0.2/8 dev lo
useradd -m bob
as bob sluice node init /home/bob/n --name beta --listen 127.0.0.2:7400 --address 127.0.0.2/8 --udp-port-base 48000 \
  --export data=/home/bob:rw >/dev/null
systemd-run --quiet --uid=bob --unit=beta-dataplane /usr/sbin/sluice-dataplane --node /home/bob/n
systemd-run --quiet --uid=bob --unit=beta-control /usr/sbin/sluice-control --node /home/bob/n
for _ in $(seq 300); do as bob sluice --node /home/bob/n node show | grep 'dataplane    attached' >/dev/null && break; sleep 0.2; done
as bob sluice --node /home/bob/n node show --certificate | sluice node trust beta - --address 127.0.0.2:7400
sluice node show --certificate | as bob sluice --node /home/bob/n node trust alpha - --address 127.0.0.1:7400

say "who is in the group sluice may use it, and nobody else"
useradd -m -G sluice alice
useradd -m eve
must_not as eve sluice session list
as alice dd if=/dev/urandom of=/srv/sluice/run42 bs=1M count=64 status=none
chmod 644 /srv/sluice/run42
shown as alice sluice send /srv/sluice/run42 beta:data/run42
shown cmp /srv/sluice/run42 /home/bob/run42
shown as alice sluice get beta:data/run42 /srv/sluice/back
shown cmp /srv/sluice/run42 /srv/sluice/back
shown ls -l /srv/sluice

say "users send as themselves, once that is switched on"
must_not active sluice-users.socket
groupadd senders
useradd -m -G senders carol
shown gpasswd -a sluice-control senders
sed -i '/^\[control\]/a users_group = "senders"' /etc/sluice/node.toml
shown systemctl enable --now sluice-users.socket
shown systemctl restart sluice-control
chmod o+x /srv/sluice
install -d -o carol -g carol -m 700 /srv/sluice/carol
as carol dd if=/dev/urandom of=/srv/sluice/carol/own bs=1M count=8 status=none
shown as carol sluice send /srv/sluice/carol/own beta:data/of-carol
shown cmp /srv/sluice/carol/own /home/bob/of-carol
shown as carol sluice get beta:data/run42 /srv/sluice/carol/back
shown cmp /srv/sluice/run42 /srv/sluice/carol/back
must [ "$(stat -c %U:%G /srv/sluice/carol/back)" = carol:carol ]
must_not as alice sluice send /srv/sluice/carol/own beta:data/stolen
must_not as eve sluice session list
shown grep -E '^Cap(Eff|Bnd|Amb)|^NoNewPrivs|^Seccomp:' "/proc/$(pid sluice-users)/status"

# A session that takes long; what is done to its daemons meanwhile must not end it.
session_with() {
  local name=$1 id
  shift
  id=$(as alice sluice send --detach --mode fixed --rate 100M /srv/sluice/run42 "beta:data/$name" | grep -o '[0-9a-f]\{32\}')
  for _ in $(seq 300); do
    as alice sluice session show "$id" --json | grep '"state":"transferring"' >/dev/null && break
    sleep 0.1
  done
  "$@"
  as alice sluice session list | tail -n1
  shown as alice sluice session wait "$id" 2>/dev/null
  shown cmp /srv/sluice/run42 "/home/bob/$name"
}

say "a session outlives a restart of either daemon"
session_with restarted1 shown systemctl restart sluice-control
session_with restarted2 shown systemctl restart sluice-dataplane

say "and the package installed anew: what runs is restarted"
before="$(pid sluice-control) $(pid sluice-dataplane)"
ids() { as alice sluice session list --json | grep -o '"id":"[0-9a-f]*"' | sort; }
known=$(ids)
session_with upgraded shown dpkg -i "$deb"
shown dpkg-query -W sluice
# The journal of before is read: each of its sessions is still known.
must [ -z "$(comm -23 <(echo "$known") <(ids))" ]
must [ "$(ids | wc -l)" -gt "$(echo "$known" | wc -l)" ]
after="$(pid sluice-control) $(pid sluice-dataplane)"
echo "control and dataplane were $before, are $after"
must [ "${before% *}" != "${after% *}" ]
must [ "${before#* }" != "${after#* }" ]

say "a daemon that is killed comes back; one that was stopped stays so over an upgrade"
kill -9 "$(pid sluice-control)"
for _ in $(seq 100); do active sluice-control && break; sleep 0.2; done
must active sluice-control
systemctl stop sluice-control
dpkg -i "$deb" >/dev/null
must_not active sluice-control
must active sluice-dataplane
systemctl start sluice-control

say "a wrong configuration is not tried again and again"
cp -p /etc/sluice/node.toml /root/node.toml
echo '[nonsense]' >>/etc/sluice/node.toml
must_not systemctl restart sluice-control
must [ "$(systemctl show -p NRestarts --value sluice-control)" = 0 ]
cp -p /root/node.toml /etc/sluice/node.toml
systemctl reset-failed sluice-control
systemctl start sluice-control

say "the audit log is rotated, and nothing of it is lost"
lines() { cat /var/lib/sluice/audit.ndjson* | wc -l; }
had=$(lines)
shown logrotate -f /etc/logrotate.d/sluice
as alice sluice send /srv/sluice/run42 beta:data/rotated >/dev/null 2>&1
shown ls -l /var/lib/sluice
must [ "$(lines)" -eq $((had + 2)) ]
must [ "$(wc -l </var/lib/sluice/audit.ndjson)" -eq 2 ]

say "the console, once somebody wants it"
must_not systemctl --quiet is-enabled sluice-console
must_not active sluice-console
systemctl start sluice-console sluice-console.socket # without its key neither does
must_not active sluice-console
must_not active sluice-console.socket
shown sluice console setup --user sluice-console
shown systemctl restart sluice-control
shown systemctl enable --now sluice-console
must active sluice-console
must [ "$(stat -c %U "/proc/$(pid sluice-console)")" = sluice-console ]
shown ls -la /var/lib/sluice-console
must_not as alice ls /var/lib/sluice-console
must_not as eve sluice console open
install -m 644 /root/trial_console.py /srv/trial_console.py # /root is root's
asks() { as "$1" /usr/bin/python3 /srv/trial_console.py "${@:2}"; }
shown asks alice --link "$(as alice sluice console open)" node names events doctor
must_not asks carol --link "$(as carol sluice console open)" --path data names # which she may pass, and not read
shown asks carol --link "$(as carol sluice console open)" --path data/carol node names # by sluice-users
shown as alice sluice console sign-ins
sluice-console --help >/dev/null # as root, who could leave compiled files
shown grep -E '^Cap(Eff|Bnd|Amb)|^NoNewPrivs|^Seccomp:' "/proc/$(pid sluice-console)/status"
rss() { sed -n 's/^VmRSS:[[:space:]]*//p' "/proc/$(pid "$1")/status"; }
echo "memory of the console: $(rss sluice-console)"

say "the console behind a proxy: its socket is the proxy's alone"
cat >/etc/sluice/console.toml <<'END'
listen = "systemd"
origins = ["https://console.example"]
proxy_header = "X-Remote-User"
[proxy_users]
"alice@example.org" = "alice"
END
useradd -m -G sluice-proxy proxy1
shown systemctl stop sluice-console # systemd starts no socket of a service that runs
shown systemctl enable --now sluice-console.socket sluice-console
must active sluice-console
shown ls -l /run/sluice-console.sock
shown asks proxy1 --proxied alice@example.org node names events
must_not asks proxy1 --proxied eve@example.org node
must_not asks alice --proxied alice@example.org node
shown systemctl stop sluice-console
shown asks proxy1 --proxied alice@example.org node # its socket starts it
must active sluice-console

say "what protects the services"
for unit in sluice-control sluice-dataplane sluice-host sluice-users sluice-console; do shown systemd-analyze security --no-pager $unit | tail -n1; done
shown sluice doctor || true

say "removed: the node stays; purged: it is gone, and what was received stays"
shown apt-get -qq -o Dpkg::Use-Pty=0 remove -y sluice
must_not active sluice-control
must_not active sluice-dataplane
must_not active sluice-console
must_not active sluice-console.socket
must [ -f /etc/sluice/identity/key.pem ]
must [ -f /var/lib/sluice-console/key.pem ]
must [ -f /var/lib/sluice/journal.sqlite ]
shown dpkg -i "$deb"
shown systemctl start sluice-dataplane sluice-control
shown as alice sluice session list
shown apt-get -qq -o Dpkg::Use-Pty=0 purge -y sluice
must [ ! -e /etc/sluice ]
must [ ! -e /var/lib/sluice ]
must [ ! -e /var/lib/sluice-console ]
must [ -z "$(find /usr -path '*/sluice*' -not -path '*/python3/*' -print -quit)" ]
must [ -f /srv/sluice/run42 ]
must [ -z "$(systemctl list-unit-files --no-legend 'sluice*' || true)" ]
echo
echo "the trial is over, all is well"
