#!/usr/bin/env bash
# Builds the ramdisk that machines boot for inspection, cleaning and deployment: Debian's kernel, and an initramfs with the agent.
#
#   ramdisk.sh [--variant podman] [OUTDIR]      default .cache/ramdisk, or .cache/ramdisk-podman; it gets vmlinuz and initrd
#   --variant podman         with podman, for the deploy interface bootc
#   ZSTD_CLEVEL              compression level, 1 to 19, default the best; an existing ramdisk is kept whatever its level
#
# The agent is bundled into a Node program of its own. The kernel comes from Debian's package, unpacked and kept in .cache/kernel.
# Nothing is built when OUTDIR is up to date with the sources.
# Debian packages: busybox-static cpio kmod zstd libzstd1 liblzma5 binutils hdparm nvme-cli sg3-utils ipmitool efibootmgr dmidecode udev partclone
# xfsprogs e2fsprogs dosfstools, on x86 grub-common and grub-pc-bin (and apt itself). sedutil-cli, which Debian lacks, goes into the ramdisk if this
# host has it. Those of multipath and mdadm are unpacked too: installed, they would start services on this host.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
variant=
if [ "${1:-}" = --variant ]; then
  variant=${2:-}
  [ "$variant" = podman ] || { echo "The variants of the ramdisk are: podman" >&2; exit 1; }
  shift 2
fi
out=${1:-$project/.cache/ramdisk${variant:+-$variant}}
kernel=$project/.cache/kernel
multipath=$project/.cache/multipath
raid=$project/.cache/mdadm
podman=$project/.cache/podman
node=$(node -p process.execPath)

missing=
for need in busybox:busybox-static cpio:cpio depmod:kmod zstd:zstd strip:binutils hdparm:hdparm nvme:nvme-cli sg_sanitize:sg3-utils ipmitool:ipmitool efibootmgr:efibootmgr dmidecode:dmidecode blkdiscard:util-linux blkid:util-linux udevadm:udev partclone.extfs:partclone xfs_logprint:xfsprogs mke2fs:e2fsprogs mkfs.vfat:dosfstools $(case $(uname -m) in x86_64) echo grub-mkimage:grub-common ;; esac); do
  PATH=$PATH:/sbin:/usr/sbin command -v "${need%:*}" > /dev/null || missing="$missing ${need#*:}"
done
case $(uname -m) in x86_64) [ -f /usr/lib/grub/i386-pc/boot.img ] || missing="$missing grub-pc-bin" ;; esac
if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "The ramdisk needs these Debian packages:$missing" >&2
    exit 1
  fi
  apt-get -qq update > /dev/null && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing > /dev/null
fi
export PATH=$PATH:/sbin:/usr/sbin

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -d "$kernel/boot" ]; then
  apt-cache show linux-image-amd64 > /dev/null 2>&1 || apt-get -qq update
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ && !found++ {print $2}')
  mkdir "$work/download"
  chmod 755 "$work" "$work/download"
  if ! (cd "$work/download" && apt-get -qq download "$package" 2> ../apt.log && dpkg -x ./*.deb "$work/kernel"); then
    cat "$work/apt.log" >&2
    echo "Debian's kernel package $package could not be fetched" >&2
    exit 1
  fi
  depmod -b "$work/kernel" "$(ls "$work/kernel/lib/modules")"
  mkdir -p "$(dirname "$kernel")"
  mv -T "$work/kernel" "$kernel" 2> /dev/null || [ -d "$kernel/boot" ]
fi
version=$(ls "$kernel/lib/modules")
if [ ! -d "$multipath" ]; then
  apt-cache show multipath-tools > /dev/null 2>&1 || apt-get -qq update
  packages="multipath-tools kpartx dmsetup"
  # shellcheck disable=SC2086
  libraries=$(apt-cache depends $packages | awk '$1 == "Depends:" && $2 ~ /^lib/ && $2 != "libc6" {print $2}' | sort -u)
  mkdir "$work/multipath"
  chmod 755 "$work" "$work/multipath"
  # shellcheck disable=SC2086
  if ! (cd "$work/multipath" && apt-get -qq download $packages $libraries 2> ../apt.log && for deb in ./*.deb; do dpkg -x "$deb" root; done); then
    cat "$work/apt.log" >&2
    echo "Debian's packages of multipath-tools could not be fetched" >&2
    exit 1
  fi
  mv -T "$work/multipath/root" "$multipath" 2> /dev/null || [ -d "$multipath" ]
fi
if [ ! -d "$raid" ]; then
  apt-cache show mdadm > /dev/null 2>&1 || apt-get -qq update
  mkdir "$work/raid"
  chmod 755 "$work" "$work/raid"
  if ! (cd "$work/raid" && apt-get -qq download mdadm 2> ../apt.log && dpkg -x ./*.deb root); then
    cat "$work/apt.log" >&2
    echo "Debian's package mdadm could not be fetched" >&2
    exit 1
  fi
  mv -T "$work/raid/root" "$raid" 2> /dev/null || [ -d "$raid" ]
fi
if [ -n "$variant" ] && [ ! -d "$podman" ]; then
  apt-cache show podman > /dev/null 2>&1 || apt-get -qq update
  packages="podman conmon crun"
  libraries_of() { apt-cache depends "$@" | awk '$1 == "Depends:" && $2 ~ /^lib/ && $2 != "libc6" {print $2}' | sort -u; }
  # Libraries need others.
  # shellcheck disable=SC2086,SC2046
  libraries=$(libraries_of $packages $(libraries_of $packages))
  mkdir "$work/podman"
  chmod 755 "$work" "$work/podman"
  # shellcheck disable=SC2086
  if ! (cd "$work/podman" && apt-get -qq download $packages $libraries 2> ../apt.log && for deb in ./*.deb; do dpkg -x "$deb" root; done); then
    cat "$work/apt.log" >&2
    echo "Debian's packages of podman could not be fetched" >&2
    exit 1
  fi
  mv -T "$work/podman/root" "$podman" 2> /dev/null || [ -d "$podman" ]
fi

# The bundled script, and a checksum of everything in the ramdisk
cd "$project"
node_modules/.bin/esbuild ramdisk-agent/main.ts --bundle --platform=node --target=node20 --format=cjs --minify-syntax --log-level=warning --alias:koffi=./ramdisk-agent/build/koffi.ts --outfile="$work/agent.js"
tools="/bin/busybox $(command -v ipmitool) $(command -v hdparm) $(command -v nvme) $(command -v sg_sanitize) $(command -v sg_opcodes) $(command -v sg_requests) $(command -v sedutil-cli || true) $(command -v efibootmgr) $(command -v dmidecode) $(command -v blkdiscard) $(command -v udevadm)
  $(command -v partclone.extfs) $(command -v partclone.xfs) $(command -v partclone.ntfs) $(command -v xfs_logprint)
  $(command -v blkid) $(command -v mkfs.vfat) $(command -v mke2fs) $(command -v mkfs.xfs) $(command -v addpart) $(find "$raid" -path '*/sbin/mdadm')
  $(find "$multipath" -path '*/sbin/*' \( -name multipath -o -name multipathd -o -name kpartx -o -name dmsetup \))"
modules="$here/modules.txt" settings='' programs=''
if [ -n "$variant" ]; then
  programs="$podman/usr/bin/podman $podman/usr/bin/conmon $podman/usr/bin/crun"
  tools="$tools $programs"
  modules="$modules $here/podman/modules.txt"
  settings="$here/podman/containers.conf $here/podman/storage.conf $here/podman/policy.json"
fi
# What goes below /lib: udev's helpers and rules for disks, and what multipath loads
udev=$(dirname "$(ls {/usr,}/lib/udev/scsi_id 2> /dev/null | head -n 1)")
rules="55-dm.rules 56-dm-mpath.rules 60-kpartx.rules 60-multipath.rules 60-persistent-storage-dm.rules 95-dm-notify.rules"
plugins=$(find "$multipath" -path '*/lib/multipath/*.so')
files="$(printf "$udev/%s " scsi_id ata_id cdrom_id rules.d/60-block.rules rules.d/60-cdrom_id.rules rules.d/60-persistent-storage.rules)
  $(for rule in $rules; do find "$multipath" -path "*/lib/udev/rules.d/$rule"; done) $(find "$multipath" -path '*/lib/udev/kpartx_id') $plugins"
# The boot loader for the disks of an array, which a BIOS starts: what reads arrays, partitions and file systems, and the commands that
# distributions' configurations use
loader=
if [ -f /usr/lib/grub/i386-pc/boot.img ]; then
  loader=$work/core.img
  mkdir "$work/memdisk"
  cp "$here/bls.cfg" /usr/lib/grub/i386-pc/linux.mod "$work/memdisk/"
  tar -cf "$work/memdisk.tar" -C "$work/memdisk" --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 bls.cfg linux.mod
  # -m sets a prefix, too: the last one counts.
  # shellcheck disable=SC2046
  grub-mkimage -O i386-pc -m "$work/memdisk.tar" -p /boot/grub -c "$here/grub.cfg" -o "$loader" $(sed 's/#.*//' "$here/grub-modules.txt")
fi
# The agent loads them by their names.
# It reads to the end: a program that writes to a closed pipe fails.
zstd=$(/sbin/ldconfig -p | awk '$1 == "libzstd.so.1" && !found++ {print $NF}')
xz=$(/sbin/ldconfig -p | awk '$1 == "liblzma.so.5" && !found++ {print $NF}')
koffi=$(ls "node_modules/@koromix/koffi-linux-$("$node" -p process.arch)"/linux_*/koffi.node)
# shellcheck disable=SC2086
sum=$(cat "$work/agent.js" "$here/init" "$here/lease" $modules $settings "$here/ramdisk.sh" "$here/multipath.conf" $loader "$node" "$koffi" "$zstd" "$xz" $tools $files <(echo "$version") | sha256sum | cut -d' ' -f1)
if [ -f "$out/initrd" ] && [ -f "$out/vmlinuz" ] && [ "$(cat "$out/sum" 2> /dev/null)" = "$sum" ]; then
  echo "The ramdisk in $out is up to date"
  exit 0
fi

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,run,tmp,etc,lib64}
ln -s bin "$root/sbin" # where the kernel looks for modprobe
# The agent: Node's program with the script inside
printf '{"main":"%s","output":"%s","disableExperimentalSEAWarning":true,"useCodeCache":true}' "$work/agent.js" "$work/agent.blob" > "$work/sea.json"
"$node" --experimental-sea-config "$work/sea.json" 2> /dev/null
cp "$node" "$root/bin/agent"
chmod u+w "$root/bin/agent"
strip "$root/bin/agent"
node_modules/.bin/postject "$root/bin/agent" NODE_SEA_BLOB "$work/agent.blob" --sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2 > "$work/postject.log" 2>&1 || { cat "$work/postject.log" >&2; exit 1; }

install -D -m 644 --strip "$koffi" "$root/lib/koffi.node"

# Programs with their libraries
cp /bin/busybox "$root/bin/"
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
for tool in $tools; do
  [ "$tool" = /bin/busybox ] || install -D --strip "$tool" "$root/bin/$(basename "$tool")"
done
ln -s udevadm "$root/bin/systemd-udevd"
for file in $files; do install -D "$file" "$root/lib/${file##*/lib/}"; done
install -D -m 644 "$here/multipath.conf" "$root/etc/multipath.conf"
if [ -n "$variant" ]; then
  # shellcheck disable=SC2086
  install -D -m 644 -t "$root/etc/containers" $settings
  echo "127.0.0.1 localhost" > "$root/etc/hosts"
  mkdir -p "$root/var/tmp"
fi
[ -z "$loader" ] || install -D -m 644 -t "$root/lib/grub" /usr/lib/grub/i386-pc/boot.img "$loader"
search=$(find "$multipath" ${variant:+"$podman"} -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
for program in "$root"/bin/{agent,ipmitool,hdparm,nvme,sg_sanitize,sg_opcodes,sg_requests,sedutil-cli,efibootmgr,dmidecode,blkdiscard,udevadm,partclone.extfs,partclone.xfs,partclone.ntfs,xfs_logprint,multipath,multipathd,kpartx,dmsetup,mdadm,blkid,mkfs.vfat,mke2fs,mkfs.xfs,addpart} $programs "$koffi" "$udev"/*_id $plugins; do
  # ldd fails for plugins, which take some symbols from their program.
  { LD_LIBRARY_PATH=$search ldd "$program" 2> /dev/null || true; } | { grep -oE '/[^ ]+' || true; }
done | cat - <(printf "%s\n" "$zstd" "$xz") | sort -u | while read -r library; do
  target=${library#"$multipath"}
  install -D "$(readlink -f "$library")" "$root${target#"$podman"}"
done

# Modules with their dependencies
mkdir -p "$root/lib/modules/$version"
# shellcheck disable=SC2086
for module in $(sed 's/#.*//' $modules); do
  modprobe -d "$kernel" -S "$version" --show-depends "$module" 2> /dev/null | awk '$1 == "insmod" {print $2}' || true
done | sort -u | while read -r file; do install -D -m 644 "$file" "$root${file#"$kernel"}"; done
cp "$kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
depmod -b "$root" "$version"
rm -f "$root/lib/modules/$version"/*.bin "$root/lib/modules/$version"/modules.{symbols,builtin.modinfo,order,devname,softdep}

install -m 755 "$here/init" "$root/init"
install -m 755 "$here/lease" "$root/bin/lease"
(cd "$root" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) > "$work/initrd"
ZSTD_CLEVEL=${ZSTD_CLEVEL:-19} zstd -q -T0 "$work/initrd" -o "$work/initrd.zst"

mkdir -p "$out"
rm -f "$out/sum"
mv "$work/initrd.zst" "$out/initrd"
cp "$kernel/boot/vmlinuz-$version" "$out/vmlinuz"
chmod 644 "$out/vmlinuz" "$out/initrd"
echo "$sum" > "$out/sum"
echo "The ramdisk is in $out: kernel $version, initrd $(stat -c %s "$out/initrd") bytes"
