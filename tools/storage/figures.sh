# How fast files come to NFS 4.2 and to the disk beneath it: sluice beside cp and rsync, one after the other and again. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# PROGRAM WHAT TARGET EXPORT: until all is on the server's disk; sluice says nothing sooner.
by() {
  case $1 in
    cp) cp -r "$2" "$3" && sync -f "$3" ;;
    rsync) rsync -a "$2" "$3" && sync -f "$3" ;;
    sluice) send "$2" "nodeb:$4/" ;;
  esac
}
# Sluice also to exports with direct = "no". Two nodes in User Mode Linux move 1 MB in a second: less is enough there.
figures() {
  local round program what ms at to name i size=64M files=500 from=/dev/shm/from ways="nfs/cp nfs/rsync nfs/sluice nfs-cached/sluice disk/cp disk/rsync disk/sluice disk-cached/sluice"
  client 4.2 xfs
  stop
  rm -rf "$nodes" "$exports" /srv/xfs/*
  mkdir -p "$nodes" "$exports" /srv/xfs/{nfs,nfs-cached,disk,disk-cached} $from/tree
  place[b]=/mnt/xfs/nfs place[a]=$from
  cached=-cached two_nodes --export nfs-cached=/mnt/xfs/nfs-cached:rwm --export disk=/srv/xfs/disk:rwm \
    --export disk-cached=/srv/xfs/disk-cached:rwm
  [ "${SLOWER:-1}" = 1 ] || size=8M files=100
  random $size $from/file
  for i in $(seq $files); do random $((4096 + i % 8 * 4096)) $from/tree/"$i"; done
  rm -f "$base"/times-*
  why=
  for round in $(seq "${ROUNDS:-5}"); do
    for what in file tree; do
      for to in $ways; do
        program=${to#*/} to=${to%/*} at=/srv/xfs/$to name=$to
        [[ $to == nfs* ]] && at=/mnt/xfs/$to
        [ "$to" = nfs ] && name=data
        ms=$(ms_of by "$program" $from/$what "$at/" "$name") || why="$program to $to: $(tail -1 "$base/said")"
        diff -rq $from/$what "/srv/xfs/$to/$what" >/dev/null || why=${why:-$program to $to: what arrived differs}
        echo "$ms" >>"$base/times-$what-$to-$program"
        rm -rf "/srv/xfs/$to/$what"
        sync
        echo 3 >/proc/sys/vm/drop_caches
      done
    done
  done
  for what in "file $size" "tree $files"; do
    for to in $ways; do figure "$what ${to/\// by }" "$base/times-${what% *}-${to/\//-}"; done
  done
  took=0
  judge figures
  unset 'place[a]'
  stop
  client_end xfs
}
