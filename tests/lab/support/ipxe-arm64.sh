#!/usr/bin/env bash
# iPXE for machines with aarch64 and UEFI, which Debian has since version 13: its package `ipxe`, unpacked into .cache/ipxe-arm64.
# apt keeps the lists of Debian 13 there too: this host's own stay as they are.
set -euo pipefail
out=$(cd "$(dirname "$0")/../../.." && pwd)/.cache/ipxe-arm64
[ ! -f "$out/ipxe-arm64.efi" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$out"
: > "$work/status"
echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main' > "$work/sources.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$work" -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
"${apt[@]}" update
(cd "$work" && "${apt[@]}" download ipxe && dpkg -x ./ipxe_*.deb unpacked)
cp "$work/unpacked/usr/lib/ipxe/ipxe-arm64.efi" "$out/ipxe-arm64.efi.new"
mv "$out/ipxe-arm64.efi.new" "$out/ipxe-arm64.efi"
