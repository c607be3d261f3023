//! Copies between all kinds of filesystems, with entries of all types.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, Skip},
    tree::{Tree, noise},
};

use crate::support::CP;

/// A mounted filesystem, and an empty directory on it.
struct Place {
    /// An overlay, which is unmounted before its layers.
    overlay: Option<Overlay>,
    mount: LoopMount,
}

struct Overlay(PathBuf);

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

impl Place {
    fn on(fs: Fs) -> Result<Self, Skip> {
        let mount = LoopMount::new(fs, 300)?;
        Ok(Self {
            overlay: None,
            mount,
        })
    }

    /// Mounts an overlay over a tmpfs. `below` builds the lower layer.
    fn overlay(below: impl FnOnce(&Tree)) -> Result<Self, Skip> {
        let mount = LoopMount::new(Fs::Tmpfs, 64)?;
        let tree = Tree::at(mount.path());
        tree.dir("upper").dir("work").dir("point");
        below(&Tree::at(mount.path().join("lower")));
        let dir = mount.path().display();
        let options = format!("lowerdir={dir}/lower,upperdir={dir}/upper,workdir={dir}/work");
        let point = tree.path().join("point");
        let status = Command::new("mount")
            .args(["-t", "overlay", "-o", &options, "overlay"])
            .arg(&point)
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(Skip("no overlayfs".to_owned()));
        }
        Ok(Self {
            overlay: Some(Overlay(point)),
            mount,
        })
    }

    fn path(&self) -> &Path {
        match &self.overlay {
            Some(Overlay(point)) => point,
            None => self.mount.path(),
        }
    }
}

fn build(tree: &Tree) {
    tree.file("d/a/content", noise(10_000))
        .mode(0o751)
        .file("d/a/empty", "")
        .mode(0o400)
        .file("d/large", noise((5 << 20) + 3))
        .sparse("d/holes", 3 << 20, &[(1 << 20, &noise(1 << 16))])
        .sparse("d/hole", 1 << 20, &[])
        .file("d/twin", noise(100))
        .hardlink("d/twin", "d/other-twin")
        .symlink("d/link", "a/content")
        .symlink("d/dangling", "nowhere")
        .fifo("d/pipe")
        .socket("d/socket")
        .char_device("d/null", 1, 3)
        .dir("d/empty-dir")
        .select("d/a")
        .mode(0o1555);
}

/// Compares cpz with cp, from `from` to each kind of filesystem.
#[track_caller]
fn copies_to_each(from: &Place) {
    let source = from.path().join("d").display().to_string();
    for fs in [Fs::Tmpfs, Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        let to = or_skip!(Place::on(fs));
        copies(&source, &to);
    }
    let overlay = or_skip!(Place::overlay(|_| {}));
    copies(&source, &overlay);
    copies(&source, from);
}

#[track_caller]
fn copies(source: &str, to: &Place) {
    let parity = |args: &[&str]| CP.parity().args(args).on(to.path());
    parity(&[source, "new"]).check(|_| {});
    parity(&["-L", "--sparse=always", source, "old"]).check(|tree| {
        tree.file("old/d/large", noise(100_000))
            .file("old/d/a/content", b"old")
            .mode(0o600);
    });
}

#[test]
fn copies_from_tmpfs() {
    let from = or_skip!(Place::on(Fs::Tmpfs));
    build(&Tree::at(from.path()));
    copies_to_each(&from);
}

#[test]
fn copies_from_ext4() {
    let from = or_skip!(Place::on(Fs::Ext4));
    build(&Tree::at(from.path()));
    copies_to_each(&from);
}

#[test]
fn copies_from_xfs() {
    let from = or_skip!(Place::on(Fs::Xfs));
    build(&Tree::at(from.path()));
    copies_to_each(&from);
}

#[test]
fn copies_from_btrfs() {
    let from = or_skip!(Place::on(Fs::Btrfs));
    build(&Tree::at(from.path()));
    copies_to_each(&from);
}

#[test]
fn copies_from_an_overlay() {
    let from = or_skip!(Place::overlay(build));
    copies_to_each(&from);
}

#[test]
fn copies_from_several_filesystems_in_one_run() {
    let places = [
        or_skip!(Place::on(Fs::Tmpfs)),
        or_skip!(Place::on(Fs::Ext4)),
        or_skip!(Place::on(Fs::Xfs)),
        or_skip!(Place::on(Fs::Btrfs)),
    ];
    let sources: Vec<String> = (0..)
        .zip(&places)
        .map(|(number, place)| {
            let tree = Tree::at(place.path().join(number.to_string()));
            build(&tree);
            tree.path().display().to_string()
        })
        .collect();
    let args = sources.iter().map(String::as_str).chain(["into"]);
    CP.check(args, |tree| {
        tree.dir("into");
    });
}
