#!/usr/bin/env bash
# DHCP at a rate of exchanges a second: ours on its embedded database with DHCPv4 and with DHCPv6, then dnsmasq with both, on the same wire
# in the same run (perfdhcp, Debian kea-admin). CPU is that of all processes of the server, the database's too.
#
#   bench-dhcp.sh [RATE [SECONDS]]     default 1000 a second for 10 s
#
# Each exchange has another MAC address, which no port has; the policy `discover` answers it. So each needs a query for ports, and no cache
# helps.
# Root. Makes and removes two network namespaces.
set -euo pipefail
rate=${1:-1000} seconds=${2:-10}
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d); server=dhcpbench-s-$$ client=dhcpbench-c-$$ pid=
finish() { [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; wait 2>/dev/null || true; ip netns del "$server"; ip netns del "$client"; rm -rf "$work"; }
ip netns add "$server"; ip netns add "$client"; trap finish EXIT
ip -n "$server" link add boot0 type veth peer name eth0 netns "$client"
# The clients of perfdhcp differ by their DUIDs; an interface identifier made of the MAC address would show that all are one machine.
ip -n "$client" link set eth0 addrgenmode random
for each in "$server boot0" "$client eth0"; do set -- $each; ip netns exec "$1" sysctl -qw "net.ipv6.conf.$2.accept_dad=0"; done
ip -n "$server" link set lo up; ip -n "$server" link set boot0 up; ip -n "$server" addr add fd00:78::1/64 dev boot0 nodad; ip -n "$server" addr add 10.78.0.1/16 dev boot0
ip -n "$client" link set lo up; ip -n "$client" link set eth0 up; ip -n "$client" addr add 10.78.0.2/16 dev eth0
mkdir -p "$root/.cache/lab"
"$root/node_modules/.bin/esbuild" "$root/tests/lab/boot/dhcp-server.ts" --bundle --platform=node --packages=external --log-level=error --outfile="$root/.cache/lab/dhcp-server.js"

ticks() { for each in $(ip netns pids "$server"); do cat "/proc/$each/stat" 2>/dev/null || true; done | awk '{ sum += $14 + $15 + $16 + $17 } END { print sum }'; }
measure() { # NAME [4|6]
  local family=${2:-4} to=10.78.0.1; [ "$family" = 4 ] || to=all
  local before after; before=$(ticks)
  timeout $((seconds + 60)) ip netns exec "$client" perfdhcp "-$family" -r "$rate" -p "$seconds" -W 2000000 -R 60000 -l eth0 "$to" > "$work/out" 2>&1 || true
  after=$(ticks)
  awk -v name="$1" -v seconds="$seconds" -v ticks="$before $after" '
    /^received packets/ { done = $3 } /^sent packets/ { sent = sent " " $3 } /^drops:/ { drops += $2 } /^avg delay/ { delay = delay " " $3 } /^max delay/ { most = most " " $3 }
    END { split(ticks, t, " ")
          printf "%-9s %8.1f exchanges/s, sent%s, drops %d, mean delay%s ms, longest%s ms, %.1f s of CPU\n", name, done / seconds, sent, drops, delay, most, (t[2] - t[1]) / 100 }' "$work/out"
}

mkdir "$work/state"; chmod 755 "$work" "$work/state"
DHCP_STATE_DIR=$work/state ip netns exec "$server" node "$root/.cache/lab/dhcp-server.js" '{"boot.interface":"boot0","boot.dhcp_range":"10.78.1.0-10.78.254.255","boot.dhcp_subnet":["fd00:78::/64 range=fd00:78::1:0-fd00:78::1:ffff"],"boot.dhcp_unknown_macs":"discover","boot.dhcp_max_unknown":65536}' > "$work/ready" 2> "$work/log" &
pid=$!
for _ in $(seq 300); do grep -qs ready "$work/ready" && break; kill -0 "$pid" || { cat "$work/log" >&2; exit 1; }; sleep 0.1; done
measure bloomery
measure bloomery6 6
kill "$pid"; wait "$pid" || true
grep -h '"warn"\|"error"' "$work/log" || true

ip netns exec "$server" dnsmasq --no-daemon --user=root --conf-file=/dev/null --port=0 --interface=boot0 --bind-interfaces --no-ping --quiet-dhcp --dhcp-lease-max=65000 \
  --dhcp-range=10.78.1.0,10.78.254.255,1h --dhcp-range=fd00:78::1:0,fd00:78::1:ffff,64,1h --dhcp-leasefile="$work/leases" --dhcp-boot=undionly.kpxe > "$work/dnsmasq" 2>&1 &
pid=$!; sleep 1
measure dnsmasq
measure dnsmasq6 6
