# Two nodes, a and b, and what a case is: for scripts that run in a guest (machine.py), or on this host. A line
# "CASE NAME pass|fail|skip MS WHY" for each case. From who includes it:
#   SLOWER                 all limits are so many times as long; none: 1
#   base, nodes, exports   an empty directory, and two in it: the nodes' folders, and what they export
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
say() { echo "CASE $1 $2 $3 ${*:4}"; }
judge() { say "$1" "$([ -z "$why" ] && echo pass || echo fail)" "${2:-0}" "$why"; } # CASE [MS]: a pass where $why is empty
# LIMIT_S WHAT COMMAND...: waits until the command ends well. If it does not in that time, $why says what was waited for.
await() {
  local limit=$(($1 * ${SLOWER:-1})) begun=$SECONDS
  until "${@:3}" >/dev/null 2>&1; do
    if ((SECONDS - begun >= limit)); then
      why="waited $limit s until $2"
      return 1
    fi
    sleep 0.1
  done
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
start_both() {
  local node
  for node in a b; do
    dataplane $node && control $node && attached $node 90 || return 1
  done
}
stop_part() { # NODE PART
  local pid
  [ -e "$nodes/$1-$2.pid" ] || return
  pid=$(<"$nodes/$1-$2.pid")
  kill "$pid" 2>/dev/null && tail --pid="$pid" -f /dev/null
  rm -f "$nodes/$1-$2.pid"
}
stop_node() { # NODE
  stop_part "$1" control
  stop_part "$1" dataplane
}
stop() {
  local node part
  for part in control dataplane; do
    for node in a b; do stop_part $node $part; done
  done
}
declare -A place # of a node's export "data", if that is not in $exports
init() { # NODE DEVICE PORT [options]
  mkdir -p "$exports/$1"
  sluice node init "$nodes/$1" --name "node$1" --listen "127.0.0.1:$3" --device "$2" \
    --export "data=${place[$1]:-$exports/$1}:rwm" "${@:4}" >/dev/null
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
counters() { sluice_at "$1" counters | awk '$2 != 0 && $1 ~ /drop|missed|joined|steered|unresolved|false|lost/ {printf " %s=%s", $1, $2}'; }
last_lines() {
  local node part
  for node in a b; do
    for part in dataplane control; do
      echo "--- $node-$part"
      tail -6 "$nodes/$node-$part.log"
    done
    echo "--- $node counters:$(counters $node)"
  done
}
# CASE LIMIT_S COMMAND...: it must end well in that time.
run() {
  local name=$1 limit=$(($2 * ${SLOWER:-1})) begun rc
  begun=$(date +%s%N)
  timeout -s INT -k 5 "$limit" "${@:3}" >"$base/said" 2>&1
  rc=$?
  took=$((($(date +%s%N) - begun) / 1000000))
  why=$([ $rc = 0 ] || { [ $rc = 124 ] && echo "no end in $limit s:$(counters a) | b:$(counters b)"; tail -2 "$base/said" | tr '\n' ' ' | cut -c1-300; })
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
