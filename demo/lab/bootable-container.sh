#!/usr/bin/env bash
# The files of a bootable container, small enough for machines of the lab: what `bootc install to-disk` of it installs is a system that
# reports itself (image.sh).
#
#   bootable-container.sh OUT.tar REPORT_URL [NAME]
#
# Its /usr/bin/bootc is not the real one: bootable-container-bootc takes the same options and refuses all others, writes a GPT with a boot
# loader for BIOS and for UEFI, and copies the files of the container to the root partition. With BOOTC=none there is no installer.
# Debian packages: those of image.sh, dosfstools and util-linux.
set -euo pipefail
out=${1:?OUT} url=${2:?REPORT_URL} name=${3:-bootable}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$PATH:/sbin:/usr/sbin
tree=$work/tree
PARTITION=packaged bash "$here/image.sh" "$tree/" "$url" "$name"

mkdir -p "$tree"/{bin,usr/bin,usr/lib/grub,proc,sys,dev,run,tmp,var,root}
cp /bin/busybox "$tree/bin/"
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"; done
for tool in sfdisk mke2fs mkfs.vfat wipefs blkid; do install "$(command -v "$tool")" "$tree/bin/"; done
install /usr/lib/grub/i386-pc/grub-bios-setup "$tree/bin/"
for tool in sfdisk mke2fs mkfs.vfat wipefs blkid grub-bios-setup; do
  ldd "$tree/bin/$tool" | { grep -oE '/[^ ]+' || true; } | while read -r library; do install -D "$(readlink -f "$library")" "$tree$library"; done
done
# GRUB looks for the root file system, and reads the configuration there.
cat > "$work/find.cfg" <<'CFG'
search --no-floppy --label bootc-root --set=root
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
CFG
modules="part_gpt ext2 fat normal linux serial configfile search search_label"
# shellcheck disable=SC2086
grub-mkimage -O i386-pc -c "$work/find.cfg" -p /boot/grub -o "$tree/usr/lib/grub/core.img" biosdisk $modules
# shellcheck disable=SC2086
grub-mkimage -O x86_64-efi -c "$work/find.cfg" -p /boot/grub -o "$tree/usr/lib/grub/BOOTX64.EFI" $modules
cp /usr/lib/grub/i386-pc/boot.img "$tree/usr/lib/grub/"
[ "${BOOTC:-}" = none ] || install -m 755 "$here/bootable-container-bootc" "$tree/usr/bin/bootc"
tar -cf "$out" -C "$tree" --owner=0 --group=0 --numeric-owner .
