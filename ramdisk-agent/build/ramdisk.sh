#!/usr/bin/env bash
# Builds the ramdisk that machines boot for inspection, cleaning and deployment: Debian's kernel, and an initramfs with the agent.
#
#   ramdisk.sh [--variant podman] [OUTDIR [ARCH]]   it gets vmlinuz and initrd
#   --variant podman   with podman, for the deploy interface bootc
#   OUTDIR             default .cache/ramdisk, followed by -ARCH for another architecture than this host's, and by -VARIANT
#   ARCH               x86_64 or aarch64; default this host's
#   ZSTD_CLEVEL        compression level, 1 to 19, default the best; an existing ramdisk is kept whatever its level
#
# The agent is bundled into a Node program of its own. The kernel comes from Debian's package, unpacked and kept in .cache/kernel.
# For another architecture, all programs come from Debian's packages of it (foreign.sh), and Node from npm's registry.
# Nothing is built when OUTDIR is up to date with the sources.
# Debian packages: busybox-static cpio kmod zstd libzstd1 liblzma5 binutils hdparm nvme-cli sg3-utils ipmitool efibootmgr dmidecode udev partclone
# xfsprogs e2fsprogs dosfstools, on x86 grub-common and grub-pc-bin (and apt itself). sedutil-cli, which Debian lacks, goes into the ramdisk if this
# host has it. Those of multipath, mdadm and smartmontools are unpacked too: installed, they would start services on this host.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
variant=
if [ "${1:-}" = --variant ]; then
  variant=${2:-}
  [ "$variant" = podman ] || { echo "The variants of the ramdisk are: podman" >&2; exit 1; }
  shift 2
fi
host=$(uname -m)
arch=${2:-$host}
case $arch in # Debian's name, Node's name, and the prefix of binutils for other hosts
  x86_64) debian=amd64 node_arch=x64 cross=x86_64-linux-gnu ;;
  aarch64) debian=arm64 node_arch=arm64 cross=aarch64-linux-gnu ;;
  *)
    echo "There is no ramdisk for $arch: x86_64 and aarch64 are possible" >&2
    exit 1
    ;;
esac
foreign= suffix=
[ "$arch" = "$host" ] || foreign=$arch suffix=-$arch
out=${1:-$project/.cache/ramdisk$suffix${variant:+-$variant}}
kernel=$project/.cache/kernel$suffix
multipath=$project/.cache/multipath
raid=$project/.cache/mdadm
smart=$project/.cache/smartmontools
podman=$project/.cache/podman
host_node=$(node -p process.execPath)
node=$host_node
strip=strip
[ -z "$foreign" ] || strip=$cross-strip

missing=
for need in busybox:busybox-static cpio:cpio depmod:kmod zstd:zstd strip:binutils hdparm:hdparm nvme:nvme-cli sg_sanitize:sg3-utils ipmitool:ipmitool efibootmgr:efibootmgr dmidecode:dmidecode blkdiscard:util-linux blkid:util-linux udevadm:udev partclone.extfs:partclone xfs_logprint:xfsprogs mke2fs:e2fsprogs mkfs.vfat:dosfstools $(case $arch in x86_64) echo grub-mkimage:grub-common ;; esac) ${foreign:+$strip:binutils-$cross}; do
  PATH=$PATH:/sbin:/usr/sbin command -v "${need%:*}" > /dev/null || missing="$missing ${need#*:}"
done
case $arch$foreign in x86_64) [ -f /usr/lib/grub/i386-pc/boot.img ] || missing="$missing grub-pc-bin" ;; esac
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
# What the packages have: programs of this host, or those of the architecture, which `sysroot` holds
program() { command -v "$1"; }
libraries() { { LD_LIBRARY_PATH=$search ldd "$1" 2> /dev/null || true; } | { grep -oE '/[^ ]+' || true; }; } # ldd fails for plugins, which take some symbols from their program.
shared() { /sbin/ldconfig -p | awk -v name="$1" '$1 == name && !found++ {print $NF}'; } # It reads to the end: a program that writes to a closed pipe fails.
sysroot=
if [ -n "$foreign" ]; then
  # shellcheck source=foreign.sh
  . "$here/foreign.sh"
  multipath=$sysroot raid=$sysroot smart=$sysroot podman=$sysroot
fi
if [ ! -d "$kernel/boot" ]; then
  apt-cache show linux-image-$debian > /dev/null 2>&1 || apt-get -qq update
  package=$(apt-cache depends linux-image-$debian | awk '/Depends: linux-image/ && !found++ {print $2}')
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
for folder in "$raid" "$smart"; do
  [ ! -d "$folder" ] || continue
  package=$(basename "$folder")
  apt-cache show "$package" > /dev/null 2>&1 || apt-get -qq update
  mkdir "$work/$package"
  chmod 755 "$work" "$work/$package"
  if ! (cd "$work/$package" && apt-get -qq download "$package" 2> ../apt.log && dpkg -x ./*.deb root); then
    cat "$work/apt.log" >&2
    echo "Debian's package $package could not be fetched" >&2
    exit 1
  fi
  mv -T "$work/$package/root" "$folder" 2> /dev/null || [ -d "$folder" ]
done
if [ -n "$variant" ] && [ ! -d "$podman" ]; then
  apt-cache show podman > /dev/null 2>&1 || apt-get -qq update
  packages="podman conmon crun"
  libraries_of() { apt-cache depends "$@" | awk '$1 == "Depends:" && $2 ~ /^lib/ && $2 != "libc6" {print $2}' | sort -u; }
  # Libraries need others.
  # shellcheck disable=SC2086,SC2046
  needed=$(libraries_of $packages $(libraries_of $packages))
  mkdir "$work/podman"
  chmod 755 "$work" "$work/podman"
  # shellcheck disable=SC2086
  if ! (cd "$work/podman" && apt-get -qq download $packages $needed 2> ../apt.log && for deb in ./*.deb; do dpkg -x "$deb" root; done); then
    cat "$work/apt.log" >&2
    echo "Debian's packages of podman could not be fetched" >&2
    exit 1
  fi
  mv -T "$work/podman/root" "$podman" 2> /dev/null || [ -d "$podman" ]
fi

# The bundled script, and a checksum of everything in the ramdisk
cd "$project"
node_modules/.bin/esbuild ramdisk-agent/main.ts --bundle --platform=node --target=node20 --format=cjs --minify-syntax --log-level=warning --alias:koffi=./ramdisk-agent/build/koffi.ts --outfile="$work/agent.js"
names="ipmitool hdparm nvme sg_sanitize sg_opcodes sg_requests efibootmgr dmidecode blkdiscard udevadm partclone.extfs partclone.xfs partclone.ntfs xfs_logprint blkid mkfs.vfat mke2fs mkfs.xfs addpart"
busybox=$(program busybox)
tools="$busybox $(for name in $names; do program "$name"; done) $(program sedutil-cli || true) $(find "$raid" -path '*/sbin/mdadm') $(find "$smart" -path '*/sbin/smartctl')
  $(find "$multipath" -path '*/sbin/*' \( -name multipath -o -name multipathd -o -name kpartx -o -name dmsetup \))"
modules="$here/modules.txt" settings='' programs=''
if [ -n "$variant" ]; then
  programs="$podman/usr/bin/podman $podman/usr/bin/conmon $podman/usr/bin/crun"
  tools="$tools $programs"
  modules="$modules $here/podman/modules.txt"
  settings="$here/podman/containers.conf $here/podman/storage.conf $here/podman/policy.json"
fi
# What goes below /lib: udev's helpers and rules for disks, and what multipath loads
udev=$(dirname "$(find "$sysroot"/usr/lib/udev "$sysroot"/lib/udev -name scsi_id -print -quit 2> /dev/null || true)")
rules="55-dm.rules 56-dm-mpath.rules 60-kpartx.rules 60-multipath.rules 60-persistent-storage-dm.rules 95-dm-notify.rules"
plugins=$(find "$multipath" -path '*/lib/multipath/*.so')
files="$(printf "$udev/%s " scsi_id ata_id cdrom_id rules.d/60-block.rules rules.d/60-cdrom_id.rules rules.d/60-persistent-storage.rules)
  $(for rule in $rules; do find "$multipath" -path "*/lib/udev/rules.d/$rule"; done) $(find "$multipath" -path '*/lib/udev/kpartx_id') $plugins"
# The boot loader for the disks of an array, which a BIOS starts: what reads arrays, partitions and file systems, and the commands that
# distributions' configurations use
loader=
if [ -f "$sysroot/usr/lib/grub/i386-pc/boot.img" ] && [ "$arch" = x86_64 ]; then
  loader=$work/core.img
  mkdir "$work/memdisk"
  cp "$here/bls.cfg" "$sysroot/usr/lib/grub/i386-pc/linux.mod" "$work/memdisk/"
  tar -cf "$work/memdisk.tar" -C "$work/memdisk" --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 bls.cfg linux.mod
  # -m sets a prefix, too: the last one counts.
  # shellcheck disable=SC2046
  grub-mkimage -O i386-pc -d "$sysroot/usr/lib/grub/i386-pc" -m "$work/memdisk.tar" -p /boot/grub -c "$here/grub.cfg" -o "$loader" $(sed 's/#.*//' "$here/grub-modules.txt")
fi
# The agent loads them by their names.
zstd=$(shared libzstd.so.1)
xz=$(shared liblzma.so.5)
[ -n "$foreign" ] || koffi=$(ls "node_modules/@koromix/koffi-linux-$node_arch"/linux_*/koffi.node)
# shellcheck disable=SC2086
sum=$(cat "$work/agent.js" "$here/init" "$here/lease" $modules $settings "$here/ramdisk.sh" "$here/foreign.sh" "$here/sysroot.sh" "$here/drop-languages.mjs" "$here/multipath.conf" $loader "$node" "$koffi" "$zstd" "$xz" $tools $files <(echo "$version") | sha256sum | cut -d' ' -f1)
if [ -f "$out/initrd" ] && [ -f "$out/vmlinuz" ] && [ "$(cat "$out/sum" 2> /dev/null)" = "$sum" ]; then
  echo "The ramdisk in $out is up to date"
  exit 0
fi

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,run,tmp,etc,lib64}
ln -s bin "$root/sbin" # where the kernel looks for modprobe
# The agent: Node's program with the script inside
printf '{"main":"%s","output":"%s","disableExperimentalSEAWarning":true,"useCodeCache":%s}' "$work/agent.js" "$work/agent.blob" "$([ -n "$foreign" ] && echo false || echo true)" > "$work/sea.json"
"$host_node" --experimental-sea-config "$work/sea.json" 2> /dev/null
cp "$node" "$root/bin/agent"
chmod u+w "$root/bin/agent"
"$strip" "$root/bin/agent"
"$host_node" "$here/drop-languages.mjs" "$root/bin/agent"
node_modules/.bin/postject "$root/bin/agent" NODE_SEA_BLOB "$work/agent.blob" --sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2 > "$work/postject.log" 2>&1 || { cat "$work/postject.log" >&2; exit 1; }

install -D -m 644 --strip --strip-program="$strip" "$koffi" "$root/lib/koffi.node"

# Programs with their libraries
cp "$busybox" "$root/bin/"
for applet in $(/bin/busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
for tool in $tools; do
  [ "$tool" = "$busybox" ] || install -D --strip --strip-program="$strip" "$tool" "$root/bin/$(basename "$tool")"
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
[ -z "$loader" ] || install -D -m 644 -t "$root/lib/grub" "$sysroot/usr/lib/grub/i386-pc/boot.img" "$loader"
search=$(find "$multipath" ${variant:+"$podman"} -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
for file in "$root"/bin/{agent,ipmitool,hdparm,nvme,smartctl,sg_sanitize,sg_opcodes,sg_requests,sedutil-cli,efibootmgr,dmidecode,blkdiscard,udevadm,partclone.extfs,partclone.xfs,partclone.ntfs,xfs_logprint,multipath,multipathd,kpartx,dmsetup,mdadm,blkid,mkfs.vfat,mke2fs,mkfs.xfs,addpart} $programs "$koffi" "$root"/lib/udev/*_id $plugins; do
  libraries "$file"
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
