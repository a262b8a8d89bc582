#!/bin/bash
# The guest's init: runs the scripts that the host puts into /host/in, one after the other, until it finds /host/in/poweroff. The machine ends with it.
# SPDX-License-Identifier: Apache-2.0
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -o remount,rw /
mountpoint -q /proc || mount -t proc proc /proc
mountpoint -q /sys || mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /host /data
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
hostname guest
ip link set lo up
ulimit -l unlimited
ulimit -n 65536
/usr/lib/systemd/systemd-udevd --daemon 2>/dev/null
if [ -e /dev/ubdb ]; then # User Mode Linux: tools/vm/user.py
  scratch=/dev/ubdb
  share=$(sed 's/.* host=\([^ ]*\).*/\1/' /proc/cmdline)
  mount -t hostfs -o "$share" host /host || exit
else
  udevadm trigger --action=add
  udevadm settle --timeout=20
  scratch=/dev/vdb
  modprobe 9pnet_virtio
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none host /host || exit
fi
mke2fs -q -F -t ext4 -E lazy_itable_init=1,lazy_journal_init=1 $scratch && mount $scratch /data
cut -d' ' -f1 /proc/uptime >/host/out/up
while :; do
  for script in /host/in/*.sh; do
    [ -e "$script" ] || continue
    name=$(basename "$script" .sh)
    cp "$script" "/tmp/$name.sh"
    rm -f "$script"
    bash "/tmp/$name.sh" >"/host/out/$name.log" 2>&1 </dev/null
    echo $? >"/host/out/$name.rc.new"
    mv "/host/out/$name.rc.new" "/host/out/$name.rc"
  done
  if [ -e /host/in/poweroff ]; then
    sync
    exit
  fi
  sleep 0.2
done
