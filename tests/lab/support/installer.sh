#!/usr/bin/env bash
# A stand-in of the installer Anaconda, which Debian does not have: it does what Anaconda does with its boot parameters and a kickstart file.
#
#   installer.sh FOLDER REPORT_URL
#
# FOLDER gets a repository, repo/: .treeinfo, images/pxeboot/vmlinuz and initrd.img, images/install.img, and Packages/system.tar.gz, the
# only package, which liveimg can install too. It is the system of demo/lab/image.sh with curl: it reports to REPORT_URL.
#
# The ramdisk does what dracut's module of Anaconda does (dracut/anaconda-lib.sh, its documentation of boot options): an address by DHCP, the
# kickstart file of inst.ks, then the second stage of inst.stage2 or inst.repo, as .treeinfo says, else images/install.img, else
# LiveOS/squashfs.img. The second stage runs %pre, makes partitions, installs liveimg or url, writes GRUB, runs %post in the new
# system, and reboots. If anything fails, it runs %onerror, and stays. All requests are those of Debian's curl.
# Debian packages: see tests/lab/packages.txt.
set -euo pipefail
out=${1:?FOLDER} url=${2:?REPORT_URL}
project=$(cd "$(dirname "$0")/../../.." && pwd)
cache=$project/.cache/kernel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$PATH:/usr/sbin

# with_programs ROOT PROGRAM...: busybox, and programs with the libraries that they need, below /usr. Busybox's shell prefers its own
# programs, so that others of the same name need their path.
with_programs() {
  local root=$1 program library
  mkdir -p "$root"/{bin,proc,sys,dev,run,tmp,etc,mnt,usr/bin}
  cp /bin/busybox "$root/bin/"
  for program in $(/bin/busybox --list); do [ "$program" = busybox ] || ln -s busybox "$root/bin/$program"; done
  for program in "${@:2}"; do
    program=$(command -v "$program")
    install -D "$program" "$root/usr${program#/usr}"
    ldd "$program" | { grep -oE '/[^ ]+' || true; } | while read -r library; do
      [ -e "$root$library" ] || install -D "$(readlink -f "$library")" "$root$library"
    done
  done
}

repo=$out/repo
mkdir -p "$repo/images/pxeboot" "$repo/Packages" "$repo/repodata"

# The system that is installed.
PARTITION=bare bash "$project/demo/lab/image.sh" "$work/system/" "$url" installed
with_programs "$work/system" curl base64
tar -C "$work/system" --owner=0 --group=0 -czf "$repo/Packages/system.tar.gz" .
echo '<repomd/>' > "$repo/repodata/repomd.xml"
printf '[general]\nfamily = Lab\n\n[stage2]\nmainimage = images/install.img\n' > "$repo/.treeinfo"

version=$(ls "$cache/lib/modules")
cp "$cache/boot/vmlinuz-$version" "$repo/images/pxeboot/vmlinuz"

# The second stage.
stage=$work/stage2
with_programs "$stage" curl mke2fs mkfs.vfat
modules='part_msdos ext2 normal linux configfile serial'
# shellcheck disable=SC2086
grub-mkimage -O i386-pc -p '(hd0,msdos2)/boot/grub' -o "$stage/core.img" biosdisk $modules
# shellcheck disable=SC2086
grub-mkimage -O x86_64-efi -p '(hd0,msdos2)/boot/grub' -o "$stage/BOOTX64.EFI" $modules
cp /usr/lib/grub/i386-pc/boot.img "$stage/"
cat > "$stage/anaconda" <<'ANACONDA'
#!/bin/sh
# anaconda KICKSTART
export PATH=/usr/sbin:/sbin:/usr/bin:/bin
say() { echo "installer: $*"; }
mkdir -p /tmp/ks
# Each section to a file of its own, the other lines to `commands`.
awk 'BEGIN { out = "/tmp/ks/commands"; printf "" > out }
  /^%end/ { out = "/tmp/ks/commands"; next }
  /^%(pre|post|onerror|packages)/ { out = sprintf("/tmp/ks/%s.%02d%s", substr($1, 2), ++n, /--nochroot/ ? ".nochroot" : ""); printf "" > out; next }
  { print > out }' "$1"
sections() { # NAME: runs its scripts
  for script in /tmp/ks/"$1".*; do
    [ -e "$script" ] || continue
    say "running %$1"
    case $1-$script in
      post-*.nochroot) sh "$script" ;;
      post-*) cp "$script" /mnt/sysimage/tmp/ks-script && chroot /mnt/sysimage /bin/sh /tmp/ks-script; rm -f /mnt/sysimage/tmp/ks-script ;;
      *) sh "$script" ;;
    esac
  done
}
fail() {
  say "failed: $*"
  sections onerror
  say "stays as it is"
  while :; do sleep 3600; done
}
sections pre

method='' source='' reboots=
while read -r command words; do
  case $command in
    '' | '#'*) ;;
    liveimg | url) method=$command source=${words##*--url[ =]} ;;
    reboot) reboots=yes ;;
    text | cmdline | lang | keyboard | timezone | selinux | firewall | firstboot | rootpw | zerombr | clearpart | bootloader | autopart) ;;
    *) fail "unknown command: $command" ;;
  esac
done < /tmp/ks/commands
[ -n "$method" ] || fail "no installation source"
if [ "$method" = url ]; then
  ls /tmp/ks/packages.* > /dev/null 2>&1 || fail "no %packages"
  curl -fsS -o /dev/null "${source%/}/repodata/repomd.xml" || fail "no metadata of the repository"
fi

disk=/dev/vda root=/mnt/sysimage
say "writes $disk"
printf 'o\nn\np\n1\n2048\n67583\nt\nef\nn\np\n2\n67584\n\nw\n' | fdisk "$disk" > /dev/null 2>&1
blockdev --rereadpt "$disk"
uuid=$(cat /proc/sys/kernel/random/uuid)
/usr/sbin/mke2fs -q -F -t ext4 -U "$uuid" "${disk}2" && /usr/sbin/mkfs.vfat -F 16 "${disk}1" > /dev/null || fail "no file system"
mkdir -p "$root" && mount -t ext4 "${disk}2" "$root" || fail "the new file system cannot be mounted"
[ "$method" = liveimg ] && image=$source || image=${source%/}/Packages/system.tar.gz
say "fetches $image"
curl -fsS --retry 3 -o "$root/disk.img" "$image" || fail "no image"
case $image in
  *.tar.gz | *.tgz) tar -C "$root" -xzf "$root/disk.img" || fail "the archive cannot be unpacked" ;;
  *.tar) tar -C "$root" -xf "$root/disk.img" || fail "the archive cannot be unpacked" ;;
  *) mkdir /tmp/image && mount -o loop,ro "$root/disk.img" /tmp/image && cp -a /tmp/image/. "$root/" && umount /tmp/image || fail "no file system in the image" ;;
esac
rm -f "$root/disk.img"

echo "UUID=$uuid / ext4 ro 0 1" > "$root/etc/fstab"
arguments=$(sed -n 's/^GRUB_CMDLINE_LINUX="\(.*\)"/\1/p' "$root/etc/default/grub")
kernel=$(cd "$root" && ls boot/vmlinuz-*) ramdisk=$(cd "$root" && ls boot/initrd.img-*)
mkdir -p "$root/boot/grub"
printf 'serial --unit=0\nterminal_output serial\nlinux /%s root=UUID=%s %s\ninitrd /%s\nboot\n' "$kernel" "$uuid" "$arguments" "$ramdisk" > "$root/boot/grub/grub.cfg"
if [ -d /sys/firmware/efi ]; then
  mkdir -p /mnt/esp && mount -t vfat "${disk}1" /mnt/esp && mkdir -p /mnt/esp/EFI/BOOT && cp /BOOTX64.EFI /mnt/esp/EFI/BOOT/ && umount /mnt/esp || fail "no boot loader"
else
  dd if=/boot.img of="$disk" bs=446 count=1 conv=notrunc 2> /dev/null && dd if=/core.img of="$disk" bs=512 seek=1 conv=notrunc 2> /dev/null || fail "no boot loader"
fi
for folder in dev proc sys; do mount --bind "/$folder" "$root/$folder"; done
sections post
for folder in dev proc sys; do umount "$root/$folder"; done
umount "$root"
sync
say "has installed the system"
[ -z "$reboots" ] || reboot -f
while :; do sleep 3600; done
ANACONDA
chmod +x "$stage/anaconda"
mksquashfs "$stage" "$repo/images/install.img" -quiet -no-progress -noappend -all-root -comp gzip

# The ramdisk.
root=$work/initrd
with_programs "$root" curl
for module in virtio_pci virtio_net virtio_blk ext4 vfat nls_cp437 nls_ascii loop squashfs overlay; do
  modprobe -d "$cache" -S "$version" --show-depends "$module" 2> /dev/null | awk '$1 == "insmod" {print $2}' || true
done | awk '!seen[$0]++' | while read -r file; do
  install -D -m 644 "$file" "$root/modules/$(basename "$file")"
  basename "$file" >> "$root/etc/load"
done
cat > "$root/bin/lease" <<'LEASE'
#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr flush dev "$interface"
ip addr add "$ip/${mask:-24}" dev "$interface"
LEASE
cat > "$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs run /run
while read -r file; do insmod "/modules/$file"; done < /etc/load
echo "installer: started with $(cat /proc/cmdline)"
for word in $(cat /proc/cmdline); do
  case $word in inst.ks=*) ks=${word#*=} ;; inst.stage2=*) stage2=${word#*=} ;; inst.repo=*) repo=${word#*=} ;; esac
done
stop() { echo "installer: stops: $*"; while :; do sleep 3600; done; }
fetch() { curl -fsS --globoff --location --retry 3 --retry-connrefused -o "$2" "$1"; }
for interface in $(ls /sys/class/net); do
  [ "$interface" = lo ] && continue
  ip link set "$interface" up; udhcpc -q -n -t 20 -T 1 -i "$interface" -s /bin/lease > /dev/null 2>&1
done
mkdir -p /run/install /run/stage2 /run/upper /run/work /sysroot
fetch "$ks" /run/install/ks.cfg || stop "no kickstart file"
from=${stage2:-$repo}
from=${from%/}
[ -n "$from" ] || stop "no second stage"
main=
fetch "$from/.treeinfo" /run/treeinfo && main=$(awk -F ' *= *' '/^\[/ { section = $0 } section == "[stage2]" && $1 == "mainimage" { print $2 }' /run/treeinfo)
fetch "$from/${main:-images/install.img}" /run/install.img || fetch "$from/LiveOS/squashfs.img" /run/install.img || stop "no second stage"
mount -t tmpfs upper /run/upper && mkdir /run/upper/files /run/upper/work
mount -t squashfs -o loop,ro /run/install.img /run/stage2 || stop "the second stage cannot be mounted"
mount -t overlay overlay -o lowerdir=/run/stage2,upperdir=/run/upper/files,workdir=/run/upper/work /sysroot || stop "no overlay"
for folder in proc sys dev; do mount --bind "/$folder" "/sysroot/$folder"; done
cp /run/install/ks.cfg /sysroot/run/ks.cfg
echo "installer: runs the second stage of $from"
exec chroot /sysroot /anaconda /run/ks.cfg
INIT
chmod +x "$root/init" "$root/bin/lease"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -6 > "$repo/images/pxeboot/initrd.img"
