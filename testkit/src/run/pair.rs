//! A command of ours and its GNU counterpart, with shortcuts for the usual comparisons.

use std::path::Path;

use super::{Link, Outcome, Parity, Run, Table, Words, normal_lines, twin};
use crate::{
    probe::{NOBODY, Skip, is_root},
    tree::{Scratch, Tree},
};

/// A command of ours and the GNU command that it replaces. Comparisons run both with `-r` first, unless
/// a method says otherwise.
///
/// ```no_run
/// use testkit::run::Pair;
///
/// const RM: Pair = Pair::new("/path/to/rmz", "rm");
///
/// RM.check("-v a", |tree| {
///     tree.file("a/b", b"content");
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    ours: &'static str,
    gnu: &'static str,
    only_newest: bool,
}

impl Pair {
    /// Pairs the program at `ours` with the GNU program `gnu`.
    #[must_use]
    pub const fn new(ours: &'static str, gnu: &'static str) -> Self {
        Self {
            ours,
            gnu,
            only_newest: false,
        }
    }

    /// Limits all comparisons to the newest release, see [`Parity::only_newest`].
    #[must_use]
    pub const fn only_newest(self) -> Self {
        Self {
            only_newest: true,
            ..self
        }
    }

    /// Starts a comparison.
    #[must_use]
    pub fn parity(&self) -> Parity {
        self.bare().args(["-r"])
    }

    /// Starts a table of command lines.
    #[must_use]
    pub fn table<'a>(self) -> Table<'a> {
        Table::of(self)
    }

    /// Runs all rows of a table, see [`Table::rows`].
    ///
    /// # Panics
    /// If a row fails.
    #[track_caller]
    pub fn rows(self, text: &str) {
        self.table().rows(text);
    }

    /// Returns the names of both commands, ours first.
    pub(super) fn names(&self) -> [&'static str; 2] {
        let ours = self.ours.rsplit('/').next();
        [ours.unwrap_or(self.ours), self.gnu]
    }

    pub(super) fn bare(&self) -> Parity {
        let parity = Parity::new(self.ours, self.gnu);
        match self.only_newest {
            true => parity.only_newest(),
            false => parity,
        }
    }

    /// Compares both commands; see [`Parity::check`].
    #[track_caller]
    pub fn check(&self, args: impl Words, build: impl Fn(&Tree)) -> Option<Outcome> {
        self.parity().words(args).check(build)
    }

    /// Compares both commands, run by an ordinary user who owns the trees. Skips unless the test runs as root.
    #[track_caller]
    pub fn check_as_nobody(&self, args: impl Words, build: impl Fn(&Tree)) {
        if !is_root() {
            return Skip("only root can become another user".into()).announce();
        }
        self.parity().words(args).uid(NOBODY).check(build);
    }

    /// Compares both commands without `-r`, with ours under GNU's name, so that it has GNU's defaults.
    #[track_caller]
    pub fn check_strict(&self, args: impl Words, build: impl Fn(&Tree)) {
        self.strict().words(args).check(build);
    }

    /// Starts a comparison without `-r`, with ours under GNU's name.
    #[must_use]
    pub fn strict(&self) -> Parity {
        self.bare().under_gnus_name()
    }

    /// Asserts that both commands end with the same status and the same messages on stderr, whatever they
    /// do to their trees. Returns our tree, in which ours has run even if the comparison is skipped.
    ///
    /// # Panics
    /// If the statuses or the messages differ.
    #[track_caller]
    pub fn check_messages(&self, args: impl Words, build: impl Fn(&Tree)) -> Scratch {
        let args = args.words();
        let (ours, gnu) = twin(build);
        let run = |program: &Path, tree: &Scratch| {
            let run = Run::new(program).arg("-r").args(&args);
            let outcome = run.current_dir(tree).output();
            let messages = normal_lines(&outcome.stderr, program);
            (outcome.status, messages)
        };
        let by_ours = run(self.ours.as_ref(), &ours);
        match self.bare().gnu_program() {
            Ok(program) => assert_eq!(by_ours, run(&program, &gnu), "ours, GNU's"),
            Err(skip) => skip.announce(),
        }
        ours
    }

    /// Makes a symlink to our command under another name.
    #[must_use]
    #[track_caller]
    pub fn link(&self, name: &str) -> Link {
        Link::named(name, self.ours)
    }
}
