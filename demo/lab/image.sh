#!/usr/bin/env bash
# A small image that boots from BIOS and from UEFI: the operating system that the tests deploy. It is one of a whole disk.
#
#   image.sh OUT.raw|OUT.qcow2 REPORT_URL [NAME]
#   PARTITION=… image.sh FOLDER/ REPORT_URL [NAME]      the files of the partition image
#
# When it boots, it POSTs to REPORT_URL, as text: image=NAME, its MAC addresses, its firmware, the partitions that it sees, and every file
# of its config drive in base64; then it keeps running. It writes `image: started` to the console, also without DHCP. The script also writes
# OUT.sha256. The disk has an MBR with one FAT partition (type EF).
# If SIGNED is set, its boot loaders for UEFI are Debian's signed shim and GRUB, which Secure Boot accepts; they are in shim-signed and
# grub-efi-amd64-signed.
# With PARTITION=folder, packaged, signed, bls or bare it is a partition image: an ext4 file system with kernel and ramdisk. `folder` has GRUB for
# UEFI in /boot/efi, `packaged` that of Debian's package, `signed` those of Debian's signed ones; these have GRUB's configuration. `bls` has
# that of Fedora, which reads the entries of the Boot Loader Specification. `bare` has neither, only /etc/default/grub. The system also
# reports its root partition and its /etc/fstab.
# If MDADM is the path of mdadm's program, the image starts arrays of disks first, and reports those that it sees.
# ARCH=aarch64 makes an image for machines of that architecture, which boots from UEFI. Its kernel and programs are those that
# ramdisk-agent/build/ramdisk.sh unpacked for a ramdisk of it.
# If BLS is set, GRUB's configuration for a BIOS is as Fedora's: the command blscfg, and entries of the Boot Loader Specification.
# Debian packages: see tests/lab/packages.txt (busybox-static cpio kmod grub-pc-bin grub-efi-amd64-bin grub-common mtools fdisk qemu-utils, and e2fsprogs).
set -euo pipefail
out=${1:?OUT} url=${2:?REPORT_URL} name=${3:-lab}
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
arch=${ARCH:-x86_64}
cache=$project/.cache/kernel sysroot= console=ttyS0 efi=BOOTX64.EFI grub_efi=x86_64-efi grub_program=grubx64.efi serial=1
if [ "$arch" = aarch64 ]; then
  cache=$project/.cache/kernel-aarch64 sysroot=$project/.cache/sysroot-aarch64 console=ttyAMA0 efi=BOOTAA64.EFI grub_efi=arm64-efi grub_program=grubaa64.efi serial=
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -d "$cache/boot" ]; then # Debian's kernel, unpacked, not installed
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ && !found++ {print $2}')
  mkdir -p "$work/download"
  (cd "$work/download" && apt-get -qq download "$package" 2>/dev/null && dpkg -x ./*.deb "$work/kernel")
  depmod -b "$work/kernel" "$(ls "$work/kernel/lib/modules")"
  mkdir -p "$(dirname "$cache")"
  mv -T "$work/kernel" "$cache" 2>/dev/null || [ -d "$cache/boot" ]
fi
version=$(ls "$cache/lib/modules")
shim=/usr/lib/shim/shimx64.efi.signed
signed=/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,run,tmp,etc,cd}
cp "$sysroot/bin/busybox" "$root/bin/"
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
raid=
if [ -n "${MDADM:-}" ]; then
  raid='md_mod raid1'
  cp "$MDADM" "$root/bin/mdadm"
  ldd "$MDADM" | { grep -oE '/[^ ]+' || true; } | while read -r library; do install -D "$(readlink -f "$library")" "$root$library"; done
fi
# The modules with their dependencies, in the order of loading; for a built-in module, modprobe prints "builtin".
for module in virtio_pci virtio_net e1000 virtio_blk virtio_scsi sd_mod ahci nvme isofs vfat nls_cp437 nls_ascii ${PARTITION:+ext4} $raid; do
  modprobe -d "$cache" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" {print $2}' || true
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
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
echo "image: started"
while read -r file; do insmod "/modules/$file" 2>/dev/null; done < /etc/load
[ -x /bin/mdadm ] && mdadm --assemble --scan --run
for word in $(cat /proc/cmdline); do case $word in report=*) url=${word#report=};; image=*) image=${word#image=};; root=*) root=$(findfs "${word#root=}");; esac; done
for interface in $(ls /sys/class/net); do
  [ "$interface" = lo ] && continue
  ip link set "$interface" up; udhcpc -q -n -t 20 -T 1 -i "$interface" -s /bin/lease > /dev/null 2>&1
done
drive=
for partition in $(awk 'NR > 2 {print "/dev/" $4}' /proc/partitions); do # an ISO 9660 volume called config-2
  [ "$(dd if="$partition" bs=1 skip=32808 count=8 2> /dev/null | tr A-Z a-z)" = config-2 ] && drive=$partition && break
done
{
  echo "image=$image"
  echo "macs=$(cat /sys/class/net/*/address | grep -v '^00:00:00:00:00:00' | tr '\n' ' ')"
  echo "firmware=$([ -d /sys/firmware/efi ] && echo uefi || echo bios)"
  mount -t securityfs security /sys/kernel/security 2> /dev/null && echo "lockdown=$(cat /sys/kernel/security/lockdown)"
  echo "partitions=$(awk 'NR > 2 {print $4 ":" $3}' /proc/partitions | tr '\n' ' ')"
  [ -e /proc/mdstat ] && echo "arrays=$(grep '^md' /proc/mdstat | tr '\n' ';')"
  [ -n "$root" ] && mkdir -p /root && mount -t ext4 -o ro "$root" /root && echo "root=$root" && echo "fstab=$(base64 < /root/etc/fstab | tr -d '\n')"
  [ -e /root/root/.ssh/authorized_keys ] && echo "keys=$(base64 < /root/root/.ssh/authorized_keys | tr -d '\n')"
  seed=/root/var/lib/cloud/seed/config_drive # where a kickstart file writes it
  if [ -d "$seed" ]; then (cd "$seed" && find . -type f | sort | while read -r file; do echo "file=$file $(base64 < "$file" | tr -d '\n')"; done); fi
  echo "configdrive=$drive"
  if [ -n "$drive" ] && mount -o ro -t iso9660 "$drive" /cd; then
    (cd /cd && find . -type f | sort | while read -r file; do echo "file=$file $(base64 < "$file" | tr -d '\n')"; done)
  fi
} > /tmp/report
until wget -q -O /dev/null --header 'content-type: text/plain' --post-file /tmp/report "$url"; do sleep 1; done
echo "image: reported"
while :; do sleep 3600; done
INIT
chmod +x "$root/init" "$root/bin/lease"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -6 > "$work/initrd"

# As Fedora's: entries FOLDER/loader/entries, whose options are in FOLDER/grub2/grubenv. Only the newest has a kernel that exists.
#   loader_entries FOLDER KERNEL INITRD OPTIONS
loader_entries() {
  local id=1a2b3c4d5e6f47888899aabbccddeeff entry
  mkdir -p "$1/grub2" "$1/loader/entries"
  printf 'insmod blscfg\nblscfg\n' > "$1/grub2/grub.cfg"
  grub-editenv "$1/grub2/grubenv" create
  grub-editenv "$1/grub2/grubenv" set "kernelopts=$4"
  for entry in "0-rescue:/gone" "6.5.9-300.fc39.x86_64:/gone" "6.5.10-300.fc39.x86_64:$2"; do
    printf '%s\n' "title Fedora Linux (${entry%:*}) 39 (Server Edition)" "version ${entry%:*}" "linux ${entry#*:}" \
      "initrd $3 \$tuned_initrd" 'options $kernelopts crashkernel=1G-4G:192M,4G-64G:256M' 'grub_users $grub_users' \
      'grub_arg --unrestricted' 'grub_class fedora' > "$1/loader/entries/$id-${entry%:*}.conf"
  done
}

if [ -n "${PARTITION:-}" ]; then
  tree=$work/tree
  uuid=$(cat /proc/sys/kernel/random/uuid)
  mkdir -p "$tree/boot" "$tree/etc/default"
  cp "$cache/boot/vmlinuz-$version" "$tree/boot/"
  cp "$work/initrd" "$tree/boot/initrd.img-$version"
  echo "UUID=$uuid / ext4 ro 0 1" > "$tree/etc/fstab"
  words="console=$console quiet panic=-1 no_timer_check image=$name report=$url"
  case $PARTITION in
    bare) printf 'GRUB_CMDLINE_LINUX="%s"\n' "$words" > "$tree/etc/default/grub" ;;
    bls) loader_entries "$tree/boot" "/boot/vmlinuz-$version" "/boot/initrd.img-$version" "root=UUID=$uuid $words" ;;
    *)
      mkdir "$tree/boot/grub"
      printf 'linux /boot/vmlinuz-%s root=UUID=%s %s\ninitrd /boot/initrd.img-%s\nboot\n' "$version" "$uuid" "$words" "$version" > "$tree/boot/grub/grub.cfg"
      ;;
  esac
  grub=/usr/lib/grub/$grub_efi/monolithic/$grub_program
  case $PARTITION in
    signed) install -D -m 644 "$shim" "$tree$shim"; install -D -m 644 "$signed" "$tree$signed" ;;
    folder) install -D -m 644 "$sysroot$grub" "$tree/boot/efi/EFI/debian/$grub_program"; install -D -m 644 "$sysroot$grub" "$tree/boot/efi/EFI/BOOT/$efi" ;;
    *) install -D -m 644 "$sysroot$grub" "$tree$grub" ;;
  esac
  case $out in */) mkdir -p "$out" && cp -a "$tree/." "$out" && exit 0 ;; esac
  truncate -s 96M "$work/root.raw"
  PATH=$PATH:/usr/sbin mke2fs -q -t ext4 -U "$uuid" -L lab-root -d "$tree" "$work/root.raw"
  case $out in
    *.qcow2) qemu-img convert -f raw -O qcow2 -c "$work/root.raw" "$out" ;;
    *) cp --sparse=always "$work/root.raw" "$out" ;;
  esac
  sha256sum "$out" | cut -d' ' -f1 > "$out.sha256"
  exit 0
fi

cat > "$work/grub.cfg" <<CFG
${serial:+serial --unit=0 --speed=115200
terminal_output serial}
linux /vmlinuz console=$console quiet panic=-1 image=$name report=$url
initrd /initrd
boot
CFG
modules="part_msdos part_gpt fat normal linux configfile ${serial:+serial}"
# shellcheck disable=SC2086
[ "$arch" != x86_64 ] || grub-mkimage -O i386-pc -p '(hd0,msdos1)/grub' -o "$work/core.img" biosdisk $modules
# shellcheck disable=SC2086
grub-mkimage -O "$grub_efi" -d "$sysroot/usr/lib/grub/$grub_efi" -p /grub -o "$work/$efi" $modules search
size=64 # MiB
raw=$work/disk.raw
truncate -s ${size}M "$raw"
printf '2048,,ef,*\n' | sfdisk -q "$raw"
if [ "$arch" = x86_64 ]; then
  dd if=/usr/lib/grub/i386-pc/boot.img of="$raw" bs=446 count=1 conv=notrunc status=none
  dd if="$work/core.img" of="$raw" bs=512 seek=1 conv=notrunc status=none
fi
export MTOOLS_SKIP_CHECK=1
fat="$raw@@1M"
mformat -i "$fat" -T $(((size - 1) * 2048)) -h 64 -s 32 -v LAB ::
mmd -i "$fat" ::/EFI ::/EFI/BOOT ::/grub
mcopy -i "$fat" "$cache/boot/vmlinuz-$version" ::/vmlinuz
mcopy -i "$fat" "$work/initrd" ::/initrd
mcopy -i "$fat" "$work/grub.cfg" ::/grub/grub.cfg
if [ -n "${BLS:-}" ]; then
  mdel -i "$fat" ::/grub/grub.cfg
  loader_entries "$work/bls" /vmlinuz /initrd "console=ttyS0 quiet panic=-1 image=$name report=$url"
  mcopy -s -i "$fat" "$work/bls/grub2" "$work/bls/loader" ::/
fi
if [ -n "${SIGNED:-}" ]; then
  mmd -i "$fat" ::/EFI/debian
  mcopy -i "$fat" "$shim" ::/EFI/BOOT/BOOTX64.EFI
  mcopy -i "$fat" "$signed" ::/EFI/BOOT/grubx64.efi
  # This GRUB has its prefix in itself.
  mcopy -i "$fat" "$work/grub.cfg" ::/EFI/debian/grub.cfg
else
  mcopy -i "$fat" "$work/$efi" "::/EFI/BOOT/$efi"
fi
case $out in
  *.qcow2) qemu-img convert -f raw -O qcow2 -c "$raw" "$out" ;;
  *) cp --sparse=always "$raw" "$out" ;;
esac
sha256sum "$out" | cut -d' ' -f1 > "$out.sha256"
