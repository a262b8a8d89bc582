# The cases of ./dev storage with disks that are slow, far away, or several. See cases.sh.
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
ms_of() { # COMMAND...
  local begun
  begun=$(date +%s%N)
  "$@" >"$base/said" 2>&1 || return 1
  echo $((($(date +%s%N) - begun) / 1000000))
}

# Two exports of one node on two disks, one of them slow, or away: the other's sessions go on.
two_exports() {
  local alone beside away id
  client 4.2 ext4
  stop
  rm -rf "$nodes" "$exports"
  mkdir -p "$nodes" "$exports" /srv/ext4/in
  chmod 777 /srv/ext4/in
  place[b]=/data/exports/b
  two_nodes --export slow=/srv/slow:rwm --export away=/mnt/ext4/in:rwm
  random 16M "$exports/a/f"
  alone=$(ms_of send "$exports/a/f" nodeb:data/1)
  id=$(send --detach "$exports/a/f" nodeb:slow/1 | tail -1)
  sleep 2
  beside=$(ms_of send "$exports/a/f" nodeb:data/2)
  if [ -n "$beside" ] && [ "$beside" -lt $((alone * 4 + 3000)) ]; then
    say beside_slow pass "$beside" "alone $alone ms"
  else
    say beside_slow fail "${beside:-0}" "alone $alone ms: $(tail -1 "$base/said")"
  fi
  run x 120 ended "$id" && cmp "$exports/a/f" /srv/slow/1 || why=${why:-differs}
  say slow_disk "$([ -z "$why" ] && echo pass || echo fail)" "$took" "$why"
  random 8M "$exports/a/g"
  id=$(send --detach --rate 10M --mode fixed "$exports/a/g" nodeb:away/1 | tail -1)
  sleep 2
  server_stop
  sleep 3
  away=$(ms_of send "$exports/a/f" nodeb:data/3)
  if [ -n "$away" ] && [ "$away" -lt $((alone * 4 + 3000)) ]; then
    say beside_away pass "$away" "alone $alone ms"
  else
    say beside_away fail "${away:-0}" "alone $alone ms: $(tail -1 "$base/said")"
  fi
  server_again
  run x 120 ended "$id" && cmp "$exports/a/g" /srv/ext4/in/1 || why=${why:-differs}
  say back_again "$([ -z "$why" ] && echo pass || echo fail)" "$took" "$why"
  stop
  client_end ext4
}

# Each question to the server takes 10 ms more.
slow_names() {
  local i
  client 4.2 ext4
  on_mount ext4
  mkdir -p "$exports/a/names"
  for i in $(seq 200); do random $((i * 100)) "$exports/a/names/$i"; done
  distance 10
  moves slow_names 120 "$exports/a/names" /srv/ext4/in/names send "$exports/a/names" nodeb:data/
  echo x >"$exports/a/names/5"
  moves slow_names_sync 120 "$exports/a/names" /srv/ext4/in/names send --sync --delete "$exports/a/names/" nodeb:data/names/
  distance 0
  stop
  client_end ext4
}

# How a file comes to a RAID 5 of 4 x CHUNK KiB: how many writes, how large, how many of them at a multiple of 1 MiB; and what its disks
# read meanwhile, which they do for parts of stripes.
read_kib() { awk '{n += $3} END {print n / 2}' $(printf '/sys/block/%s/stat ' "${members[@]##*/}"); }
stripes() {
  local i members=() chunk before
  modprobe raid456
  mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
  for i in 0 1 2 3 4; do
    truncate -s 64M "$base/member$i.img"
    members+=("$(losetup --show -f "$base/member$i.img")")
  done
  random 32M "$base/stripes"
  for chunk in 256 1024; do
    mdadm --create /dev/md0 --run --level=5 --raid-devices=5 --chunk=${chunk}K --assume-clean "${members[@]}" >/dev/null 2>&1
    mkfs.ext4 -q /dev/md0
    mkdir -p /srv/md
    mount /dev/md0 /srv/md
    stop
    rm -rf "$nodes" "$exports"
    mkdir -p "$nodes" "$exports/a" /srv/md/in
    place[b]=/srv/md/in
    two_nodes
    cp "$base/stripes" "$exports/a/f"
    sync
    before=$(read_kib)
    echo >/sys/kernel/tracing/trace
    echo "comm ~ \"sluice-*\" || comm ~ \"iou-*\" || comm ~ \"worker*\"" >/sys/kernel/tracing/events/block/block_bio_queue/filter
    echo 1 >/sys/kernel/tracing/events/block/block_bio_queue/enable
    moves "stripe_$((4 * chunk))K" 90 "$exports/a/f" /srv/md/in/f send "$exports/a/f" nodeb:data/f
    echo 0 >/sys/kernel/tracing/events/block/block_bio_queue/enable
    awk -v md="9,0" -v stripe=$((4 * chunk)) '/block_bio_queue/ && $0 ~ "block_bio_queue: " md " W" {
      for (i = 1; i <= NF; ++i) if ($i == "+") {sector = $(i - 1); sectors = $(i + 1)}
      ++n; kib += sectors / 2; if (sectors == 2048) ++whole; if (sectors >= 256) {++long; aligned += sector % 2048 == first % 2048 || !seen; if (!seen) {first = sector; seen = 1}}
    } END {printf "stripe %d KiB: %d writes, %d KiB; of %d of 128 KiB and more %d have 1 MiB, %d begin at a multiple of 1 MiB from the first\n", stripe, n, kib, long, whole, aligned}' /sys/kernel/tracing/trace
    echo "stripe $((4 * chunk)) KiB: the disks read $(($(read_kib) - before)) KiB meanwhile"
    stop
    umount /srv/md
    mdadm --stop /dev/md0 >/dev/null 2>&1
    mdadm --zero-superblock "${members[@]}" 2>/dev/null
  done
}
