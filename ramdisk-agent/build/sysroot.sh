# Finds programs and libraries among Debian's packages in the folder $sysroot, which foreign.sh unpacks, in place of this host's. The scripts that
# source this file set it, and $debian, the architecture's name.
# shellcheck shell=bash disable=SC2154
program() { find "$sysroot"/{usr/,}{s,}bin -name "$1" -print -quit 2> /dev/null | grep .; }
shared() { find "$sysroot"/{usr/,}lib -name "$1" -print -quit 2> /dev/null; }
# The libraries that a program needs, and those that these need
libraries() {
  [ -e "$1" ] || return 0 # the ramdisk does not have this one
  local todo=("$1") seen=" " name path loader
  loader=$({ readelf -l "$1" 2> /dev/null || true; } | sed -n 's/.*program interpreter: \(.*\)\]$/\1/p')
  [ -z "$loader" ] || echo "$sysroot$loader"
  while [ ${#todo[@]} -gt 0 ]; do
    for name in $(readelf -d "${todo[0]}" 2> /dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
      case $seen in *" $name "*) continue ;; esac
      seen="$seen$name "
      path=$(shared "$name")
      if [ -z "$path" ]; then
        echo "Debian's packages of $debian have no $name, which $1 needs" >&2
        exit 1
      fi
      echo "$path"
      todo+=("$path")
    done
    todo=("${todo[@]:1}")
  done
}
