#!/usr/bin/env bash
# Builds GNU cp and rm of the newest release, with which the tests compare the commands. They are built from
# Debian's source package, which apt downloads and verifies. It takes about 90 seconds, or nothing if both
# programs are there.
#
#     testkit/gnu-reference.sh [DIR]     DIR/cp, DIR/rm; default: target/gnu-reference
#
# It needs an apt with a Debian archive, a C compiler, make, xz, and the headers of libacl and libattr. It
# changes nothing outside DIR.
set -euo pipefail

fail() { echo "gnu-reference: $*" >&2; exit 1; }

dir=${1:-$(dirname "$0")/../target/gnu-reference}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# The last step puts rm there, so a build that was interrupted does not count.
[ ! -x "$dir/rm" ] || exit 0

for program in apt-get cc make xz tar; do
    command -v "$program" >/dev/null || fail "there is no $program"
done
work=$(mktemp -d "$dir/build.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The configured archives may be those of an older release. The mirror is the same.
archive=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^Debian //p' | head -n 1)
[ -n "$archive" ] || fail 'apt has no Debian archive'
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || fail "there is no $keys"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
echo "deb-src [signed-by=$keys] $archive unstable main" >"$work/sources.list"
# The user that apt otherwise becomes may not enter the directory, and hooks may clean the system's cache.
cat >"$work/apt.conf" <<EOF
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "$(id -un)";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
apt-get -qq -c "$work/apt.conf" update || fail 'the list of source packages cannot be downloaded'
(cd "$work" && apt-get -qq -c "$work/apt.conf" --download-only source coreutils) ||
    fail 'the source package cannot be downloaded'
mkdir "$work/source"
tar -xf "$work"/coreutils_*.orig.tar.xz -C "$work/source" --strip-components=1

build() {
    cd "$work/source"
    # Root may configure it, too. Without translations, messages are the same in every locale.
    FORCE_UNSAFE_CONFIGURE=1 ./configure --quiet --disable-nls || return
    # Without these, cp could not preserve ACLs and extended attributes, and the comparison would be wrong.
    for feature in USE_ACL USE_XATTR; do
        grep -q "^#define $feature 1" lib/config.h || {
            echo "the headers of libacl and libattr are missing: no $feature"
            return 1
        }
    done
    # The generated headers come first, because nothing else makes them if only two programs are wanted.
    printf 'both: $(BUILT_SOURCES)\n\t$(MAKE) src/cp src/rm\n' |
        make -s -j"$(nproc)" -f Makefile -f - both
}
(build) >"$dir/build.log" 2>&1 || {
    tail -n 5 "$dir/build.log" >&2
    fail "the build failed; see $dir/build.log"
}
mv "$work/source/src/cp" "$dir/cp"
mv "$work/source/src/rm" "$dir/rm"
