#!/usr/bin/env bash
# Installs the tools and peers of the benchmarks from the registries into target/peers, and the real trees into
# target/peers/trees. They take 3 GB, most of which are trees. Nothing is installed twice. The script names at the
# end what it could not install; the benchmarks then leave it out.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=target/peers
missing=()

# The published rmz and cpz have the same names as ours, so they get a root of
# their own.
crate() { # NAME[@VERSION] [ROOT]
    cargo install --quiet --locked --root "${2:-$peers}" "$1" || missing+=("${1%@*}")
}

crate hyperfine@1.20.0
crate ftzz@4.0.0
crate fcp@0.2.2
crate xcp@0.24.9
crate cpx@0.2.1
crate rmz@3.2.1 "$peers/published"
crate cpz@3.2.1 "$peers/published"

# uutils' commands are named as GNU's.
crate uu_rm@0.12.0 "$peers/uutils"
crate uu_cp@0.12.0 "$peers/uutils"
crate rcp-tools-rrm@0.41.0
# Its library demands this flag.
RUSTFLAGS='--cfg tokio_unstable' crate rcp-tools-rcp@0.41.0

packages=(rsync perl tar findutils strace valgrind xfsprogs btrfs-progs e2fsprogs util-linux linux-source golang-src
    openmpi-bin libopenmpi-dev)
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    for package in "${packages[@]}"; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null || missing+=("$package")
    done
else
    echo "not root, or no apt-get: install by hand what is missing of: ${packages[*]}"
fi

# The trees that the benchmarks copy, by name. That of Linux is unpacked, and three are links.
trees=$PWD/$peers/trees
mkdir -p "$trees"
link() { # NAME DIR
    if [ -d "$2" ]; then ln -sfn "$2" "$trees/$1"; else missing+=("$1"); fi
}

archive=$(ls /usr/src/linux-source-*.tar.xz 2>/dev/null | tail -n 1)
if [ ! -d "$trees/linux" ]; then
    mkdir -p "$trees/partial"
    if [ -n "$archive" ] && tar -C "$trees/partial" -xf "$archive"; then
        mv "$trees/partial" "$trees/linux"
    else
        missing+=(linux)
    fi
fi
link go "$(ls -d /usr/share/go-* 2>/dev/null | tail -n 1)"
link registry "${CARGO_HOME:-$HOME/.cargo}/registry/src"

# The dependencies of a web application: 66 000 files, 770 MB, none of which is ever run.
npm=$PWD/$peers/npm
if [ ! -d "$npm/node_modules" ]; then
    mkdir -p "$npm"
    npm install --prefix "$npm" --ignore-scripts --legacy-peer-deps --no-audit --no-fund --silent \
        next@15 webpack@5 typescript@5 @babel/preset-env@7 eslint@9 react-native@0.76 jest@29 \
        @mui/icons-material@6 date-fns@4
fi
link node-modules "$npm/node_modules"

[ ${#missing[@]} = 0 ] || echo "not installed: ${missing[*]}"
