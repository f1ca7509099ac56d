#!/usr/bin/env bash
# Builds a ramdisk with the real ironic-python-agent on Debian's packages, for machines of the lab. Root.
#
#   ipa-ramdisk.sh SITE_PACKAGES [OUTDIR]      default .cache/ipa; it gets initrd. The kernel is that of our own ramdisk.
#
# SITE_PACKAGES has the agent and glean with their requirements, installed for the minor version of Debian's Python.
# As in the usual ramdisks, glean configures the network from a config drive (a volume config-2). Without one, all interfaces use DHCP.
# Nothing is built when OUTDIR is up to date. The root file system without the agent is kept in OUTDIR, too.
# Debian packages: mmdebstrap busybox-static cpio kmod zstd.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../../.." && pwd)
site=$(cd "${1:?SITE_PACKAGES}" && pwd)
out=${2:-$project/.cache/ipa}
kernel=$project/.cache/kernel
version=$(ls "$kernel/lib/modules")

packages=(python3 udev kmod util-linux mount iproute2 lshw ethtool dmidecode pciutils gdisk parted qemu-utils mdadm efibootmgr dosfstools
  ifupdown ifenslave vlan ipmitool file hdparm nvme-cli smartmontools multipath-tools genisoimage e2fsprogs psmisc procps libc-bin coreutils dash sed grep tar gzip)
sum=$({ cat "$0" "$project/ramdisk-agent/build/multipath.conf"; echo "$version"; ls "$site"; } | sha256sum | cut -d' ' -f1)
if [ -f "$out/initrd" ] && [ "$(cat "$out/sum" 2> /dev/null)" = "$sum" ]; then exit 0; fi

mkdir -p "$out"
root=$out/root-$(echo "${packages[*]}" | sha256sum | cut -c1-12)
if [ ! -d "$root" ]; then
  rm -rf "$root.new"
  # Unpacked only: a ramdisk needs none of the packages' scripts.
  mmdebstrap --quiet --variant=extract --mode=root --include="$(IFS=,; echo "${packages[*]}")" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/perl*' --dpkgopt='path-exclude=/usr/lib/x86_64-linux-gnu/perl*' \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root.new"
  mv "$root.new" "$root"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/root
cp -a "$root" "$tree"
mkdir -p "$tree"/{proc,sys,dev,run,root,mnt,tmp,etc,bin} "$tree/opt"
cp -a "$site" "$tree/opt/agent"
python=$(basename "$(find "$tree/usr/bin" -regex '.*/python3\.[0-9]+')")
ln -sf "$python" "$tree/usr/bin/python3"
# The agent's child processes import the agent, too.
mkdir -p "$tree/usr/lib/python3/dist-packages"
echo /opt/agent > "$tree/usr/lib/python3/dist-packages/agent.pth"
printf 'root:x:0:0:root:/root:/bin/sh\n' > "$tree/etc/passwd"
printf '%s\n' root:x:0: disk:x:6: kmem:x:15: tty:x:5: dialout:x:20: video:x:44: audio:x:29: lp:x:7: cdrom:x:24: tape:x:26: \
  input:x:104: kvm:x:105: render:x:106: sgx:x:107: > "$tree/etc/group"
cp /bin/busybox "$tree/bin/busybox"
# Debian's multipath-tools bring rules of sg3-utils, which cut the models of ATA disks to 16 letters. Other distributions do not need them.
rm -f "$tree"/usr/lib/udev/rules.d/*-sg3_*.rules "$tree"/lib/udev/rules.d/*-sg3_*.rules
# As mpathconf(8), which this agent runs on other distributions, writes it.
cp "$project/ramdisk-agent/build/multipath.conf" "$tree/etc/multipath.conf"
chroot "$tree" /sbin/ldconfig # pyudev finds libudev by its cache

modules=(virtio_pci virtio_net e1000 bonding 8021q virtio_blk virtio_rng virtio_scsi sd_mod ahci nvme megaraid_sas mptsas xhci_pci usb_storage
  dm_multipath dm_service_time scsi_dh_alua md_mod raid0 raid1 raid10 raid456 sr_mod isofs efivarfs vfat nls_cp437 nls_ascii ext4 loop)
load=$tree/etc/modules.load
for module in "${modules[@]}"; do
  modprobe -d "$kernel" -S "$version" --show-depends "$module" 2> /dev/null | awk '$1 == "insmod" {print $2}' || true
done | awk '!known[$0]++' > "$work/files"
while read -r file; do install -D -m 644 "$file" "$tree${file#"$kernel"}"; done < "$work/files"
sed "s#^$kernel##" "$work/files" > "$load"

cat > "$tree/bin/lease" <<'LEASE'
#!/bin/busybox sh
# udhcpc says by variables what it was given.
box=/bin/busybox
case $1 in bound | renew) ;; *) exit 0 ;; esac
$box ip addr flush dev "$interface"
$box ip addr add "$ip/${mask:-24}" dev "$interface"
for gateway in $router; do
  $box ip route add default via "$gateway" dev "$interface"
  break
done
LEASE
cat > "$tree/init" <<'INIT'
#!/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root
box=/bin/busybox
$box mount -t proc proc /proc
$box mount -t sysfs sys /sys
$box mount -t devtmpfs dev /dev
$box mkdir -p /dev/pts /var/log
$box mount -t devpts devpts /dev/pts
$box mount -t tmpfs run /run
# The modules of bonds and of loop devices by themselves make some. The agent looks at each loop device again and again.
options() { case $1 in */bonding.ko) echo max_bonds=0 ;; */loop.ko) echo max_loop=0 ;; esac; }
while read -r file; do $box insmod "$file" $(options "$file") 2> /dev/null; done < /etc/modules.load
# As systemd does: the agent makes boot entries there.
[ -d /sys/firmware/efi ] && $box mount -t efivarfs efivarfs /sys/firmware/efi/efivars
/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add
udevadm settle -t 30
$box ip link set lo up
# Debian's programs by their paths: this shell prefers its own.
if drive=$(/sbin/blkid -L config-2); then
  mkdir -p /mnt/config /run/network
  /bin/mount -t iso9660 -o ro "$drive" /mnt/config
  python3 -m glean.cmd --distro debian --no-dhcp-fallback
  /sbin/ifup -a -v
  /sbin/ip -brief address
else
  for interface in /sys/class/net/*; do
    name=${interface##*/}
    [ -e "$interface/device" ] || continue
    $box ip link set "$name" up
    $box udhcpc -q -n -t 10 -T 2 -i "$name" -s /bin/lease > /dev/null 2>&1
  done
fi
echo "ramdisk: the agent starts, $($box cut -d' ' -f1 /proc/uptime) s after the kernel"
# The log for who watches: a serial line may double letters on a busy host.
$box httpd -p 8099 -h /var/log
# As the service of the usual ramdisks does, with the folder of further configuration files.
set --
[ -d /etc/ironic-python-agent.d ] && set -- --config-dir /etc/ironic-python-agent.d
while :; do
  python3 -c 'import sys; sys.argv[0] = "ironic-python-agent"; from ironic_python_agent.cmd.agent import run; sys.exit(run())' --debug "$@" 2>&1 |
    $box tee -a /var/log/ironic-python-agent.log
  $box sleep 5
done
INIT
chmod 755 "$tree/init" "$tree/bin/lease" "$tree/bin/busybox"
(cd "$tree" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) | zstd -q -T0 -9 -o "$work/initrd"
rm -f "$out/sum"
mv "$work/initrd" "$out/initrd"
echo "$sum" > "$out/sum"
