#!/bin/bash
# The cases of ./dev storage, in its guest. From the caller:
#   LIB          where the other scripts lie; none: /
#   KINDS        what to try: nfs4.2, nfs4.1, nfs3, trouble, disks, stripes, figures
#   ROUNDS       of each figure; none: 5
# SPDX-License-Identifier: Apache-2.0
base=/data nodes=/data/nodes exports=/data/exports
for part in nodes server nfs trouble disks stripes figures; do . "${LIB:-}/$part.sh"; done

# `lag_ms`: of node b's syncs, if not its own.
# `cached`: how the paths of those exports of node b end that are written by way of the page cache.
two_nodes() { # [options of node b]
  init a udp 7400 --address 127.0.0.1/8 --udp-port-base 47000
  init b udp 7401 --address 127.0.0.2/8 --udp-port-base 48000 "$@"
  # So that no case waits a minute until a session without progress is interrupted.
  sed -i 's/^# stall_timeout_s = .*/stall_timeout_s = 10/' "$nodes"/?/node.toml
  [ -z "$lag_ms" ] || sed -i "s/^# sync_lag_ms = .*/sync_lag_ms = $lag_ms/" "$nodes/b/node.toml"
  [ -z "$cached" ] || sed -i "/^path = .*$cached\"/s/\$/\ndirect = \"no\"/" "$nodes/b/node.toml"
  trust
  start_both || { say start fail 0 "$(tail -qn1 "$nodes"/?-*.log | tr '\n' ' ' | cut -c1-400)"; return 1; }
}
on_nfs() { # VERSION FILE_SYSTEM
  client "$1" "$2" || { say "nfs$1" fail 0 "cannot be mounted"; return; }
  on_mount "$2" || return
  moves_on_mount "nfs$1" "$2"
  silly "nfs$1" "$2"
  interrupted "nfs$1" "$2"
  changed "nfs$1" "$2"
  mounted_again "nfs$1" "$2" "$1"
  stop
  client_end "$2"
  rm -rf "/srv/$2/in"
}

make_programs
# Once: the guest runs this for one kind after the other.
if [ ! -e /srv/small ]; then
  mkdir -p "$nodes" "$exports"
  modprobe loop max_loop=16
  ip addr add 127.0.0.2/8 dev lo
  disk ext4 ext4 1024
  disk xfs xfs 1024
  disk small ext4 32
  server_begin
  for name in ext4 xfs small; do serve $name no_root_squash,no_subtree_check,sync; done
fi
for kind in $KINDS; do
  case $kind in
    nfs4.2) on_nfs 4.2 xfs ;;
    nfs4.1) on_nfs 4.1 ext4 ;;
    nfs3) on_nfs 3 ext4 ;;
    trouble)
      squashed
      locks
      late_locks
      soft 4.2
      soft 3
      stale
      clocks +48
      clocks -2
      full
      ;;
    disks)
      slow_disk slow 256 0
      disk plain minix 24
      many_disks
      plain_disk
      slow_server
      slow_metadata
      ;;
    stripes) stripes ;;
    figures) figures ;;
  esac
done
