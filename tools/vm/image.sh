#!/bin/bash
# image.sh DIR: a small Debian for the guests of ./dev cards and ./dev storage, as DIR/root, DIR/vmlinuz and DIR/initrd.img. Needs root and
# the package archive.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
dir=$1
packages=(
  linux-image-amd64 udev kmod iproute2 iputils-ping ethtool pciutils procps util-linux diffutils zstd initramfs-tools dpdk
  librte-net-e1000-23 librte-net-vmxnet3-23 librte-net-virtio23 librte-net-af-packet23 librte-net-memif23
  librte-bus-pci23 librte-bus-vdev23 librte-mempool-ring23 librte-ethdev23 librte-eal23
  libgrpc++1.51 libprotobuf32 libprometheus-cpp-pull1.0 libprometheus-cpp-core1.0 libseccomp2 libspdlog1.10 libsqlite3-0
  libssl3 libcap-ng0 libhwloc15 libipsec-mb1 libisal2 liburing2 libfmt9 libabsl20220623
  nfs-kernel-server nfs-common rpcbind xfsprogs btrfs-progs dmsetup mdadm rsync openssh-server openssh-client psmisc libfaketime fuse3
)
rm -rf "$dir/root" "$dir/vmlinuz" "$dir/initrd.img"
mkdir -p "$dir"
mmdebstrap --quiet --variant=minbase --include="$(IFS=, && echo "${packages[*]}")" \
  --aptopt='Apt::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d"; echo MODULES=most > "$1/etc/initramfs-tools/conf.d/modules"' \
  bookworm "$dir/root" http://deb.debian.org/debian
cp "$dir"/root/boot/vmlinuz-* "$dir/vmlinuz"
cp "$dir"/root/boot/initrd.img-* "$dir/initrd.img"
rm -rf "$dir"/root/boot/* "$dir"/root/var/cache/apt/* "$dir"/root/var/lib/apt/lists/*
