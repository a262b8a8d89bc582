#!/bin/bash
# The cases of ./dev cards: two nodes, a and b, on a device each. In the guest, and on a host with cards of its own. From the caller:
#   NODES        where tools/vm/nodes.sh lies; none: /nodes.sh
#   BASE         an empty directory with room for 500 MB
#   DEVICES      the two devices, with a blank between; none: the PCI cards that lspci lists, which are bound to vfio-pci
#   MTU, MEMORY (hugepages, no-huge), MEMORY_MIB
#   WORKERS      the numbers of workers to try, the first for most cases
#   CASES        all; some (of a device whose driver is tried whole on another one); short
#   MONITOR      a directory in which a file is handed to QEMU; none: nobody can take a link down
#   NO_LINK      why a link is not taken down
#   JOIN         a command that joins the two devices once both nodes have started
# SPDX-License-Identifier: Apache-2.0
mtu=${MTU:-9000} which=${CASES:-all} memory_mib=${MEMORY_MIB:-1024}
read -ra workers <<<"${WORKERS:-1}"
base=${BASE:-/data} nodes=${BASE:-/data}/nodes exports=${BASE:-/data}/exports
if [ -n "${DEVICES:-}" ]; then read -ra devices <<<"$DEVICES"; else mapfile -t devices < <(lspci -D | awk '/Ethernet/{print $1}'); fi
# shellcheck source=tools/vm/nodes.sh
. "${NODES:-/nodes.sh}"
# A card of Mellanox's stays with the kernel's driver.
is_bound() { is_card "$1" && [[ $(readlink "/sys/bus/pci/devices/${1%%,*}/driver") != */mlx?_core ]]; }
is_card() { [[ $1 =~ ^([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] ]]; }

monitor() { # to QEMU, which the host hands it to
  echo "$*" >"$MONITOR/monitor.new"
  mv "$MONITOR/monitor.new" "$MONITOR/monitor"
  while [ -e "$MONITOR/monitor" ]; do sleep 0.05; done
}
start() { start_both && ${JOIN:-true}; }
memory=(--memory "${MEMORY:-hugepages}" --memory-mib "$memory_mib")
pair() { # WORKERS: both nodes on their devices
  fresh
  init a "${devices[0]}" 7400 --address 10.77.0.1/24 "${memory[@]}" --mtu "$mtu" --workers "$1" &&
    init b "${devices[1]}" 7401 --address 10.77.0.2/24 "${memory[@]}" --mtu "$mtu" --workers "$1" && trust && start
}
told() { # what the dataplanes said of their devices, and counted
  local node
  for node in a b; do
    grep -h "serving device\|device .*: driver\|: using that\|: using the smaller" "$nodes/$node-dataplane.log"
    echo "$node:$(counters $node)"
  done
}
started() { # CASE BEGUN_NS WELL
  local ms=$((($(date +%s%N) - $2) / 1000000))
  if [ "$3" = 0 ]; then
    say "$1" pass $ms
  else
    say "$1" fail $ms "$(tail -qn1 $nodes/?-dataplane.log | tr '\n' ' ' | cut -c1-300)"
  fi
  return "$3"
}
slow() { # CASE NAME: at a rate that leaves time for what happens meanwhile
  moves "$1" 120 "$exports/a/f" "$exports/b/$2" sluice --node $nodes/a send -q --rate 20M --mode fixed "$exports/a/f" "nodeb:data/$2"
}

# ---- both on devices ---------------------------------------------------------------------------------

both_directions() { # SUFFIX SIZE [options]: names send$1 and get$1
  head -c "$2" /dev/urandom >"$exports/a/big"
  moves "send$1" 150 "$exports/a/big" "$exports/b/big" sluice --node $nodes/a send -q "${@:3}" "$exports/a/big" nodeb:data/big
  moves "get$1" 150 "$exports/b/big" "$exports/a/back" sluice --node $nodes/a get -q "${@:3}" nodeb:data/big "$exports/a/back"
  rm -f "$exports"/*/big "$exports/a/back"
}
tree() {
  local i
  mkdir -p "$exports/a/many"
  for i in $(seq 100); do head -c $((i * 300)) /dev/urandom >"$exports/a/many/$i"; done
  moves tree 60 "$exports/a/many" "$exports/b/many" sluice --node $nodes/a send -q "$exports/a/many" nodeb:data/
}
paced() {
  head -c 12M /dev/urandom >"$exports/a/f"
  slow paced paced
}
link_down() {
  [ -n "${MONITOR:-}" ] || NO_LINK="nobody here can take the link down"
  [ -z "${NO_LINK:-}" ] || { say link_down skip 0 "$NO_LINK"; return; }
  (sleep 2; monitor set_link card0 off; sleep 3; monitor set_link card0 on) &
  slow link_down link
  wait $!
}
killed() { # NODE
  (sleep 2; kill -9 "$(<"$nodes/$1-dataplane.pid")"; sleep 0.5; dataplane "$1"; attached "$1" 90 && ${JOIN:-true}) &
  slow "killed_$1" "killed_$1"
  wait $!
}
control_killed() {
  (sleep 2; kill -9 "$(<"$nodes/b-control.pid")"; sleep 0.5; control b) &
  slow killed_control killed_control
  wait $!
}
# IPv6 between nodes that are configured with another MTU each.
other_mtu() {
  local begun
  begun=$(date +%s%N)
  fresh
  init a "${devices[0]}" 7400 --address6 fd77::1/64 "${memory[@]}" --mtu "$mtu" &&
    init b "${devices[1]}" 7401 --address6 fd77::2/64 "${memory[@]}" --mtu 1500 && trust && start
  started start_ip6_1500 "$begun" $? && both_directions _ip6_1500 4M
  told
}

for device in "${devices[@]}"; do
  is_bound "$device" || continue
  modprobe vfio-pci
  HUGEPAGES_MIB=$((2 * memory_mib)) DEVICE=$device GROUP=root sluice-host || { say bind fail 0 "$device: not bound to vfio-pci"; exit 1; }
done
begun=$(date +%s%N)
pair "${workers[0]}"
if started start "$begun" $?; then
  both_directions "" 16M
  tree
  paced
  if [ "$which" != short ]; then
    link_down
    killed b
  fi
  if [ "$which" = all ]; then
    killed a
    control_killed
  fi
fi
told
if [ "$which" = all ]; then
  for number in "${workers[@]:1}"; do
    begun=$(date +%s%N)
    pair "$number"
    started "start_$number" "$begun" $? && both_directions "_$number" 8M --lanes 4
    told
  done
  other_mtu
fi

# ---- a card beside sockets of the kernel -------------------------------------------------------------

if [ "$which" = all ] && is_bound "${devices[1]}"; then
  fresh
  card=${devices[1]%%,*}
  echo >"/sys/bus/pci/devices/$card/driver_override"
  echo "$card" >/sys/bus/pci/drivers/vfio-pci/unbind
  echo "$card" >/sys/bus/pci/drivers_probe
  udevadm settle
  sleep 1
  interface=$(find "/sys/bus/pci/devices/$card/" -maxdepth 3 -path '*/net/*' -printf '%f\n' | head -1)
  ip link set "$interface" up mtu "$mtu"
  ip addr add 10.77.0.2/24 dev "$interface"
  begun=$(date +%s%N)
  init a "${devices[0]}" 7400 --address 10.77.0.1/24 "${memory[@]}" --mtu "$mtu"
  init b udp 7401 --address 10.77.0.2/24
  trust
  start
  started start_sockets "$begun" $? && both_directions _sockets 8M
fi
stop
