# Disks, and the kernel's own server of NFS, in the guest of ./dev storage. Server and client are one kernel, over the loopback.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
leases_s=10 # of NFS 4, and so how long a server that is started again waits for who had files open
locks_s=3    # the same for the locks of NFS 3. Nobody gets a new lock meanwhile, nor one of NFS 4. The kernel's own value is 50 s

disk() { # NAME FILE_SYSTEM MIB: at /srv/NAME
  local option=-q
  [ "$2" = minix ] && option=-3
  truncate -s "$3M" "$base/$1.img"
  loop[$1]=$(losetup --show -f "$base/$1.img")
  "mkfs.$2" $option "${loop[$1]}" >/dev/null
  mkdir -p "/srv/$1"
  mount "${loop[$1]}" "/srv/$1"
}
declare -A loop

serve() { # NAME OPTIONS: /srv/NAME
  exportfs -o "rw,$2" "127.0.0.0/8:/srv/$1"
}
server_begin() {
  mkdir -p /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/rpc_pipefs
  modprobe nfsd
  echo $locks_s >/proc/sys/fs/nfs/nlm_timeout
  locks_after $locks_s
  mount -t nfsd nfsd /proc/fs/nfsd
  mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
  rpcbind -w
  rpc.statd --no-notify
  nfsdcld || true
  echo $leases_s >/proc/fs/nfsd/nfsv4leasetime
  echo $leases_s >/proc/fs/nfsd/nfsv4gracetime
  rpc.mountd
  rpc.nfsd 8
  echo Y >/proc/fs/nfsd/v4_end_grace # nobody has files of before
}
fill() { # NAME: until its disk is full
  dd if=/dev/zero of="/srv/$1/filler" bs=64K 2>/dev/null
  sync -f "/srv/$1"
}
locks_after() { echo "$1" >/proc/sys/fs/nfs/nlm_grace_period; } # SECONDS: of the server's next start
server_stop() { rpc.nfsd 0; }
server_again() { rpc.nfsd 8; }

client() { # VERSION NAME [options]: /srv/NAME at /mnt/NAME
  mkdir -p "/mnt/$2"
  mount -t nfs -o "vers=$1,proto=tcp${3:+,$3}" "127.0.0.1:/srv/$2" "/mnt/$2"
}
client_end() { # NAME
  umount "/mnt/$1" 2>/dev/null || umount -f "/mnt/$1" 2>/dev/null || umount -l "/mnt/$1"
}
# All that goes to the server, and comes from it, takes MS more.
distance() { # MS
  tc qdisc del dev lo root 2>/dev/null
  [ "$1" = 0 ] && return
  tc qdisc add dev lo root handle 1: prio
  tc qdisc add dev lo parent 1:3 handle 30: netem delay "$1ms" limit 100000
  tc filter add dev lo parent 1: protocol ip u32 match ip dport 2049 0xffff flowid 1:3
  tc filter add dev lo parent 1: protocol ip u32 match ip sport 2049 0xffff flowid 1:3
}
