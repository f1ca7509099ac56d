#!/usr/bin/env bash
# A ramdisk with the real ironic-python-agent (PyPI) on Debian's packages: our own ramdisk, with that agent in place of ours. Root.
#
#   ipa-ramdisk.sh OUTDIR     it gets vmlinuz and initrd; what was built once is kept
#
# The python3 that runs pip has to be of the same minor version as Debian's. Debian packages: mmdebstrap zstd cpio python3-venv, and those
# of ramdisk.sh.
set -euo pipefail
version=13.0.0
project=$(cd "$(dirname "$0")/../../.." && pwd)
out=${1:?OUTDIR}
bash "$project/ramdisk-agent/build/ramdisk.sh"
mkdir -p "$out"
cp "$project/.cache/ramdisk/vmlinuz" "$out/"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
pack() { (cd "$1" && find . | cpio --quiet -o -H newc -R 0:0) | zstd -q -6 -T0; }

layer=$out/ipa-$version.zst
if [ ! -f "$layer" ]; then
  packages=dash,coreutils,libc-bin,grep,sed,tar,gzip,procps,psmisc,python3,udev,kmod,util-linux,mount,iproute2,lshw,ethtool,dmidecode,pciutils,gdisk,parted,qemu-utils,mdadm,efibootmgr,dosfstools,ipmitool,file,hdparm,nvme-cli,smartmontools,e2fsprogs
  root=$work/tree/ipa
  mkdir "$work/tree"
  # shellcheck disable=SC1091
  mmdebstrap --quiet --variant=extract --mode=root --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
  python3 -m venv "$work/pip"
  "$work/pip/bin/pip" -q install --target "$root/opt/ipa" "ironic-python-agent==$version"
  mkdir -p "$root"/{proc,sys,dev,run,root,tmp,etc,lib/modules}
  ln -sf "$(basename "$(ls "$root"/usr/bin/python3.[0-9]* | head -1)")" "$root/usr/bin/python3"
  mkdir -p "$root/usr/lib/python3/dist-packages"
  echo /opt/ipa > "$root/usr/lib/python3/dist-packages/ipa.pth"
  printf 'root:x:0:0:root:/root:/bin/sh\n' > "$root/etc/passwd"
  printf '%s:x:%s:\n' root 0 tty 5 disk 6 lp 7 dialout 20 cdrom 24 tape 26 audio 29 video 44 kvm 105 render 106 sgx 107 input 104 kmem 15 > "$root/etc/group"
  chroot "$root" /sbin/ldconfig # pyudev looks libudev up in its cache
  pack "$work/tree" > "$layer.new"
  mv "$layer.new" "$layer"
fi

# What our init starts as the agent
mkdir -p "$work/agent/bin"
cat > "$work/agent/bin/agent" << 'AGENT'
#!/bin/sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin LC_ALL=C.UTF-8 HOME=/root SYSTEMD_IGNORE_CHROOT=1
if [ ! -e /ipa/proc/self ]; then
  for folder in proc sys dev run lib/modules; do mount --rbind /$folder /ipa/$folder; done
  chroot /ipa /lib/systemd/systemd-udevd --daemon
  chroot /ipa udevadm trigger --action=add
  chroot /ipa udevadm settle -t 20
fi
cp /etc/resolv.conf /ipa/etc/ 2> /dev/null
[ ! -x /bin/prepare ] || /bin/prepare # record-inventories.mjs
echo "The real agent starts $(cut -d' ' -f1 /proc/uptime) s after the kernel"
exec chroot /ipa python3 -c 'import sys; sys.argv = ["ironic-python-agent"]; from ironic_python_agent.cmd.agent import run; sys.exit(run())'
AGENT
chmod 755 "$work/agent/bin/agent"
pack "$work/agent" > "$work/agent.zst"
# The kernel unpacks archives that follow each other one over the other.
cat "$project/.cache/ramdisk/initrd" "$layer" "$work/agent.zst" > "$out/initrd.new"
mv "$out/initrd.new" "$out/initrd"
