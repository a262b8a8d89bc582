# How fast NFS 4.2 takes files: sluice beside cp, rsync and scp, one after the other and again, onto the same mount. See cases.sh.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

sshd_begin() {
  mkdir -p /run/sshd /root/.ssh
  chmod 700 /root/.ssh
  ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
  cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
  ssh-keygen -A >/dev/null
  /usr/sbin/sshd
  ssh -o StrictHostKeyChecking=accept-new 127.0.0.1 true
}
# Until all is on the server's disk: sluice says nothing sooner.
by() { # PROGRAM WHAT TARGET
  case $1 in
    cp) cp -r "$2" "$3" && sync -f "$3" ;;
    rsync) rsync -a "$2" "$3" && sync -f "$3" ;;
    rsync-ssh) rsync -a "$2" "127.0.0.1:$3" && sync -f "$3" ;;
    scp) scp -qr "$2" "127.0.0.1:$3" && sync -f "$3" ;;
    sluice) send "$2" nodeb:data/ ;;
  esac
}
median() { sort -n | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }
figures() { # ROUNDS: 5
  local round program what ms
  client 4.2 xfs
  stop
  rm -rf "$nodes" "$exports" /srv/xfs/*
  mkdir -p "$nodes" "$exports" /srv/xfs/in /dev/shm/from/tree
  place[b]=/mnt/xfs/in place[a]=/dev/shm/from
  two_nodes
  sshd_begin
  random 64M /dev/shm/from/file
  for i in $(seq 500); do random $((4096 + i % 8 * 4096)) "/dev/shm/from/tree/$i"; done
  rm -f "$base"/times-*
  for round in $(seq "${ROUNDS:-5}"); do
    for what in file tree; do
      for program in cp rsync rsync-ssh scp sluice; do
        ms=$(ms_of by $program "/dev/shm/from/$what" /mnt/xfs/in/) || { echo "$program failed: $(tail -1 "$base/said")"; continue; }
        echo "$ms" >>"$base/times-$what-$program"
        diff -rq "/dev/shm/from/$what" "/srv/xfs/in/$what" >/dev/null
        rm -rf "/srv/xfs/in/$what"
        echo 3 >/proc/sys/vm/drop_caches
      done
    done
  done
  for what in file tree; do
    for program in cp rsync rsync-ssh scp sluice; do
      [ -e "$base/times-$what-$program" ] && echo "FIGURE $what $program: median $(median <"$base/times-$what-$program") ms of $(tr '\n' ' ' <"$base/times-$what-$program")"
    done
  done
  say figures pass 0
  unset 'place[a]'
  stop
  client_end xfs
}
