#!/usr/bin/env bash
# Installs what the benchmarks compare with and measure by, from the registries,
# into target/peers (or the directory given). Nothing there is built twice. What
# can't be had is named at the end; the benchmarks then leave it out.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=${1:-target/peers}
missing=()

# The published rmz and cpz have the names of ours: a root of their own.
crate() { # NAME[@VERSION] [ROOT]
    cargo install --quiet --locked --root "${2:-$peers}" "$1" || missing+=("${1%@*}")
}

crate hyperfine@1.20.0
crate ftzz@^4
crate fcp
crate xcp
crate cpx
crate rmz "$peers/published"
crate cpz "$peers/published"

packages=(rsync perl tar findutils strace valgrind xfsprogs btrfs-progs e2fsprogs util-linux linux-source golang-src)
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    for package in "${packages[@]}"; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null || missing+=("$package")
    done
else
    echo "not root, or no apt-get: install by hand what is missing of: ${packages[*]}"
fi

[ ${#missing[@]} = 0 ] || echo "not installed: ${missing[*]}"
