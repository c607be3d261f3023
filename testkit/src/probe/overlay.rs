//! Overlays, as containers use them: changes to a lower layer are made in an upper layer.

use std::path::{Path, PathBuf};

use super::{Fs, LoopMount, Mounted, Skip};
use crate::tree::{Scratch, Tree};

/// Says on which filesystems the layers of an [`Overlay`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// Both layers are on one filesystem.
    Together,
    /// Each layer is on a filesystem of its own, so their inode numbers may clash.
    Apart,
}

/// An overlay with layers in memory. It is unmounted when this is dropped.
#[derive(Debug)]
pub struct Overlay {
    // Fields are dropped in this order: the overlay is unmounted before its layers.
    mounted: Mounted,
    layers: (LoopMount, Option<LoopMount>),
}

impl Overlay {
    /// Mounts an overlay. `below` builds the lower layer. The `options`, such as `index=on`, are those
    /// of `mount -o` besides the layers.
    ///
    /// # Errors
    /// Fails without root, or if the kernel refuses the mount.
    pub fn new(layers: Layers, options: &[&str], below: impl FnOnce(&Tree)) -> Result<Self, Skip> {
        let lower = LoopMount::new(Fs::Tmpfs, 64)?;
        let upper = match layers {
            Layers::Together => None,
            Layers::Apart => Some(LoopMount::new(Fs::Tmpfs, 64)?),
        };
        let top = upper.as_ref().unwrap_or(&lower).path();
        Tree::at(top).dir("upper").dir("work");
        below(&Tree::at(lower.path().join("lower")));
        let places = [
            format!("lowerdir={}/lower", lower.path().display()),
            format!("upperdir={}/upper", top.display()),
            format!("workdir={}/work", top.display()),
        ];
        let all = [&places.each_ref().map(String::as_str), options].concat();
        let options = ["-t", "overlay", "-o", &all.join(",")];
        Ok(Self {
            mounted: Mounted::new(Scratch::new(), None, &options, "overlay".as_ref())?,
            layers: (lower, upper),
        })
    }

    /// Returns the mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// Returns the path of an entry.
    #[must_use]
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// Returns the lower layer.
    #[must_use]
    pub fn lower(&self) -> PathBuf {
        self.layers.0.path().join("lower")
    }

    /// Returns the layer that takes the changes.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        let (lower, upper) = &self.layers;
        upper.as_ref().unwrap_or(lower).path().join("upper")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_shows_its_lower_layer_and_is_unmounted() {
        for layers in [Layers::Together, Layers::Apart] {
            let below = |tree: &Tree| {
                tree.file("d/f", b"content");
            };
            let overlay = crate::or_skip!(Overlay::new(layers, &["index=on"], below));
            let path = overlay.path().to_owned();
            assert_eq!(std::fs::read(path.join("d/f")).unwrap(), b"content");
            drop(overlay);
            assert!(!path.exists());
        }
    }
}
