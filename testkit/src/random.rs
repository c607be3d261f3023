//! Random trees and operands, for property tests of both commands.
//!
//! Names come from a small pool, so that merged trees collide and operands lie within each other.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::{Index, select},
    test_runner::Config,
};

use crate::tree::Tree;

/// A random entry, and everything below it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Node {
    File { content: Content, mode: u32 },
    Dir { entries: Entries, mode: u32 },
    Symlink { target: Target },
    Fifo { mode: u32 },
    Socket { mode: u32 },
}

/// The entries of a directory by their names.
pub type Entries = BTreeMap<OsString, Node>;

/// The content of a random file.
#[derive(Clone, Debug)]
pub enum Content {
    /// The file has these bytes.
    Bytes(Vec<u8>),
    /// A repeating pattern of this length in bytes.
    Long(usize),
    /// A sparse file: its length in bytes, and the offsets at which it has data.
    Holes(u64, Vec<u64>),
}

/// The target of a random symlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The target is this text, which may lead anywhere in the tree.
    Verbatim(&'static str),
    /// A file in the directory `beside`, to which no other symlink leads.
    File,
    /// The directory `beside/dir`.
    Directory,
}

/// The kinds of entries that a random tree may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// All kinds that an ordinary user can make.
    All,
    /// Kinds that a copy can overwrite with a result that does not depend on the order of the listing: no
    /// FIFOs, which wait for a reader, and no symlinks to other entries of the tree.
    Overwritable,
}

/// Configures proptest to run as many cases as `PROPTEST_CASES` says, and else `default`.
#[must_use]
pub fn config(default: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(default),
        max_shrink_iters: 400,
        // Do not save failed cases: each belongs in a test with a name.
        failure_persistence: None,
        ..Config::default()
    }
}

fn name() -> impl Strategy<Value = OsString> {
    let odd: Vec<&'static [u8]> = vec![
        b"new\nline",
        b"\xff\xfe",
        b"it's",
        b" ",
        b"-v",
        b"--",
        b"...",
        b"\"",
        b"\\",
        b"caf\xc3\xa9",
        b"$x",
        b"~",
    ];
    prop_oneof![
        6 => select(vec!["a", "b", "c", "d", "e", "f"]).prop_map(OsString::from),
        1 => select(odd).prop_map(|bytes| OsStr::from_bytes(bytes).to_owned()),
    ]
}

/// Generates the entries of a directory.
pub fn entries(kinds: Kinds) -> impl Strategy<Value = Entries> {
    btree_map(name(), node(kinds), 0..6)
}

/// Generates an entry.
pub fn node(kinds: Kinds) -> impl Strategy<Value = Node> {
    leaf(kinds).prop_recursive(4, 40, 5, |inner| {
        (btree_map(name(), inner, 0..5), dir_mode())
            .prop_map(|(entries, mode)| Node::Dir { entries, mode })
    })
}

fn leaf(kinds: Kinds) -> BoxedStrategy<Node> {
    let file = (content(), file_mode()).prop_map(|(content, mode)| Node::File { content, mode });
    let targets: Vec<Target> = match kinds {
        Kinds::All => ["nowhere", "a", "b/c", ".", "..", "/nowhere", "it's", "a/"]
            .map(Target::Verbatim)
            .to_vec(),
        Kinds::Overwritable => {
            vec![
                Target::Verbatim("nowhere at all"),
                Target::File,
                Target::Directory,
            ]
        }
    };
    let symlink = select(targets).prop_map(|target| Node::Symlink { target });
    let socket = file_mode().prop_map(|mode| Node::Socket { mode });
    match kinds {
        Kinds::All => {
            let fifo = file_mode().prop_map(|mode| Node::Fifo { mode });
            prop_oneof![8 => file, 3 => symlink, 1 => fifo, 1 => socket].boxed()
        }
        Kinds::Overwritable => prop_oneof![8 => file, 3 => symlink, 1 => socket].boxed(),
    }
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        3 => Just(Content::Bytes(Vec::new())),
        6 => vec(any::<u8>(), 1..40).prop_map(Content::Bytes),
        1 => (4_000_usize..200_000).prop_map(Content::Long),
        1 => (8_192_u64..1_000_000, vec(0_u64..1_000_000, 0..3))
            .prop_map(|(len, offsets)| Content::Holes(len, offsets)),
    ]
}

fn file_mode() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => Just(0o644),
        2 => select(vec![0o600, 0o755, 0o444, 0o664, 0o777]),
        1 => select(vec![0o000, 0o222, 0o111]),
    ]
}

fn dir_mode() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => Just(0o755),
        2 => select(vec![0o700, 0o777, 0o1777, 0o711]),
        2 => select(vec![0o000, 0o555, 0o444, 0o333, 0o111, 0o666, 0o222]),
    ]
}

/// Builds the entries of a directory in the directory `at` of `tree`.
#[track_caller]
pub fn build_entries(tree: &Tree, at: &Path, entries: &Entries) {
    Builder { tree, links: 0 }.entries(at, entries);
}

/// Builds an entry at the path `at` of `tree`.
#[track_caller]
pub fn build_node(tree: &Tree, at: &Path, node: &Node) {
    Builder { tree, links: 0 }.node(at, node);
}

struct Builder<'a> {
    tree: &'a Tree,
    /// The number of symlinks made so far. It names the files to which they lead.
    links: usize,
}

impl Builder<'_> {
    #[track_caller]
    fn entries(&mut self, at: &Path, entries: &Entries) {
        for (name, node) in entries {
            self.node(&at.join(name), node);
        }
    }

    #[track_caller]
    fn node(&mut self, path: &Path, node: &Node) {
        match node {
            Node::File { content, mode } => {
                self.file(path, content);
                self.tree.mode(*mode);
            }
            Node::Dir { entries, mode } => {
                self.tree.dir(path);
                self.entries(path, entries);
                // The mode comes last because it may forbid to add entries.
                self.tree.select(path).mode(*mode);
            }
            Node::Symlink { target } => self.symlink(path, target),
            Node::Fifo { mode } => {
                self.tree.fifo(path).mode(*mode);
            }
            Node::Socket { mode } => {
                self.tree.socket(path).mode(*mode);
            }
        }
    }

    #[track_caller]
    fn file(&self, path: &Path, content: &Content) {
        match content {
            Content::Bytes(bytes) => self.tree.file(path, bytes),
            Content::Long(len) => {
                let pattern = (0..*len).map(|i| (i % 251) as u8).collect::<Vec<_>>();
                self.tree.file(path, pattern)
            }
            Content::Holes(len, offsets) => {
                let data = offsets.iter().map(|&at| (at % (len - 4), &b"data"[..]));
                self.tree.sparse(path, *len, &data.collect::<Vec<_>>())
            }
        };
    }

    #[track_caller]
    fn symlink(&mut self, path: &Path, target: &Target) {
        let up = "../".repeat(path.components().count() - 1);
        self.links += 1;
        match target {
            Target::Verbatim(target) => self.tree.symlink(path, target),
            Target::File => {
                let name = format!("beside/{}", self.links);
                self.tree
                    .file(&name, "beside")
                    .symlink(path, format!("{up}{name}"))
            }
            Target::Directory => self
                .tree
                .dir("beside/dir")
                .symlink(path, format!("{up}beside/dir")),
        };
    }
}

/// Returns the paths of all entries of a tree whose top level is in the directory `at`.
#[must_use]
pub fn paths<'a>(at: &Path, entries: &'a Entries) -> Vec<(PathBuf, &'a Node)> {
    let mut found = Vec::new();
    for (name, node) in entries {
        let path = at.join(name);
        found.push((path.clone(), node));
        if let Node::Dir { entries, .. } = node {
            found.extend(paths(&path, entries));
        }
    }
    found
}

/// An operand of a command line, generated before it is known which paths exist.
#[derive(Clone, Debug)]
pub struct Operand {
    which: Which,
    before: &'static str,
    after: &'static str,
}

#[derive(Clone, Debug)]
enum Which {
    Existing(Index),
    Below(Index, OsString),
    Named(OsString),
}

/// Generates an operand: most name an existing path, some a missing one, and some have dots or slashes
/// added.
pub fn operand() -> impl Strategy<Value = Operand> {
    let which = prop_oneof![
        8 => any::<Index>().prop_map(Which::Existing),
        1 => (any::<Index>(), name()).prop_map(|(index, name)| Which::Below(index, name)),
        1 => name().prop_map(Which::Named),
    ];
    let before = prop_oneof![6 => Just(""), 1 => select(vec!["./", ".//", "$PWD/"])];
    let after = prop_oneof![8 => Just(""), 1 => select(vec!["/", "//", "/.", "/./", "/.."])];
    (which, before, after).prop_map(|(which, before, after)| Operand {
        which,
        before,
        after,
    })
}

impl Operand {
    /// Returns the argument for the command line, and the path among `paths` that it was made from.
    #[must_use]
    pub fn among<'p>(&self, paths: &'p [(PathBuf, &Node)]) -> (OsString, Option<&'p Path>) {
        let existing = |index: &Index| match paths.is_empty() {
            true => Path::new("nothing"),
            false => paths[index.index(paths.len())].0.as_path(),
        };
        let (path, chosen) = match &self.which {
            Which::Existing(index) => (existing(index).to_owned(), Some(existing(index))),
            Which::Below(index, name) => (existing(index).join(name), None),
            Which::Named(name) => (PathBuf::from(name), None),
        };
        let mut argument = self.before.as_bytes().to_vec();
        argument.extend(path.as_os_str().as_bytes());
        argument.extend(self.after.as_bytes());
        (OsString::from_vec(argument), chosen)
    }
}
