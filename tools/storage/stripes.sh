# How files come to a RAID 5 in ./dev storage, past the page cache and by way of it: how many writes, and what the disks read meanwhile, which
# they do for stripes that are written in part. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
members=()

raid() { # CHUNK_KIB: of 5 disks, with ext4, at /srv/md
  local i
  modprobe raid456
  for i in 0 1 2 3 4; do
    [ -n "${members[i]}" ] && continue
    truncate -s 64M "$base/member$i.img"
    members[i]=$(losetup --show -f "$base/member$i.img")
  done
  mdadm --create /dev/md0 --run --level=5 --raid-devices=5 --chunk="$1K" --assume-clean "${members[@]}" >/dev/null 2>&1
  mkfs.ext4 -q /dev/md0
  mkdir -p /srv/md
  mount /dev/md0 /srv/md
}
raid_end() {
  umount /srv/md
  mdadm --stop /dev/md0 >/dev/null 2>&1
  mdadm --zero-superblock "${members[@]}" 2>/dev/null
}
# What all disks of it read or wrote, and the writes that came to the RAID.
read_kib() { awk '{n += $3} END {print n / 2}' $(printf '/sys/block/%s/stat ' "${members[@]##*/}"); }
writes() { awk '{print $5}' /sys/block/md0/stat; }

# STRIPE_KIB EXPORT
stripe() {
  local read wrote
  read=$(read_kib) wrote=$(writes)
  run x 90 send "$exports/a/f" "nodeb:$2/f"
  read=$(($(read_kib) - read)) wrote=$(($(writes) - wrote))
  [ -n "$why" ] || cmp "$exports/a/f" "/srv/md/$2/f" || why="what arrived differs"
  judge "stripe_$1K_$2" "$took"
  echo "FIGURE 32 MiB to RAID 5 with stripes of $1 KiB, $2: $wrote writes, its disks read $read KiB"
  rm "/srv/md/$2/f"
}
stripes() {
  local chunk round direct
  random 32M "$base/stripes"
  for chunk in 64 256 1024; do
    raid $chunk
    stop
    rm -rf "$nodes" "$exports"
    mkdir -p "$nodes" "$exports/a" /srv/md/{direct,cached}
    place[b]=/srv/md
    # A guest moves 1 MB in a second, so the sync that is due by then would cut stripes that are larger.
    lag_ms=60000 cached=cached two_nodes --export direct=/srv/md/direct:rwm --export cached=/srv/md/cached:rwm
    cp "$base/stripes" "$exports/a/f"
    sync
    for round in $(seq "${ROUNDS:-5}"); do
      for direct in direct cached; do stripe $((4 * chunk)) $direct; done
    done
    stop
    raid_end
  done
}
