# The cases of ./dev storage in which a server of NFS refuses, forgets, or is away. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# The server takes root for nobody.
squashed() {
  exportfs -u 127.0.0.0/8:/srv/ext4
  serve ext4 root_squash,no_subtree_check,sync
  client 4.2 ext4
  on_mount ext4
  random 1M "$exports/a/f"
  moves squash_open 30 "$exports/a/f" /srv/ext4/in/f send "$exports/a/f" nodeb:data/f
  chmod 755 /srv/ext4/in
  refused squash_closed 30 16 "root_squash" send "$exports/a/f" nodeb:data/g
  install -m600 "$exports/a/f" /srv/ext4/in/secret
  refused squash_source 30 7 "root_squash" get nodeb:data/secret "$exports/a/secret"
  stop
  client_end ext4
  exportfs -u 127.0.0.0/8:/srv/ext4
  serve ext4 no_root_squash,no_subtree_check,sync
}

# NFS 3 without locks at the server.
locks() {
  client 3 ext4 nolock
  on_mount ext4
  random 1M "$exports/a/f"
  moves locks_local 30 "$exports/a/f" /srv/ext4/in/l send "$exports/a/f" nodeb:data/l
  stop
  client_end ext4
}

# A server that has just started gives no new locks for a while. A session waits for one, and says so.
late_locks() {
  local id
  server_stop
  locks_after 60
  server_again
  client 3 ext4
  on_mount ext4
  random 1M "$exports/a/f"
  why=
  id=$(begin send "$exports/a/f" nodeb:data/late)
  await_words 30 "the session names what it waits for" "$id" "has let a call wait"
  judge late_locks_said
  moves late_locks 60 "$exports/a/f" /srv/ext4/in/late ended "$id"
  stop
  client_end ext4
  server_stop
  locks_after $locks_s
  server_again
}

# A soft mount gives up: calls fail that the server may have done, or does later.
soft() { # VERSION
  local id in=/srv/ext4/in
  client "$1" ext4 soft,timeo=10,retrans=1
  on_mount ext4
  random 2M "$exports/a/f"
  why=
  id=$(begin slowly "$exports/a/f" "nodeb:data/s$1")
  await 60 "some of it is there" some_done "$id"
  server_stop
  await_words 60 "the session names the server's silence" "$id" "Input/output error\|does not answer\|let a call wait\|timed out"
  judge "soft_$1_said"
  server_again
  await 60 "the server answers" stat -f "/mnt/ext4"
  sluice_at a session continue "$id" >/dev/null 2>&1
  moves "soft_$1" 120 "$exports/a/f" "$in/s$1" ended "$id"
  nothing_left "soft_$1_leftovers" "$in"
  stop
  client_end ext4
}

# The directory is another one at the server, under the same name.
stale() {
  client 4.2 ext4
  on_mount ext4
  random 1M "$exports/a/f"
  rm -rf /srv/ext4/in
  mkdir -m777 /srv/ext4/in
  refused stale 60 16 "does not know it any more\|is not the directory that it was" send "$exports/a/f" nodeb:data/z
  stop
  client_end ext4
}

# The server's clock and the node's differ: what is the same stays the same.
clocks() { # HOURS
  # Only the time of day: timers and the times of files are not moved (as in tools/e2e/faults_test.py).
  local preload=/opt/sluice/bin/sluice_timerfd.so:/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 i
  client 4.2 ext4
  on_mount ext4
  stop_part b control
  LD_PRELOAD=$preload FAKETIME="$1h" FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 control b
  attached b 30
  mkdir -p "$exports/a/t"
  for i in 1 2 3; do random 100K "$exports/a/t/$i"; done
  moves "clock_$1" 60 "$exports/a/t" /srv/ext4/in/t send "$exports/a/t" nodeb:data/
  if run x 60 sluice --node "$nodes/a" send --sync "$exports/a/t/" nodeb:data/t/; then
    [ "$(stat -c %Y "$exports/a/t/2")" = "$(stat -c %Y /srv/ext4/in/t/2)" ] || why="the time is another"
    tail -3 "$base/said"
  fi
  judge "clock_$1_sync" "$took"
  moves "clock_$1_get" 60 /srv/ext4/in/t "$exports/a/back/t" get --mkdir nodeb:data/t "$exports/a/back/"
  stop
  rm -rf /srv/ext4/in/t
  client_end ext4
}

# Space runs out at the server, where none could be taken ahead (NFS 3), and somebody makes some.
full() {
  local id
  client 3 small
  on_mount small
  random 3M "$exports/a/f"
  why=
  id=$(begin slowly "$exports/a/f" nodeb:data/w)
  await 60 "some of it is there" some_done "$id"
  fill small
  await_words 60 "the session says that the disk is full" "$id" "became full\|[Nn]o space"
  judge full_said
  rm /srv/small/filler
  sluice_at a session continue "$id" >/dev/null 2>&1
  moves full 120 "$exports/a/f" /srv/small/in/w ended "$id"
  refused full_before 30 10 "needs" send memory:4G nodeb:data/x
  stop
  client_end small
}
