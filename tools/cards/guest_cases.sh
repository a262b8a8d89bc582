#!/bin/bash
# The cases of ./dev cards, in the guest: two nodes, a and b, each on a card of its own. A line "CASE NAME pass|fail MS WHY" for
# each. MTU and WORKERS come from the host.
# SPDX-License-Identifier: Apache-2.0
mtu=${MTU:-9000} workers=${WORKERS:-1}
mapfile -t cards < <(lspci -D | awk '/Ethernet/{print $1}')
nodes=/data/nodes exports=/data/exports

say() { echo "CASE $1 $2 $3 ${*:4}"; }
monitor() { # to QEMU, which the host hands it to
  echo "$*" >/host/out/monitor.new
  mv /host/out/monitor.new /host/out/monitor
  while [ -e /host/out/monitor ]; do sleep 0.05; done
}
sluice_at() { sluice --node "$nodes/$1" "${@:2}"; }
dataplane() {
  sluice-dataplane --node "$nodes/$1" 2>>"$nodes/$1-dataplane.log" &
  echo $! >"$nodes/$1-dataplane.pid"
}
control() {
  sluice-control --node "$nodes/$1" 2>>"$nodes/$1-control.log" &
  echo $! >"$nodes/$1-control.pid"
}
attached() { # NODE SECONDS
  local i
  for ((i = 0; i < $2 * 4; ++i)); do
    sluice_at "$1" node show 2>/dev/null | grep -q 'dataplane *attached' && return 0
    kill -0 "$(<"$nodes/$1-dataplane.pid")" 2>/dev/null || return 1
    sleep 0.25
  done
  return 1
}
start() {
  local node
  for node in a b; do dataplane $node && control $node; done
  for node in a b; do attached $node 60 || return 1; done
}
stop() {
  local node part pid
  for part in control dataplane; do
    for node in a b; do
      [ -e "$nodes/$node-$part.pid" ] || continue
      pid=$(<"$nodes/$node-$part.pid")
      kill "$pid" 2>/dev/null && tail --pid="$pid" -f /dev/null
      rm -f "$nodes/$node-$part.pid"
    done
  done
}
init() { # NODE DEVICE ADDRESS PORT [options]
  mkdir -p "$exports/$1"
  sluice node init "$nodes/$1" --name "node$1" --listen "127.0.0.1:$4" --device "$2" --address "$3" \
    --export "data=$exports/$1:rw" "${@:5}" >/dev/null
}
trust() {
  sluice_at b node show --certificate | sluice_at a node trust nodeb - --address 127.0.0.1:7401 >/dev/null
  sluice_at a node show --certificate | sluice_at b node trust nodea - --address 127.0.0.1:7400 >/dev/null
}
fresh() {
  stop
  rm -rf "$nodes" "$exports"
  mkdir -p "$nodes" "$exports"
}
pair() { # WORKERS: both nodes on their cards
  fresh
  local options=(--memory hugepages --memory-mib 1024 --mtu "$mtu" --workers "$1")
  init a "${cards[0]}" 10.77.0.1/24 7400 "${options[@]}" && init b "${cards[1]}" 10.77.0.2/24 7401 "${options[@]}" && trust && start
}
counters() { sluice_at "$1" counters | awk '$2 != 0 && $1 ~ /drop|missed|joined|steered|unresolved|false|lost/ {printf " %s=%s", $1, $2}'; }
last_lines() {
  local node part
  for node in a b; do
    for part in dataplane control; do
      echo "--- $node-$part"
      tail -4 "$nodes/$node-$part.log"
    done
    echo "--- $node counters:$(counters $node)"
  done
}
# CASE LIMIT_S COMMAND...: it must end well in that time.
run() {
  local name=$1 limit=$2 begun rc
  begun=$(date +%s%N)
  timeout -s INT -k 5 "$limit" "${@:3}" >/tmp/said 2>&1
  rc=$?
  took=$((($(date +%s%N) - begun) / 1000000))
  why=$([ $rc = 0 ] || { [ $rc = 124 ] && echo "no end in $limit s:$(counters a) | b:$(counters b)"; tail -2 /tmp/said | tr '\n' ' ' | cut -c1-300; })
  return $rc
}
moves() { # CASE LIMIT_S SOURCE TARGET COMMAND...: and then both hold the same
  if run "$1" "$2" "${@:5}" && diff -rq "$3" "$4" >/dev/null; then
    say "$1" pass "$took"
  else
    say "$1" fail "$took" "${why:-what arrived differs}"
    last_lines
  fi
}
slow() { # CASE SOURCE NAME: at a rate that leaves time for what happens meanwhile
  moves "$1" 120 "$2" "$exports/b/$3" sluice --node $nodes/a send -q --rate 20M --mode fixed "$2" "nodeb:data/$3"
}

# ---- both on cards ---------------------------------------------------------------------------------

both_directions() {
  head -c 32M /dev/urandom >"$exports/a/big"
  moves send 150 "$exports/a/big" "$exports/b/big" sluice --node $nodes/a send -q "$exports/a/big" nodeb:data/big
  moves get 150 "$exports/b/big" "$exports/a/back" sluice --node $nodes/a get -q nodeb:data/big "$exports/a/back"
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
  slow paced "$exports/a/f" paced
}
link_down() {
  (sleep 2; monitor set_link card0 off; sleep 3; monitor set_link card0 on) &
  slow link_down "$exports/a/f" link
  wait $!
}
dataplane_killed() { # NODE
  (sleep 2; kill -9 "$(<"$nodes/$1-dataplane.pid")"; sleep 0.5; dataplane "$1") &
  slow "killed_$1" "$exports/a/f" "killed_$1"
  wait $!
  attached "$1" 30
}

modprobe vfio-pci
for card in "${cards[@]}"; do
  HUGEPAGES_MIB=2048 DEVICE=$card GROUP=root sluice-host || { say bind fail 0 "$card: not bound to vfio-pci"; exit 1; }
done
begun=$(date +%s%N)
if pair 1; then
  say start pass $((($(date +%s%N) - begun) / 1000000))
  grep -h "serving device" $nodes/a-dataplane.log
  both_directions
  tree
  paced
  if [ -z "${SHORT:-}" ]; then
    link_down
    dataplane_killed b
    dataplane_killed a
  fi
  for node in a b; do echo "$node:$(counters $node)"; done
else
  say start fail $((($(date +%s%N) - begun) / 1000000)) "$(tail -qn1 $nodes/?-dataplane.log | tr '\n' ' ' | cut -c1-300)"
fi
if [ "$workers" -gt 1 ]; then
  if pair "$workers"; then
    head -c 32M /dev/urandom >"$exports/a/big"
    moves "workers_$workers" 60 "$exports/a/big" "$exports/b/big" sluice --node $nodes/a send -q --lanes 4 "$exports/a/big" nodeb:data/big
    moves "workers_${workers}_get" 60 "$exports/b/big" "$exports/a/back" sluice --node $nodes/a get -q --lanes 4 nodeb:data/big "$exports/a/back"
    for node in a b; do echo "$node:$(counters $node)"; done
  else
    say "workers_$workers" fail 0 "$(tail -qn1 $nodes/?-dataplane.log | tr '\n' ' ' | cut -c1-300)"
  fi
fi

# ---- a card beside sockets of the kernel -------------------------------------------------------------

if [ -z "${SHORT:-}" ]; then
  fresh
  echo >"/sys/bus/pci/devices/${cards[1]}/driver_override"
  echo "${cards[1]}" >/sys/bus/pci/drivers/vfio-pci/unbind
  echo "${cards[1]}" >/sys/bus/pci/drivers_probe
  udevadm settle
  sleep 1
  interface=$(find "/sys/bus/pci/devices/${cards[1]}/" -maxdepth 3 -path '*/net/*' -printf '%f\n' | head -1)
  ip link set "$interface" up mtu "$mtu"
  ip addr add 10.77.0.2/24 dev "$interface"
  init a "${cards[0]}" 10.77.0.1/24 7400 --memory hugepages --memory-mib 1024 --mtu "$mtu"
  mkdir -p "$exports/b"
  sluice node init $nodes/b --name nodeb --listen 127.0.0.1:7401 --address 10.77.0.2/24 --export "data=$exports/b:rw" >/dev/null
  trust
  if start; then
    head -c 32M /dev/urandom >"$exports/a/big"
    moves sockets 60 "$exports/a/big" "$exports/b/big" sluice --node $nodes/a send -q "$exports/a/big" nodeb:data/big
    moves sockets_get 60 "$exports/b/big" "$exports/a/back" sluice --node $nodes/a get -q nodeb:data/big "$exports/a/back"
  else
    say sockets fail 0 "$(tail -qn1 $nodes/?-dataplane.log | tr '\n' ' ' | cut -c1-300)"
  fi
fi
stop
