//! Filesystems that programs of Debian serve by FUSE. Their habits are those that users meet.

use std::{ffi::OsStr, fs, os::unix::fs::MetadataExt as _, path::Path};

use super::{Mounted, Skip, need_root, run};
use crate::tree::Scratch;

/// A program that serves a filesystem. It stores the files in a directory, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Shows a directory in another place.
    Bindfs,
    /// Joins directories, here only one.
    Mergerfs,
    /// Joins directories, here only one. It passes `O_DIRECT` on.
    Unionfs,
    /// Encrypts names and content.
    Gocryptfs,
    /// Speaks SFTP with a server that runs as its child. It caches attributes.
    Sshfs,
    /// Speaks with stores of objects, here with a directory. It has no modes, owners, links or special files.
    Rclone,
    /// Stores NTFS in an image.
    Ntfs3g,
    /// Stores exFAT in an image. It has no owners, links or special files.
    ExfatFuse,
    /// A filesystem of several clients. It keeps names and numbers in a database, and content in objects.
    Juicefs,
}

impl Program {
    /// Returns the shell commands that start the program with the options `"$@"`. It stays in the background
    /// after it has mounted its filesystem at `$point`.
    fn script(self) -> &'static str {
        match self {
            Self::Bindfs => r#"bindfs "$@" "$stored" "$point""#,
            // By default it makes nothing on a disk with less than 4 GB of free space.
            Self::Mergerfs => r#"mergerfs "$@" -o minfreespace=0 "$stored" "$point""#,
            Self::Unionfs => r#"unionfs "$@" "$stored=RW" "$point""#,
            Self::Gocryptfs => {
                r#"gocryptfs -init -q -scryptn 10 -extpass "echo secret" "$stored"
                gocryptfs -q -extpass "echo secret" "$@" "$stored" "$point""#
            }
            Self::Sshfs => {
                r#"printf '#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n' >"$stored/ssh"
                chmod +x "$stored/ssh"
                mkdir "$stored/files"
                sshfs -o ssh_command="$stored/ssh" "$@" "here:$stored/files" "$point""#
            }
            Self::Rclone => r#"rclone mount --config /dev/null --daemon "$@" "$stored" "$point""#,
            Self::Ntfs3g => {
                r#"truncate -s 64M "$stored/image"
                mkntfs -q -F "$stored/image"
                ntfs-3g "$@" "$stored/image" "$point""#
            }
            // The device is detached when the program closes it.
            Self::ExfatFuse => {
                r#"truncate -s 64M "$stored/image"
                mkfs.exfat "$stored/image"
                device=$(losetup -f --show "$stored/image")
                trap 'losetup -d "$device"' EXIT
                mount.exfat-fuse "$@" "$device" "$point""#
            }
            // It listens to ports, so it gets a network of its own.
            Self::Juicefs => {
                r#"meta=sqlite3://$stored/meta.db
                [ -e "$stored/meta.db" ] ||
                    juicefs format --no-update --storage file --bucket "$stored/objects/" "$meta" test
                unshare --net juicefs mount -d --no-usage-report --enable-xattr --log "$stored/log" \
                    --cache-dir "$stored/cache-${point##*/}" "$@" "$meta" "$point""#
            }
        }
    }

    /// Starts the program with these options, on an empty filesystem. What it stores is deleted after the unmounting.
    ///
    /// # Errors
    /// Fails without root, if a program is missing, or if the kernel refuses the mount.
    pub fn mount(self, options: &[&str]) -> Result<Mounted, Skip> {
        let stored = match self {
            // It waits for its database to be written.
            Self::Juicefs => Scratch::in_memory(),
            _ => Scratch::new(),
        };
        let point = self.start(&stored, options)?;
        let stored = Some(stored);
        Ok(Mounted { point, stored })
    }

    /// Mounts the same filesystem once more, as another client of it. It must be unmounted first.
    ///
    /// # Errors
    /// As [`mount`](Self::mount).
    ///
    /// # Panics
    /// Panics if `first` does not store its files in a directory.
    pub fn mount_again(self, first: &Mounted) -> Result<Mounted, Skip> {
        let stored = first.stored.as_ref().expect("a directory with the files");
        let point = self.start(stored, &[])?;
        Ok(Mounted {
            point,
            stored: None,
        })
    }

    fn start(self, stored: &Scratch, options: &[&str]) -> Result<Scratch, Skip> {
        need_root(&format!("{self:?}"))?;
        let point = Scratch::new();
        let script = format!(
            "set -e; PATH=$PATH:/usr/sbin:/sbin; stored=$1; point=$2; shift 2\n{}",
            self.script()
        );
        let fixed = ["-c", &script, "sh"].map(OsStr::new);
        let places = [stored.path(), point.path()].map(Path::as_os_str);
        let options = options.iter().map(OsStr::new);
        let before = device(&point);
        run("sh", fixed.into_iter().chain(places).chain(options))?;
        if device(&point) == before {
            return Err(Skip(format!("{self:?} does not mount")));
        }
        Ok(point)
    }
}

fn device(point: &Scratch) -> Option<u64> {
    fs::metadata(point).ok().map(|stat| stat.dev())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn mergerfs_makes_entries_even_if_the_disk_has_little_free_space() {
        let options = ["-o", "minfreespace=1000000G"];
        let mount = crate::or_skip!(Program::Mergerfs.mount(&options));
        Tree::at(mount.path()).dir("d");
    }

    #[test]
    fn programs_mount_their_filesystems_and_end() {
        for program in [
            Program::Bindfs,
            Program::Mergerfs,
            Program::Unionfs,
            Program::Gocryptfs,
            Program::Sshfs,
            Program::Rclone,
            Program::Ntfs3g,
            Program::ExfatFuse,
        ] {
            let mount = crate::or_skip!(program.mount(&[]));
            let path = mount.path().to_owned();
            Tree::at(&path).file("a/b", b"content");
            assert_eq!(fs::read(path.join("a/b")).unwrap(), b"content");
            drop(mount);
            assert!(!path.exists(), "{program:?}");
        }
    }
}
