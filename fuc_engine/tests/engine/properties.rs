//! Random trees for engines that share them.
//!
//! `PROPTEST_CASES=1000 cargo test -p fuc_engine --test engine random` tries more of them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use testkit::tree::Tree;

use crate::kit::unwritable;

#[derive(Clone, Debug)]
enum Kind {
    File(Vec<u8>),
    /// The length, and the offset of the only byte of data.
    Sparse(u32, u32),
    Symlink(String),
    Fifo,
    Socket,
}

/// A tree that a test builds.
#[derive(Clone, Debug)]
pub(crate) struct RandomTree {
    dirs: BTreeMap<PathBuf, u32>,
    leaves: BTreeMap<PathBuf, (Kind, u32)>,
}

impl RandomTree {
    pub(crate) fn build(&self, at: &Path) {
        let tree = Tree::at(at);
        for dir in self.dirs.keys() {
            tree.dir(dir);
        }
        for (path, (kind, mode)) in &self.leaves {
            match kind {
                Kind::File(content) => tree.file(path, content).mode(*mode),
                Kind::Sparse(length, data) => {
                    let data = u64::from(*data % (*length + 1));
                    let length = u64::from(*length) + 1;
                    tree.sparse(path, length, &[(data, b"x")]).mode(*mode)
                }
                Kind::Symlink(target) => tree.symlink(path, target),
                Kind::Fifo => tree.fifo(path).mode(*mode),
                Kind::Socket => tree.socket(path).mode(*mode),
            };
        }
        // The deepest come first, because a mode may make the entries below inaccessible.
        for (dir, mode) in self.dirs.iter().rev() {
            tree.select(dir).mode(*mode);
        }
    }
}

/// Generates directories with few different names, so that many are below others.
fn dir() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec("[abc]", 1..8).prop_map(PathBuf::from_iter)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::File(Vec::new())),
        4 => prop::collection::vec(any::<u8>(), 1..200).prop_map(Kind::File),
        1 => (1..300_000usize).prop_map(|size| Kind::File(vec![3; size])),
        1 => (8192..3_000_000u32, any::<u32>()).prop_map(|(len, at)| Kind::Sparse(len, at)),
        2 => "[a-z./]{1,20}".prop_map(Kind::Symlink),
        1 => Just(Kind::Fifo),
        1 => Just(Kind::Socket),
    ]
}

/// Generates trees of all types of entries.
pub(crate) fn tree() -> impl Strategy<Value = RandomTree> {
    // Modes that no usual umask changes. They let the owner read, for runs without root.
    let file_mode = prop_oneof![
        Just(0o644),
        Just(0o600),
        Just(0o755),
        Just(0o400),
        Just(0o444)
    ];
    let dir_mode = prop_oneof![Just(0o755), Just(0o700), Just(unwritable()), Just(0o1711)];
    let leaf = (dir(), "[u-z]{1,3}", kind(), file_mode);
    let dirs = prop::collection::btree_map(dir(), dir_mode, 0..20);
    (dirs, prop::collection::vec(leaf, 0..60)).prop_map(|(dirs, leaves)| RandomTree {
        dirs,
        leaves: leaves
            .into_iter()
            .map(|(dir, name, kind, mode)| (dir.join(name), (kind, mode)))
            .collect(),
    })
}

/// Returns how many cases to try.
pub(crate) fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES");
    ProptestConfig {
        cases: cases.map_or(8, |cases| cases.parse().expect("a number")),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
