# The programs of another architecture than this host's, for ramdisk.sh, which sources this file: Debian's packages with all that they need,
# unpacked into .cache/sysroot-ARCH, and Node and koffi from npm's registry. None of them runs on this host.
# apt keeps its lists of that architecture beside them: this host's own stay as they are.
# shellcheck shell=bash disable=SC2154
sysroot=$project/.cache/sysroot-$arch${variant:+-$variant}
apt=$project/.cache/apt-$arch
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: > "$apt/status" # nothing is installed
settings=(-o "APT::Architecture=$debian" -o "APT::Architectures::=$debian" -o "Dir::State=$apt" -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
apt-get() { command apt-get "${settings[@]}" "$@"; }
apt-cache() { command apt-cache "${settings[@]}" "$@"; }

# For a BIOS, boot loaders of arrays (ramdisk.sh); for UEFI, those that machines load from the network
case $arch in x86_64) loader="grub-pc-bin grub-efi-amd64-bin" ;; aarch64) loader=grub-efi-arm64-bin ;; esac
# fdisk is for the bootable containers of the lab (demo/lab/bootable-container.sh).
packages="busybox-static libc6 hdparm nvme-cli sg3-utils ipmitool efibootmgr dmidecode util-linux udev partclone xfsprogs e2fsprogs dosfstools multipath-tools kpartx dmsetup mdadm smartmontools libzstd1 liblzma5 libstdc++6 fdisk $loader${variant:+ podman conmon crun}"
if [ "$(cat "$sysroot/packages" 2> /dev/null)" != "$packages" ]; then
  apt-get -qq update > "$work/apt.log" 2>&1 || true
  # shellcheck disable=SC2086
  if ! apt-get -qq install -y --no-install-recommends --download-only $packages >> "$work/apt.log" 2>&1; then
    cat "$work/apt.log" >&2
    echo "Debian's packages of $debian could not be fetched" >&2
    exit 1
  fi
  for deb in "$apt"/cache/archives/*.deb; do dpkg -x "$deb" "$work/sysroot"; done
  echo "$packages" > "$work/sysroot/packages"
  rm -rf "$sysroot" "$apt/cache/archives"/*.deb
  mv -T "$work/sysroot" "$sysroot"
fi

# A file of a package of npm's registry, which npm checks against the hash that the registry has: npm_file NAME VERSION PATH
npm_file() {
  local kept=$project/.cache/npm/${1//\//-}-$2
  if [ ! -e "$kept/package/$3" ]; then
    mkdir -p "$project/.cache/npm" "$work/npm"
    (cd "$work/npm" && npm pack --silent "$1@$2" > /dev/null && mkdir out && tar -xzf ./*.tgz -C out && rm ./*.tgz) || return 1
    rm -rf "$kept"
    mv -T "$work/npm/out" "$kept"
  fi
  echo "$kept/package/$3"
}
node=$(npm_file "node-linux-$node_arch" "$("$host_node" -p process.versions.node)" bin/node)
koffi=$(npm_file "@koromix/koffi-linux-$node_arch" "$("$host_node" -p 'require("./node_modules/koffi/package.json").version')" "linux_$node_arch/koffi.node")

# shellcheck source=sysroot.sh
. "$here/sysroot.sh"
