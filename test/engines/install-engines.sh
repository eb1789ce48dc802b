#!/usr/bin/env bash
# Installs what `npm run test:engines` runs as clusters of three nodes: nats-server 2.10 and rabbitmq-server 4 of Debian 13
# (trixie), into a folder. It changes nothing outside of that folder.
#
#   sudo test/engines/install-engines.sh           both
#   test/engines/install-engines.sh nats           nats-server alone; needs no root
#
# The folder is $TELEMETRY_TEST_ENGINES, else telemetry-gateway-engines below the folder for temporary files. It takes
# 1 GB. Needs Debian with apt and dpkg-deb; RabbitMQ needs root and debootstrap, too, because it runs in a root
# directory of its own (its Erlang needs a newer libc than that of Debian 12). Packages come from the mirror that apt of
# this machine uses, and their signatures are checked.
set -euo pipefail

suite=trixie
folder="${TELEMETRY_TEST_ENGINES:-${TMPDIR:-/tmp}/telemetry-gateway-engines}"
wanted="${1:-all}"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

case "$wanted" in all | nats | rabbitmq) ;; *)
  echo "usage: $0 [all|nats|rabbitmq]" >&2
  exit 2
  ;;
esac

# The words in quotes are for apt.
# shellcheck disable=SC2016
mirror="$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -1)"
[ -n "$mirror" ] || {
  echo "apt of this machine has no source of Debian; run apt-get update first" >&2
  exit 1
}
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

# Unpacked, it runs on Debian 12.
install_nats() {
  if [ -x "$folder/nats/usr/sbin/nats-server" ]; then return; fi
  local apt="$folder/apt"
  mkdir -p "$apt"/{lists/partial,cache/archives/partial,packages}
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
  local options=(
    -q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=" -o "Debug::NoLocking=true"
  )
  apt-get "${options[@]}" update
  (cd "$apt/packages" && apt-get "${options[@]}" download "nats-server/$suite")
  dpkg-deb -x "$apt"/packages/nats-server_*.deb "$folder/nats.part"
  rm -rf "$apt"
  mv "$folder/nats.part" "$folder/nats"
}

# Its scripts and its Erlang run in the root directory by chroot.
install_rabbitmq() {
  if [ -e "$folder/rabbitmq/installed" ]; then return; fi
  rm -rf "$folder/rabbitmq.part" "$folder/rabbitmq"
  debootstrap --variant=minbase --include=rabbitmq-server "$suite" "$folder/rabbitmq.part" "$mirror" || {
    tail -20 "$folder/rabbitmq.part/debootstrap/debootstrap.log" >&2
    exit 1
  }
  rm -rf "$folder"/rabbitmq.part/var/cache/apt/archives/*.deb
  touch "$folder/rabbitmq.part/installed"
  mv "$folder/rabbitmq.part" "$folder/rabbitmq"
}

if [ "$wanted" != rabbitmq ]; then install_nats; fi
if [ "$wanted" != nats ]; then install_rabbitmq; fi

for program in nats/usr/sbin/nats-server rabbitmq/usr/sbin/rabbitmq-server; do
  if [ -e "$folder/$program" ]; then echo "installed: $folder/$program"; fi
done
