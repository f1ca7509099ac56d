#!/usr/bin/env bash
# Builds the partition image of a Debian with the programs of GRUB, which ironic-python-agent runs to make it bootable. Root.
#
#   debian-root.sh OUT.raw|OUT.qcow2 REPORT_URL NAME
#
# Its kernel and its ramdisk are those of demo/lab/image.sh, so it reports when it boots. It has no configuration of GRUB.
# The packages are unpacked once, in .cache/debian-root. The script also writes OUT.sha256.
# Debian packages: mmdebstrap, and those of demo/lab/image.sh.
set -euo pipefail
out=${1:?OUT} url=${2:?REPORT_URL} name=${3:?NAME}
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../../.." && pwd)
cache=$project/.cache/debian-root
packages=grub2-common,grub-pc-bin,grub-efi-amd64-bin,efibootmgr,dash,coreutils,sed,grep,mawk,mount,util-linux,gettext-base,libc-bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sum=$(echo "$packages" | sha256sum | cut -c1-12)
if [ ! -d "$cache-$sum" ]; then
  # Unpacked only: what runs needs none of the packages' scripts.
  mmdebstrap --quiet --variant=extract --mode=root --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$cache-new"
  mv "$cache-new" "$cache-$sum"
fi
cp -a "$cache-$sum" "$work/root"
PARTITION=bare bash "$project/demo/lab/image.sh" "$work/root/" "$url" "$name"
mkdir -p "$work/root"/{proc,sys,dev,run,tmp,boot/grub,bin}
[ -e "$work/root/bin/sh" ] || ln -s dash "$work/root/bin/sh"
[ -e "$work/root/usr/bin/awk" ] || ln -s mawk "$work/root/usr/bin/awk"
printf 'GRUB_TIMEOUT=0\nGRUB_TERMINAL=console\n' >> "$work/root/etc/default/grub"
chroot "$work/root" /sbin/ldconfig
uuid=$(sed -n 's/^UUID=\([^ ]*\) .*/\1/p' "$work/root/etc/fstab")
truncate -s 224M "$work/root.raw"
PATH=$PATH:/usr/sbin mke2fs -q -t ext4 -U "$uuid" -L debian-root -d "$work/root" "$work/root.raw"
case $out in
  *.qcow2) qemu-img convert -f raw -O qcow2 -c "$work/root.raw" "$out" ;;
  *) cp --sparse=always "$work/root.raw" "$out" ;;
esac
sha256sum "$out" | cut -d' ' -f1 > "$out.sha256"
