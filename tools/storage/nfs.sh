# The cases of ./dev storage on NFS: node a on a disk of its own, node b on a mount. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# A transfer may leave neither unfinished files behind, nor files that were removed while open. Some are closed late.
left_in() { find "$1" -name '.*.sluice-part' -o -name '.nfs????????????????????????'; }
none_left_in() { [ -z "$(left_in "$1")" ]; }
nothing_left() { # CASE DIRECTORY
  why=
  await 10 "nothing is left behind" none_left_in "$2" || why="left behind: $(left_in "$2" | tr '\n' ' ' | cut -c1-200)"
  judge "$1"
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
  program slowly 'exec send --rate 1M --mode fixed "$@"'
  # ID: of a session of node a, until it has ended; well?
  program ended "sluice --node $nodes/a session events \"\$1\" | tail -1; sluice --node $nodes/a session show \"\$1\" | tee /dev/stderr | grep -q 'state *succeeded'"
}
random() { head -c "$1" /dev/urandom >"$2"; }
# A session of node a that goes on by itself: its id.
begin() { "$1" --detach "${@:2}" | tail -1; }
some_done() { sluice_at a session show "$1" --json | grep -q '"bytes_done":[1-9]'; }
# ID WORDS: either node says that of the session.
says() {
  sluice_at a session show "$1" >"$base/said" 2>&1
  sluice_at b session show "$1" >>"$base/said" 2>&1
  grep -q "$2" "$base/said"
}

# LIMIT_S WHAT ID WORDS: waits until either node says these words; else $why has what they say.
await_words() {
  await "$1" "$2" says "$3" "$4" && return
  why+=": $(grep 'state\|error\|waiting' "$base/said" | tr -s ' \n' ' ' | cut -c1-400)"
  return 1
}

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
  nothing_left "$1_leftovers" "$in"
  directory_moves "$1_mv" "$in"
}

# A directory gets another name, and that of one that is there goes into it: nothing is replaced.
directory_moves() { # CASE DIRECTORY
  why=
  mkdir -p "$2/there"
  sluice_at a mv nodeb:data/many nodeb:data/other >"$base/said" 2>&1 &&
    sluice_at a mv nodeb:data/other nodeb:data/there >>"$base/said" 2>&1 &&
    sluice_at a mv nodeb:data/there/other nodeb:data/many >>"$base/said" 2>&1 || why=$(tail -1 "$base/said")
  diff -r "$exports/a/many" "$2/many" >"$base/said" 2>&1 || why=${why:-$(head -1 "$base/said")}
  judge "$1"
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
    judge "$1_silly" "$took"
    refused "$1_silly_rm" 30 16 "client of NFS" sluice --node "$nodes/a" rm -r --yes nodeb:data/many
  fi
  exec 9<&-
}

# CASE FILE COMMAND...: a transfer, and the command once some of it is there. The rest arrives after it.
cut_short() {
  local id
  why=
  id=$(begin paced "$exports/a/f" "nodeb:data/$2")
  if await 60 "some of $2 is there" some_done "$id" && "${@:3}"; then
    moves "$1" 120 "$exports/a/f" "$in/$2" ended "$id"
  else
    say "$1" fail 0 "$why"
    last_lines
  fi
}
killed() { # PART: of node b, and started again
  local pid
  pid=$(<"$nodes/b-$1.pid")
  kill -9 "$pid"
  tail --pid="$pid" -f /dev/null
  "$1" b
}
is_interrupted() { grep -q "session ${1:0:8}.*is interrupted" "$nodes"/?-control.log; } # ID
server_away() { # until the session, $id of cut_short, is interrupted
  server_stop
  await 60 "the session is interrupted" is_interrupted "$id"
  local noticed=$?
  server_again
  return $noticed
}
interrupted() { # PREFIX NAME
  local in=/srv/$2/in
  random 3M "$exports/a/f"
  cut_short "$1_control_killed" k killed control
  cut_short "$1_dataplane_killed" d killed dataplane
  cut_short "$1_server_restarted" r server_away
  nothing_left "$1_leftovers_again" "$in"
}

# The daemons end, and what was mounted gets another number: the transfer, $id of cut_short, goes on with what is there.
again() { # NAME VERSION
  stop_node b
  client_end "$1"
  mkdir -p /mnt/other
  mount -t tmpfs other /mnt/other
  client "$2" "$1" && dataplane b && control b && attached b 30 || return
  sluice_at a session continue "$id" >/dev/null 2>&1
  return 0
}
mounted_again() { # PREFIX NAME VERSION
  local in=/srv/$2/in
  cut_short "$1_mounted_again" m again "$2" "$3"
  why=$(grep -h "begins anew" "$nodes"/?-control.log | head -1)
  judge "$1_nothing_anew"
  umount /mnt/other
}

# A file that is changed at the server while it is sent: the client remembers its times.
changed() { # PREFIX NAME
  random 3M "/srv/$2/in/c"
  touch -d '2 days ago' "/srv/$2/in/c"
  (
    await 60 "the file is on its way" test -e "$exports/a/.c.sluice-part"
    head -c 4096 /dev/zero | dd of="/srv/$2/in/c" conv=notrunc bs=4096 2>/dev/null
  ) &
  refused "$1_changed" 60 11 "changed" get --rate 4M --mode fixed nodeb:data/c "$exports/a/c"
  wait $!
}
