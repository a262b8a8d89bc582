# The cases of ./dev storage with disks that are slow, full, far away, or of another kind. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

slow_disk() { # NAME MIB MS: each read and write takes so long
  truncate -s "$2M" "$base/$1.img"
  loop[$1]=$(losetup --show -f "$base/$1.img")
  echo "0 $(($2 * 2048)) delay ${loop[$1]} 0 0" | dmsetup create "$1"
  mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 "/dev/mapper/$1"
  mkdir -p "/srv/$1"
  mount "/dev/mapper/$1" "/srv/$1"
  delay "$1" "$2" "$3"
}
delay() { # NAME MIB MS
  dmsetup suspend "$1"
  echo "0 $(($2 * 2048)) delay ${loop[$1]} 0 $3" | dmsetup reload "$1"
  dmsetup resume "$1"
}
# NAME BYTES_PER_S PID: what this process may write there; max: without a limit.
limit() {
  local group=/sys/fs/cgroup/slow
  mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
  echo +io >/sys/fs/cgroup/cgroup.subtree_control
  mkdir -p $group
  echo "$(dmsetup info -c --noheadings --separator : -o major,minor "$1") wbps=$2" >$group/io.max
  echo "$3" >$group/cgroup.procs
}
ms_of() { # COMMAND...
  local begun
  begun=$(date +%s%N)
  "$@" >"$base/said" 2>&1 || return 1
  echo $((($(date +%s%N) - begun) / 1000000))
}
median() { sort -n | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }
# NAME FILE: of lines of milliseconds.
figure() { echo "FIGURE $1: median $(median <"$2") ms of $(sort -n "$2" | tr '\n' ' ')"; }
ended_not() { ! sluice_at a session show "$1" | grep -q 'state *\(succeeded\|failed\)'; }

# One node, five exports on four disks: a slow one, one that is full, one whose server is away (written directly and by way of the page
# cache), and a fast one, whose sessions the others must not hold up. All arrive once what held them is over.
many_disks() {
  local name round times=$base/times
  declare -A id
  client 4.2 ext4
  stop
  rm -rf "$nodes" "$exports"
  mkdir -p "$nodes" "$exports/a" /srv/ext4/{in,cached} /srv/xfs/fast
  place[b]=/srv/xfs/fast
  cached=cached two_nodes --export slow=/srv/slow:rwm --export full=/srv/plain:rwm --export away=/mnt/ext4/in:rwm \
    --export cached=/mnt/ext4/cached:rwm
  random 8M "$exports/a/f"
  random 64M "$exports/a/slow" # eleven minutes: longer than all rounds
  rm -f "$times"-*
  for round in $(seq "${ROUNDS:-5}"); do ms_of send --overwrite "$exports/a/f" nodeb:data/f >>"$times-alone"; done
  limit slow 100000 "$(<"$nodes/b-dataplane.pid")"
  why=
  id[slow]=$(begin send "$exports/a/slow" nodeb:slow/f)
  for name in full away cached; do id[$name]=$(begin slowly "$exports/a/f" nodeb:$name/f); done
  for name in full away cached; do await 60 "some of $name is there" some_done "${id[$name]}"; done
  fill plain
  server_stop
  await_words 60 "its session says that the disk is full" "${id[full]}" "became full\|[Nn]o space"
  for name in away cached; do await 60 "the session to $name is interrupted" is_interrupted "${id[$name]}"; done
  for round in $(seq "${ROUNDS:-5}"); do ms_of send --overwrite "$exports/a/f" nodeb:data/f >>"$times-beside"; done
  for name in slow full away cached; do ended_not "${id[$name]}" || why="the session to $name had ended: $(sluice_at a session show "${id[$name]}" | grep state)"; done
  figure "8 MiB to a disk, alone" "$times-alone"
  figure "the same beside a slow, a full and a hung disk" "$times-beside"
  # How much longer they take is a figure only: here all share one processor. ./dev lab exports measures it on the host.
  [ "$(wc -l <"$times-beside")" = "${ROUNDS:-5}" ] || why="${why:-a session to the fast disk failed}"
  judge beside_others "$(median <"$times-beside")"
  rm -f /srv/plain/filler
  server_again
  limit slow max "$(<"$nodes/b-dataplane.pid")"
  sluice_at a session continue "${id[full]}" >/dev/null 2>&1
  moves slow_ends 120 "$exports/a/slow" /srv/slow/f ended "${id[slow]}"
  moves full_ends 120 "$exports/a/f" /srv/plain/f ended "${id[full]}"
  moves away_ends 120 "$exports/a/f" /srv/ext4/in/f ended "${id[away]}"
  moves cached_ends 120 "$exports/a/f" /srv/ext4/cached/f ended "${id[cached]}"
  stop
  client_end ext4
  rm -f /srv/{slow,plain,xfs/fast,ext4/in,ext4/cached}/f
}

# A file system that takes neither O_DIRECT nor space ahead.
plain_disk() {
  local in=/srv/plain/in
  on_disk /srv/plain
  random 3M "$exports/a/f"
  moves plain_send 90 "$exports/a/f" $in/f send --verify "$exports/a/f" nodeb:data/f
  cut_short plain_dataplane_killed d killed dataplane
  nothing_left plain_leftovers $in
  stop
}
on_disk() { # DIRECTORY
  stop
  rm -rf "$nodes" "$exports"
  mkdir -p "$nodes" "$exports/a" "$1/in"
  place[b]=$1/in
  two_nodes
}

# Names are slow: each question to the server, or each read and write of the disk, takes 10 ms more.
small_files() {
  local i
  mkdir -p "$exports/a/names"
  for i in $(seq 200); do random $((i * 100)) "$exports/a/names/$i"; done
}
slow_names() { # PREFIX IN
  small_files
  moves "$1" 120 "$exports/a/names" "$2/names" send "$exports/a/names" nodeb:data/
  echo x >"$exports/a/names/5"
  moves "$1_sync" 120 "$exports/a/names" "$2/names" send --sync --delete "$exports/a/names/" nodeb:data/names/
  stop
}
slow_server() {
  client 4.2 ext4
  on_mount ext4
  distance 10
  slow_names far_server /srv/ext4/in
  distance 0
  client_end ext4
}
slow_metadata() {
  on_disk /srv/slow
  delay slow 256 10
  slow_names slow_metadata /srv/slow/in
  delay slow 256 0
}
