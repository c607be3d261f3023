//! Random trees, for the property tests of both commands.
//!
//! Names come from a small pool, so that trees collide where they are merged and operands nest.

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
use testkit::tree::Tree;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    File { content: Content, mode: u32 },
    Dir { entries: Entries, mode: u32 },
    Symlink { target: Target },
    Fifo { mode: u32 },
    Socket { mode: u32 },
}

pub(crate) type Entries = BTreeMap<OsString, Node>;

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// A pattern of so many bytes.
    Long(usize),
    /// So many bytes with data at these offsets.
    Holes(u64, Vec<u64>),
}

#[derive(Clone, Debug)]
pub(crate) enum Target {
    Verbatim(&'static str),
    /// A file of its own, beside the tree; no other symlink leads there.
    File,
    /// A directory beside the tree.
    Directory,
}

/// Which kinds of entries a tree may have.
#[allow(dead_code, reason = "only cpz has dests")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// All that takes no root.
    All,
    /// What a copy can be put over with an outcome that does not depend on the order of the listing, and
    /// without waiting for a reader: no FIFOs, and no symlinks to what is in the tree.
    Overwritable,
}

/// As many cases as `PROPTEST_CASES` says, else `default`.
pub(crate) fn config(default: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(default),
        max_shrink_iters: 400,
        // A tree that fails belongs into a test with a name.
        failure_persistence: None,
        ..Config::default()
    }
}

pub(crate) fn name() -> impl Strategy<Value = OsString> {
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

pub(crate) fn entries(kinds: Kinds) -> impl Strategy<Value = Entries> {
    btree_map(name(), node(kinds), 0..6)
}

pub(crate) fn node(kinds: Kinds) -> impl Strategy<Value = Node> {
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

/// Builds `entries` at `at`, with what their symlinks lead to in `beside`.
pub(crate) fn build(tree: &Tree, at: &Path, entries: &Entries) {
    let mut links = 0;
    build_entries(tree, at, entries, &mut links);
}

fn build_entries(tree: &Tree, at: &Path, entries: &Entries, links: &mut usize) {
    for (name, node) in entries {
        build_node(tree, &at.join(name), node, links);
    }
}

pub(crate) fn build_node(tree: &Tree, path: &Path, node: &Node, links: &mut usize) {
    match node {
        Node::File { content, mode } => {
            let tree = match content {
                Content::Bytes(bytes) => tree.file(path, bytes),
                Content::Long(len) => {
                    let pattern = (0..*len).map(|i| (i % 251) as u8).collect::<Vec<_>>();
                    tree.file(path, pattern)
                }
                Content::Holes(len, offsets) => {
                    let data = offsets.iter().map(|&at| (at % (len - 4), &b"data"[..]));
                    tree.sparse(path, *len, &data.collect::<Vec<_>>())
                }
            };
            tree.mode(*mode);
        }
        Node::Dir { entries, mode } => {
            let tree = tree.dir(path);
            build_entries(tree, path, entries, links);
            // Last, for it may be one that takes no entries.
            tree.select(path).mode(*mode);
        }
        Node::Symlink { target } => {
            let up = "../".repeat(path.components().count() - 1);
            *links += 1;
            match target {
                Target::Verbatim(target) => tree.symlink(path, target),
                Target::File => {
                    let name = format!("beside/{links}");
                    tree.file(&name, "beside")
                        .symlink(path, format!("{up}{name}"))
                }
                Target::Directory => tree
                    .dir("beside/dir")
                    .symlink(path, format!("{up}beside/dir")),
            };
        }
        Node::Fifo { mode } => {
            tree.fifo(path).mode(*mode);
        }
        Node::Socket { mode } => {
            tree.socket(path).mode(*mode);
        }
    }
}

/// All paths of `entries`, which are at `at`.
pub(crate) fn paths<'a>(at: &Path, entries: &'a Entries) -> Vec<(PathBuf, &'a Node)> {
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

/// What is named on the command line, before it is known what there is to name.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
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

pub(crate) fn operand() -> impl Strategy<Value = Operand> {
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
    /// The argument that names it, and the path in the tree that was chosen.
    pub(crate) fn among<'p>(&self, paths: &'p [(PathBuf, &Node)]) -> (OsString, Option<&'p Path>) {
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
