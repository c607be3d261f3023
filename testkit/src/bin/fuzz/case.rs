//! A case: a tree, a command line, and the circumstances of a run.
//!
//! Paths consist of letters from a small pool, so that operands, symlinks and hard links often lead to entries, also
//! after shrinking has removed entries. When a case is built and run, the letters become the names of files.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
    time::Duration,
};

use testkit::{
    probe::NOBODY,
    run::{Parity, Status},
    tree::{Tree, memory},
};

/// The pair of commands that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Rm,
    Cp,
}

impl Pair {
    pub(crate) fn gnu(self) -> &'static str {
        match self {
            Self::Rm => "rm",
            Self::Cp => "cp",
        }
    }

    pub(crate) fn ours(self) -> &'static str {
        match self {
            Self::Rm => "rmz",
            Self::Cp => "cpz",
        }
    }
}

/// A random command line in a random tree.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) pair: Pair,
    /// The operands and the options. An option comes with its value, perhaps after a space.
    pub(crate) words: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    /// The file names for which the [`LETTERS`] stand.
    pub(crate) names: Vec<OsString>,
    pub(crate) circumstances: Circumstances,
}

#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    /// Ours is called by its own name, and GNU's gets `-r` as its first argument. Otherwise ours has GNU's name.
    pub(crate) has_own_name: bool,
    /// The user is not root, and owns what root would own.
    pub(crate) is_nobody: bool,
    pub(crate) umask: u32,
    pub(crate) has_few_descriptors: bool,
    pub(crate) threads: u32,
    /// Lines of stdin.
    pub(crate) answers: Vec<&'static str>,
    /// Environment variables and their values, such as `LC_ALL=C`, or empty texts.
    pub(crate) variables: [&'static str; 2],
}

/// The components of random paths.
pub(crate) const LETTERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// An entry of the tree. It is left out if its place is taken, or if a parent is not a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: String,
    pub(crate) what: What,
    pub(crate) attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    File(String),
    /// A file of so many zeros.
    Zeros(usize),
    /// A file of this length with data at this offset.
    Sparse(u64, u64),
    Dir,
    /// A symbolic link with this target.
    Symlink(String),
    /// A further name of the entry there, unless that is a directory or missing.
    HardLink(String),
    Fifo,
    Socket,
    Device(u32, u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    /// Permission bits, or the default of the type.
    pub(crate) mode: Option<u32>,
    /// User and group, or those of the user that runs the command.
    pub(crate) owner: Option<(u32, u32)>,
    /// The time of modification, since [`EPOCH`].
    pub(crate) time: Duration,
    pub(crate) xattr: Option<(&'static str, &'static str)>,
    /// An entry of an ACL, as for `setfacl -m`.
    pub(crate) acl: Option<String>,
}

/// 2001-09-09. Times that the builder sets are near this one, so that times of the run can be told from them.
const EPOCH: Duration = Duration::from_secs(1_000_000_000);

/// The working directory in the tree. The directories above it catch what leaves it by `..`.
const WORKING: &str = "t/x/y/w";

/// The text in paths that stands for the absolute path of the working directory.
pub(crate) const PWD: &str = "$PWD";

/// The status of a command that waits for another process at a FIFO, and is killed.
pub(crate) const HUNG: Status = Status::Signal(9);

impl Case {
    /// Prepares the comparison of both commands.
    pub(crate) fn parity(&self, ours: &Path) -> Parity {
        let Circumstances {
            has_own_name,
            is_nobody,
            umask,
            has_few_descriptors,
            threads,
            variables,
            ..
        } = &self.circumstances;
        let limit = if *has_few_descriptors {
            "ulimit -n 24"
        } else {
            ":"
        };
        let killed = match self.has_entry(|entry| entry.what == What::Fifo) {
            true => "timeout -s KILL 2",
            false => "",
        };
        let script = |first| {
            let program = "program=$1; shift";
            format!(
                r#"umask {umask:04o}; {limit}; cd {WORKING}; {program}; exec {killed} "$program" {first} "$@""#
            )
        };
        let gnus_first = if *has_own_name { "-r" } else { "" };
        let mut parity = Parity::new(ours, self.pair.gnu())
            .only_newest()
            .on(memory())
            .args(self.arguments())
            .stdin(self.stdin())
            .env(
                self.pair.ours().to_uppercase() + "_THREADS",
                threads.to_string(),
            )
            .env("LC_ALL", "")
            .in_scripts(&script(""), &script(gnus_first));
        for (name, value) in variables.iter().filter_map(|it| it.split_once('=')) {
            parity = parity.env(name, value);
        }
        if *is_nobody {
            parity = parity.uid(NOBODY);
        }
        match has_own_name {
            true => parity,
            false => parity.under_gnus_name(),
        }
    }

    /// Returns the arguments of both commands, with `$PWD` in place of the path of the tree.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let words = self.words.iter().flat_map(|word| word.split(' '));
        let working = match self.words.iter().any(|word| word.contains("--pa")) {
            // With `--parents`, the path of the tree would be a part of the dest, and each command has a tree of its own.
            true => ".".to_owned(),
            false => format!("{PWD}/{WORKING}"),
        };
        words
            .map(|word| self.named(&word.replace(PWD, &working)))
            .collect()
    }

    /// Returns the answers to prompts. If prompts come in no certain order, all are the same, and more than there are
    /// prompts.
    fn stdin(&self) -> String {
        let Circumstances {
            threads, answers, ..
        } = &self.circumstances;
        let lines = match self.pair == Pair::Rm && *threads == 1 {
            true => answers.clone(),
            false => vec![*answers.first().unwrap_or(&""); 60],
        };
        lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    /// Puts names in place of letters.
    fn named(&self, text: &str) -> OsString {
        let ends = ['/', '='];
        let parts = text.split_inclusive(ends).flat_map(|part| {
            let letter = part.trim_end_matches(ends);
            let slot = LETTERS.iter().position(|it| *it == letter);
            let name = slot.map_or(OsStr::new(letter), |slot| &self.names[slot]);
            [name.as_bytes(), &part.as_bytes()[letter.len()..]].concat()
        });
        OsString::from_vec(parts.collect())
    }

    /// Builds the tree.
    pub(crate) fn build(&self, top: &Tree) {
        let tree = Tree::at(top.path().join(WORKING));
        let made = self.entries.iter().filter(|entry| self.make(&tree, entry));
        // Entries would change the times of directories that are set before.
        for entry in made.collect::<Vec<_>>() {
            self.set(&tree, entry);
        }
    }

    /// Makes an entry. Returns `true` if the entry is new and has attributes of its own.
    fn make(&self, tree: &Tree, Entry { at, what, .. }: &Entry) -> bool {
        let path = tree.path().join(self.named(at));
        let kind = |path: &Path| path.symlink_metadata().ok().map(|stat| stat.file_type());
        let mut parents = path.ancestors().skip(1);
        if kind(&path).is_some() || !parents.all(|path| kind(path).is_none_or(|it| it.is_dir())) {
            return false;
        }
        match what {
            What::Dir => tree.dir(path),
            What::File(content) => tree.file(path, content),
            What::Zeros(bytes) => tree.file(path, vec![0; *bytes]),
            What::Sparse(bytes, offset) => tree.sparse(path, *bytes, &[(*offset, b"data")]),
            What::Symlink(target) => {
                let pwd = tree.path().to_str().expect("BUG: the path is text");
                tree.symlink(path, self.named(&target.replace(PWD, pwd)))
            }
            What::HardLink(other) => {
                let other = tree.path().join(self.named(other));
                if kind(&other).is_some_and(|it| !it.is_dir()) {
                    tree.hardlink(other, path);
                }
                return false;
            }
            What::Fifo => tree.fifo(path),
            What::Socket => tree.socket(path),
            What::Device(major, minor) => tree.char_device(path, *major, *minor),
        };
        true
    }

    /// Sets the attributes of an entry. A change of the owner clears set-id bits.
    fn set(
        &self,
        tree: &Tree,
        Entry {
            at,
            what,
            attributes,
        }: &Entry,
    ) {
        let entry = tree.select(self.named(at));
        if let Some((user, group)) = attributes.owner {
            entry.owner(user, group);
        }
        let has_content = matches!(what, What::Dir | What::File(_) | What::Zeros(_));
        if let Some((name, value)) = attributes.xattr.filter(|_| has_content) {
            entry.xattr(name, value);
        }
        if !matches!(what, What::Symlink(_)) {
            attributes.mode.map(|mode| entry.mode(mode));
            let mut acl = attributes.acl.iter();
            acl.find(|acl| *what == What::Dir || !acl.starts_with("d:"))
                .map(|acl| entry.acl(acl));
        }
        let time = EPOCH + attributes.time;
        entry.mtime(time).atime(time);
    }

    /// Returns `true` if an entry of the tree is meant.
    pub(crate) fn has_entry(&self, is_meant: impl Fn(&Entry) -> bool) -> bool {
        self.entries.iter().any(is_meant)
    }

    /// Returns `true` if the command line has this short option or this long one, perhaps shortened. A name can look like
    /// options.
    pub(crate) fn has_option(&self, short: char, long: &str) -> bool {
        self.arguments().iter().any(|argument| {
            let text = argument.to_string_lossy();
            match text.strip_prefix("--") {
                Some(option) => {
                    let name = option.split('=').next().unwrap_or_default();
                    !name.is_empty() && long.starts_with(name)
                }
                None => text.starts_with('-') && text.contains(short),
            }
        })
    }

    /// Returns the operands before the dest of cp, and the dests of cp: the values of options, or the last operand.
    pub(crate) fn sources_and_dests(&self) -> (Vec<&str>, Vec<&str>) {
        let operands = self.words.iter().filter(|word| !word.starts_with('-'));
        let mut operands: Vec<&str> = operands.map(String::as_str).collect();
        let options = ["-t ", "--target-directory "];
        let words = self.words.iter();
        let values = words.flat_map(|word| options.map(|option| word.strip_prefix(option)));
        let mut dests: Vec<&str> = values.flatten().collect();
        if dests.is_empty() && self.pair == Pair::Cp {
            dests.extend(operands.pop());
        }
        (operands, dests)
    }
}
