#!/usr/bin/env bash
# The files of a bootable container, small enough for machines of the lab: what `bootc install to-disk` of it installs is a system that
# reports itself (image.sh).
#
#   bootable-container.sh OUT.tar REPORT_URL [NAME]
#
# ARCH=aarch64 makes it for machines of that architecture, from what ramdisk-agent/build/ramdisk.sh unpacked for a ramdisk of it.
# Its /usr/bin/bootc is not the real one: bootable-container-bootc takes the same options and refuses all others, writes a GPT with a boot
# loader for UEFI (on x86_64 Debian's signed shim and GRUB, and one for BIOS), and copies the files of the container to the root partition. With BOOTC=none there is no installer.
# Debian packages: those of image.sh, dosfstools and util-linux, shim-signed and grub-efi-amd64-signed.
set -euo pipefail
out=${1:?OUT} url=${2:?REPORT_URL} name=${3:-bootable}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$PATH:/sbin:/usr/sbin
tree=$work/tree
arch=${ARCH:-x86_64}
program() { command -v "$1"; }
libraries() { { ldd "$1" || true; } | { grep -oE '/[^ ]+' || true; }; }
loader=signed bios=grub-bios-setup sysroot=
if [ "$arch" = aarch64 ]; then
  loader=packaged bios='' debian=arm64 sysroot=$here/../../.cache/sysroot-aarch64
  # shellcheck source=../../ramdisk-agent/build/sysroot.sh
  . "$here/../../ramdisk-agent/build/sysroot.sh"
fi
PARTITION=$loader bash "$here/image.sh" "$tree/" "$url" "$name"

mkdir -p "$tree"/{bin,usr/bin,usr/lib/{grub,efi},proc,sys,dev,run,tmp,var,root}
cp "$(program busybox)" "$tree/bin/"
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"; done
for tool in sfdisk mke2fs mkfs.vfat wipefs blkid; do install "$(program "$tool")" "$tree/bin/"; done
[ -z "$bios" ] || install /usr/lib/grub/i386-pc/grub-bios-setup "$tree/bin/"
for tool in sfdisk mke2fs mkfs.vfat wipefs blkid $bios; do
  libraries "$tree/bin/$tool" | while read -r library; do install -D "$(readlink -f "$library")" "$tree${library#"$sysroot"}"; done
done
# GRUB looks for the root file system, and reads the configuration there.
cat > "$work/find.cfg" <<'CFG'
search --no-floppy --label bootc-root --set=root
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
CFG
modules="part_gpt ext2 fat normal linux configfile search search_label"
efi=$tree/usr/lib/efi/EFI
if [ "$arch" = aarch64 ]; then
  mkdir -p "$efi/BOOT"
  # shellcheck disable=SC2086
  grub-mkimage -O arm64-efi -d "$sysroot/usr/lib/grub/arm64-efi" -c "$work/find.cfg" -p /boot/grub -o "$efi/BOOT/BOOTAA64.EFI" $modules
else
  install -D -m 644 /usr/lib/shim/shimx64.efi.signed "$efi/BOOT/BOOTX64.EFI"
  install -m 644 /usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed "$efi/BOOT/grubx64.efi"
  # This GRUB has its prefix in itself.
  install -D -m 644 "$work/find.cfg" "$efi/debian/grub.cfg"
  # shellcheck disable=SC2086
  grub-mkimage -O i386-pc -c "$work/find.cfg" -p /boot/grub -o "$tree/usr/lib/grub/core.img" biosdisk serial $modules
  cp /usr/lib/grub/i386-pc/boot.img "$tree/usr/lib/grub/"
fi
[ "${BOOTC:-}" = none ] || install -m 755 "$here/bootable-container-bootc" "$tree/usr/bin/bootc"
tar -cf "$out" -C "$tree" --owner=0 --group=0 --numeric-owner .
