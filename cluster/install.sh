#!/bin/sh
# Builds rmz-mpi and cpz-mpi for the MPI whose mpicc is first in PATH, and installs them below a directory:
#   cluster/install.sh PREFIX [ARGUMENT OF CARGO...]
# DESTDIR is put before PREFIX, as make install does.
set -eu
prefix=${1:?usage: install.sh PREFIX [ARGUMENT OF CARGO...]}
shift
root=${DESTDIR:-}$prefix
cd "$(dirname "$0")"
cargo build --release --locked "$@"
for name in rmz-mpi cpz-mpi; do
    install -D -m 755 "${CARGO_TARGET_DIR:-target}/release/$name" "$root/bin/$name"
    install -D -m 644 "man/$name.1" "$root/share/man/man1/$name.1"
    install -D -m 644 "completions/$name.bash" "$root/share/bash-completion/completions/$name"
    install -D -m 644 "completions/_$name" "$root/share/zsh/site-functions/_$name"
    install -D -m 644 "completions/$name.fish" "$root/share/fish/vendor_completions.d/$name.fish"
done
