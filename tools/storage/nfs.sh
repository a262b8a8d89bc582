# The cases of ./dev storage on NFS: node a on a disk of its own, node b on a mount. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# What a transfer may leave behind nowhere: unfinished files, and files that were removed while open.
nothing_left() { # NAME DIRECTORY: waits for who closes late
  local i left
  for ((i = 0; i < 100; ++i)); do
    left=$(find "$2" -name '.*.sluice-part' -o -name '.nfs????????????????????????')
    [ -z "$left" ] && return 0
    sleep 0.1
  done
  say "$1" fail 0 "left behind: $(tr '\n' ' ' <<<"$left" | cut -c1-200)"
  return 1
}
# CASE LIMIT_S RC WORDS COMMAND...: ends with this code, and says these words of why.
refused() {
  local name=$1 limit=$(($2 * ${SLOWER:-1})) rc=$3 words=$4 got begun
  begun=$(date +%s%N)
  timeout -s INT -k 5 "$limit" "${@:5}" >"$base/said" 2>&1
  got=$?
  if [ $got = "$rc" ] && grep -q "$words" "$base/said"; then
    say "$name" pass $((($(date +%s%N) - begun) / 1000000))
  else
    say "$name" fail 0 "ended with $got instead of $rc: $(tail -2 "$base/said" | tr '\n' ' ' | cut -c1-400)"
    last_lines
  fi
}
# Programs, so that `timeout` can run them.
program() { # NAME LINE
  printf '#!/bin/bash\n%s\n' "$2" >"$base/bin/$1"
  chmod +x "$base/bin/$1"
}
make_programs() {
  mkdir -p "$base/bin"
  PATH=$base/bin:$PATH
  program send "exec sluice --node $nodes/a send -q \"\$@\""
  program get "exec sluice --node $nodes/a get -q \"\$@\""
  program paced 'exec send --rate 4M --mode fixed "$@"'
  # ID: of a session of node a, until it has ended; well?
  program ended "sluice --node $nodes/a session events \"\$1\" | tail -1; sluice --node $nodes/a session show \"\$1\" | tee /dev/stderr | grep -q 'state *succeeded'"
}
random() { head -c "$1" /dev/urandom >"$2"; }

# Node b on /mnt/NAME/in.
on_mount() { # NAME
  stop
  rm -rf "$nodes" "$exports"
  mkdir -p "$nodes" "$exports" "/srv/$1/in"
  chmod 777 "/srv/$1/in"
  place[b]=/mnt/$1/in
  two_nodes
}

moves_on_mount() { # PREFIX NAME
  local in=/srv/$2/in i
  random 3M "$exports/a/f"
  moves "$1_send" 90 "$exports/a/f" "$in/f" send "$exports/a/f" nodeb:data/f
  refused "$1_exists" 30 9 "exists; replace it with --overwrite" send "$exports/a/f" nodeb:data/f
  moves "$1_overwrite" 90 "$exports/a/f" "$in/f" send --overwrite "$exports/a/f" nodeb:data/f
  moves "$1_get" 90 "$in/f" "$exports/a/back" get nodeb:data/f "$exports/a/back"
  moves "$1_verify" 90 "$exports/a/f" "$in/v" send --verify --digest sha256 "$exports/a/f" nodeb:data/v
  mkdir -p "$exports/a/many/sub"
  for i in $(seq 30); do random $((i * 120)) "$exports/a/many/$i"; done
  cp -a "$exports/a/many/"{1,2,3} "$exports/a/many/sub/"
  moves "$1_tree" 90 "$exports/a/many" "$in/many" send "$exports/a/many" nodeb:data/
  rm "$exports/a/many/"{7,8,9}
  random 999 "$exports/a/many/10"
  moves "$1_sync" 90 "$exports/a/many" "$in/many" send --sync --delete "$exports/a/many/" nodeb:data/many/
  nothing_left "$1_leftovers" "$in" && say "$1_leftovers" pass 0
}

# Files that were removed while somebody has them open are neither sent nor removed.
silly() { # PREFIX NAME
  local in=/srv/$2/in kept
  exec 9<"/mnt/$2/in/many/20" || return
  rm -f "/mnt/$2/in/many/20"
  kept=$(find "$in/many" -name '.nfs*' -printf '%f\n')
  if [ -z "$kept" ]; then
    say "$1_silly" skip 0 "this client does not rename"
  else
    run x 60 send --sync --delete "$exports/a/many/" nodeb:data/many/
    [ -e "$in/many/$kept" ] || why="$kept was removed"
    [ "$(wc -c <&9)" = 2400 ] || why="who had it open lost it"
    rm -rf "$exports/a/came"
    mkdir "$exports/a/came"
    [ -n "$why" ] || run x 60 get nodeb:data/many "$exports/a/came"
    [ -n "$why" ] || [ ! -e "$exports/a/came/many/$kept" ] || why="$kept was sent"
    sluice_at a ls nodeb:data/many | grep -q '\.nfs' && why="$kept is listed"
    say "$1_silly" "$([ -z "$why" ] && echo pass || echo fail)" 0 "$why"
    refused "$1_silly_rm" 30 16 "client of NFS" sluice --node "$nodes/a" rm -r --yes nodeb:data/many
  fi
  exec 9<&-
}

interrupted() { # PREFIX NAME
  local in=/srv/$2/in
  random 3M "$exports/a/f"
  (sleep 2; kill -9 "$(<"$nodes/b-control.pid")"; sleep 0.5; control b) &
  moves "$1_control_killed" 90 "$exports/a/f" "$in/k" paced "$exports/a/f" nodeb:data/k
  wait $!
  (sleep 2; kill -9 "$(<"$nodes/b-dataplane.pid")"; sleep 0.5; dataplane b) &
  moves "$1_dataplane_killed" 90 "$exports/a/f" "$in/d" paced "$exports/a/f" nodeb:data/d
  wait $!
  (sleep 2; server_stop; sleep 3; server_again) &
  moves "$1_server_restarted" 120 "$exports/a/f" "$in/r" paced "$exports/a/f" nodeb:data/r
  wait $!
  nothing_left "$1_leftovers" "$in"
}

# The daemons end, and what was mounted gets another number: the transfer goes on with what is there.
mounted_again() { # PREFIX NAME VERSION
  local id in=/srv/$2/in begun
  id=$(paced --detach "$exports/a/f" nodeb:data/m | tail -1)
  sleep 3
  begun=$(date +%s%N)
  stop_node b
  client_end "$2"
  mkdir -p /mnt/other
  mount -t tmpfs other /mnt/other
  client "$3" "$2" && dataplane b && control b && attached b 30
  sluice_at a session continue "$id" >/dev/null 2>&1
  if run x 90 ended "$id" && cmp "$exports/a/f" "$in/m"; then
    if grep -hq "begins anew" "$nodes"/?-control.log; then why="it began anew"; fi
  fi
  say "$1_mounted_again" "$([ -z "$why" ] && echo pass || echo fail)" $((($(date +%s%N) - begun) / 1000000)) "$why"
  umount /mnt/other
}

# A file that is changed at the server while it is sent: the client remembers its times.
changed() { # PREFIX NAME
  random 3M "/srv/$2/in/c"
  touch -d '2 days ago' "/srv/$2/in/c"
  (
    while [ ! -e "$exports/a/.c.sluice-part" ]; do sleep 0.1; done
    sleep 1
    head -c 4096 /dev/zero | dd of="/srv/$2/in/c" conv=notrunc bs=4096 2>/dev/null
  ) &
  refused "$1_changed" 60 11 "changed" get --rate 4M --mode fixed nodeb:data/c "$exports/a/c"
  wait $!
}
