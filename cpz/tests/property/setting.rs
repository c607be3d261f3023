//! The command line of a case, and which cases are not compared.
//!
//! Left out or simplified, because GNU's outcome depends there on the order of the listing or on a reader:
//! - a directory copied into itself: GNU stops there, with part of the tree uncopied;
//! - a dest among the sources, if a source is a directory: what is read may be written to at the same time;
//! - dests that hold symlinks to each other, or FIFOs: what is written through one may be written again,
//!   and a FIFO waits for a reader;
//! - one directory copied to two places (`a/b a`, `a a/.`): cpz does that, while GNU "will not create hard
//!   link 'dest/a/b' to directory 'dest/b'";
//! - `-s` of relative sources over what exists: before GNU finds that it can make no such link, it has
//!   unlinked what was there; cpz leaves it alone;
//! - FIFOs as operands without `-r`, and anywhere with `--copy-contents`: they wait for a writer; sockets
//!   there, for which GNU unlinks the dest before it finds that it cannot open them.
//!
//! Left out with flags about dests that exist:
//! - `--parents` with a source that is absolute (the twins' own names would be part of the dest) or
//!   that may not exist (GNU leaves the directories that it has made by then with the modes for making);
//! - `--parents` with times and several sources: GNU changes what the earlier ones got;
//! - `--parents` without modes and with sticky directories: GNU drops the sticky bits of parents, and
//!   of no other directory;
//! - `--parents` as another user than root: GNU takes away the permission that the next source needs.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use testkit::random::{self, Node, Operand, Target};

use crate::{Case, Dest, User};

/// A case with its operands resolved.
pub(crate) struct Setting<'a> {
    case: &'a Case,
    /// All entries from which sources are chosen.
    there: Vec<(PathBuf, &'a Node)>,
    sources: Vec<Source>,
    dest: OsString,
    flags: Vec<&'static str>,
}

struct Source {
    argument: OsString,
    /// The existing path that the argument was made from.
    chosen: Option<PathBuf>,
}

impl Source {
    /// Returns `true` if the argument is a path as it was chosen, which leads through no symlink.
    fn is_plain(&self) -> bool {
        let is_chosen = |path: &PathBuf| path.as_os_str() == self.argument;
        self.chosen.as_ref().is_some_and(is_chosen)
    }
}

impl<'a> Setting<'a> {
    pub(crate) fn of(case: &'a Case) -> Self {
        let there = random::paths(Path::new("s"), &case.entries);
        let existing: Vec<(PathBuf, &Node)> = match &case.existing {
            Some(node @ Node::Dir { entries, .. }) => {
                let mut all = random::paths(Path::new("dest"), entries);
                all.push(("dest".into(), node));
                all
            }
            _ => Vec::new(),
        };
        let source = |operand: &Operand| {
            let (argument, chosen) = operand.among(&there);
            let chosen = chosen.map(Path::to_owned);
            Source { argument, chosen }
        };
        let sources = case.sources.iter().map(source).collect();
        let dest = match &case.dest {
            Dest::Verbatim(dest) => OsString::from(dest),
            Dest::InExisting(operand) => operand.among(&existing).0,
            Dest::AmongSources(operand) => operand.among(&there).0,
        };
        let mut setting = Self {
            case,
            there,
            sources,
            dest,
            flags: case.flags.clone(),
        };
        setting.simplify();
        setting
    }

    /// Changes a case that would be left out to a similar one that is compared.
    fn simplify(&mut self) {
        if self.reads_what_it_writes() {
            self.dest = "dest".into();
        }
        if self.dest == "dest/." && self.sets_modes() {
            self.dest = "dest".into();
        }
        if self.meets_a_directory_twice() {
            self.sources.truncate(1);
        }
    }

    pub(crate) fn has_flag(&self, flags: &[&str]) -> bool {
        self.flags.iter().any(|flag| flags.contains(flag))
    }

    /// Returns `true` if cp sets the mode of directories. By the name `dest/.` it then cannot reach a
    /// directory any more that has become unsearchable, and fails. cpz has it open.
    fn sets_modes(&self) -> bool {
        self.has_flag(&["-p", "-a", "--preserve=mode", "--preserve=all"])
    }

    fn has_entry(&self, is_one: impl Fn(&Node) -> bool) -> bool {
        self.there.iter().any(|(_, node)| is_one(node))
    }

    fn node_at(&self, path: &Path) -> Option<&Node> {
        let mut entries = self.there.iter();
        entries.find(|(p, _)| p == path).map(|(_, node)| *node)
    }

    fn follows_links(&self) -> bool {
        self.has_flag(&["-H", "-L", "-l"])
    }

    /// Returns why the case is left out; see the description of this file.
    pub(crate) fn exclusion(&self) -> Option<&'static str> {
        let reasons = [
            (self.opens_special_files(), "special files are opened"),
            (self.waits_for_a_fifo(), "a FIFO is read"),
            (self.climbs(), "an operand ends in dots"),
            (self.unlinks_for_no_link(), "-s of a relative source"),
            (self.copies_into_itself(), "a followed link leads up"),
            (self.loses_parents(), "--parents"),
        ];
        let found = reasons.into_iter().find(|(is_excluded, _)| *is_excluded);
        found.map(|(_, reason)| reason)
    }

    /// Returns `true` if a socket or FIFO would be opened. Sockets cannot be opened, and FIFOs wait for a writer.
    fn opens_special_files(&self) -> bool {
        self.has_flag(&["--copy-contents"])
            && self.has_entry(|node| matches!(node, Node::Fifo { .. } | Node::Socket { .. }))
    }

    fn waits_for_a_fifo(&self) -> bool {
        let is_recursive = self.has_flag(&["-r", "-R", "--recursive", "-a"]);
        !is_recursive && self.has_entry(is_fifo)
    }

    fn reads_what_it_writes(&self) -> bool {
        let is_file = |source: &Source| {
            let node = self.node_at(Path::new(&source.argument));
            source.is_plain() && node.is_some_and(|node| matches!(node, Node::File { .. }))
        };
        matches!(self.case.dest, Dest::AmongSources(_))
            && (!self.sources.iter().all(is_file) || self.has_entry(is_fifo))
    }

    /// Returns `true` if a source or the dest ends with `..`, so that it may contain all others.
    fn climbs(&self) -> bool {
        let ends_in_dots = |source: &Source| source.argument.as_bytes().ends_with(b"/..");
        self.dest.as_bytes().ends_with(b"..") || self.sources.iter().any(ends_in_dots)
    }

    fn unlinks_for_no_link(&self) -> bool {
        let is_relative = |source: &Source| !source.argument.as_bytes().starts_with(b"$PWD");
        self.has_flag(&["-s"])
            && self.case.existing.is_some()
            && self.sources.iter().any(is_relative)
    }

    /// Returns `true` if a followed link may lead to a directory above it, and so to the dest.
    fn copies_into_itself(&self) -> bool {
        let target = Target::Verbatim("..");
        self.follows_links()
            && self.has_entry(|node| matches!(node, Node::Symlink { target: t } if *t == target))
    }

    /// Returns `true` if two of the sources may be one directory under different names, or one of them may
    /// be in the other.
    fn meets_a_directory_twice(&self) -> bool {
        let mut dirs: Vec<&Path> = Vec::new();
        let mut unclear = 0;
        for source in &self.sources {
            let path = Path::new(&source.argument);
            let chosen = source.chosen.as_deref().unwrap_or(path);
            let is_plain = chosen.as_os_str() == path.as_os_str();
            match self.node_at(chosen) {
                Some(Node::Dir { .. }) if is_plain => dirs.push(path),
                Some(Node::File { .. } | Node::Fifo { .. } | Node::Socket { .. }) => {}
                Some(Node::Symlink { .. }) if is_plain && !self.follows_links() => {}
                _ => unclear += 1,
            }
        }
        let is_in_another = |dir: &&Path| dirs.iter().any(|d| d != dir && dir.starts_with(d));
        dirs.iter().any(is_in_another) || unclear > 0 && self.sources.len() > 1
    }

    fn loses_parents(&self) -> bool {
        let keeps_times = self.has_flag(&["-p", "-a", "--preserve=timestamps", "--preserve=all"]);
        self.has_flag(&["--parents"])
            && (self.case.user == User::Nobody
                || self.has_flag(&["--no-preserve=mode"]) && self.has_entry(is_sticky)
                || !self.sources.iter().all(Source::is_plain)
                || keeps_times && self.sources.len() > 1)
    }

    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let flags = self.flags.iter().copied().chain(["--"]);
        let sources = self.sources.iter().map(|source| source.argument.clone());
        let dest = [self.dest.clone()];
        flags
            .map(OsString::from)
            .chain(sources)
            .chain(dest)
            .collect()
    }
}

fn is_sticky(node: &Node) -> bool {
    matches!(node, Node::Dir { mode, .. } if mode & 0o1000 != 0)
}

fn is_fifo(node: &Node) -> bool {
    matches!(node, Node::Fifo { .. })
}
