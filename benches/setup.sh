#!/usr/bin/env bash
# Installs the tools and peers of the benchmarks from the registries into
# target/peers, or into the directory given as argument. They take 1 GB, most of
# which is a node_modules to copy. Nothing is installed twice. The script names
# at the end what it could not install; the benchmarks then leave it out.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=${1:-target/peers}
missing=()

# The published rmz and cpz have the same names as ours, so they get a root of
# their own.
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

# uutils' commands are named as GNU's.
crate uu_rm "$peers/uutils"
crate uu_cp "$peers/uutils"
crate rcp-tools-rrm
# Its library demands this flag.
RUSTFLAGS='--cfg tokio_unstable' crate rcp-tools-rcp

# The dependencies of a web application: 66 000 files, 770 MB, none of which is
# ever run.
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
