#!/usr/bin/env bash
# Installs what the benchmarks compare with and measure by, from the registries,
# into target/peers (or the directory given); 1 GB, most of it a node_modules to
# copy. Nothing there is made twice. What can't be had is named at the end; the
# benchmarks then leave it out.
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

# What a web application has: 66 000 files, 770 MB. Nothing of it is ever run.
if [ ! -d "$peers/npm/node_modules" ]; then
    mkdir -p "$peers/npm"
    npm install --prefix "$peers/npm" --ignore-scripts --legacy-peer-deps --no-audit --no-fund --silent \
        next@15 webpack@5 typescript@5 @babel/preset-env@7 eslint@9 react-native@0.76 jest@29 \
        @mui/icons-material@6 date-fns@4 || missing+=(node_modules)
fi

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
