//! Compares our command with GNU's. Each runs in one of two equal trees. Afterwards the trees, the exit status
//! and both streams must be equal, apart from the command's name and the order of lines.

use std::{
    ffi::{OsStr, OsString},
    fs,
    ops::RangeInclusive,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use super::{
    Input, Outcome, Run, Status, Words,
    compare::{difference, replaced},
    twins::{Twins, now, since},
    wrapped::{Link, lend},
};
use crate::{
    probe::{FuseMount, Habits, Skip, gnu, newest_gnu},
    snapshot::{Attributes, NEVER, Snapshot},
    tree::{Scratch, Tree},
    util::note,
};

/// Stands for the path of the tree in arguments and in what is compared.
const PWD: &str = "$PWD";

/// The status of a script that could not prepare a run. No command ends with it.
const CANNOT_PREPARE: Status = Status::Exit(99);

/// The status of a shell that does not find a program.
const NOT_FOUND: Status = Status::Exit(127);

/// The result of a command in its tree.
#[derive(Debug)]
pub struct Observed {
    /// The path by which the command was called.
    pub program: PathBuf,
    /// Its status and its output.
    pub outcome: Outcome,
    /// Its tree, afterwards unless stated otherwise.
    pub tree: Snapshot,
}

/// A comparison with GNU under construction.
#[derive(Clone, Debug)]
pub struct Parity {
    ours: PathBuf,
    gnu: String,
    /// The settings that both commands have in common.
    run: Run,
    attributes: Attributes,
    twins: Twins,
    scripts: Option<[String; 2]>,
    has_gnus_name: bool,
    only_newest: bool,
    /// A directory of each tree that is served while the program runs.
    served: Option<(String, Habits)>,
}

impl Parity {
    /// Prepares to compare the program at `ours` with the GNU program `gnu`, see [`gnu`](gnu()). All attributes except atimes count.
    /// Times within the run are all equal.
    pub fn new(ours: impl AsRef<Path>, gnu: &str) -> Self {
        Self {
            ours: ours.as_ref().to_owned(),
            gnu: gnu.to_owned(),
            run: Run::new(""),
            attributes: Attributes::ALL - Attributes::ATIME,
            twins: Twins::default(),
            scripts: None,
            has_gnus_name: false,
            only_newest: false,
            served: None,
        }
    }

    fn map(mut self, change: impl FnOnce(Run) -> Run) -> Self {
        self.run = change(self.run);
        self
    }

    /// Adds arguments. `$PWD` in one becomes the absolute path of the tree.
    #[must_use]
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.map(|run| run.args(args))
    }

    /// Adds arguments, by words.
    #[must_use]
    pub fn words(self, words: impl Words) -> Self {
        self.args(words.words())
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.map(|run| run.env(name, value))
    }

    /// Sets the bytes that both can read from stdin: the answers to their prompts.
    #[must_use]
    pub fn stdin(self, bytes: impl AsRef<[u8]>) -> Self {
        self.map(|run| run.stdin(bytes))
    }

    /// Sets the kind of stdin of both, by default a pipe.
    #[must_use]
    pub fn input(self, input: Input) -> Self {
        self.map(|run| run.input(input))
    }

    /// Sets the attributes of the trees that count.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Runs both as this user, and gives the user all entries of the current user. That drops set-id bits.
    #[must_use]
    pub fn uid(mut self, uid: u32) -> Self {
        self.twins.owner = Some(uid);
        self.map(|run| run.uid(uid))
    }

    /// Makes the trees in `dir`, for a comparison on a certain filesystem.
    #[must_use]
    pub fn on(mut self, dir: impl AsRef<Path>) -> Self {
        self.twins.parent = Some(dir.as_ref().to_owned());
        self
    }

    /// Serves the directory `name` of each tree while the program runs. Trees are built and compared as they are stored.
    #[must_use]
    pub fn served(mut self, name: &str, habits: Habits) -> Self {
        self.served = Some((name.to_owned(), habits));
        self
    }

    /// Runs both by this shell script, which has `"$@"` in place of the command line. A script can close streams
    /// or set limits and the umask. If it ends with status 99, it could not prepare that, and nothing is compared.
    #[must_use]
    pub fn in_script(self, script: &str) -> Self {
        self.in_scripts(script, script)
    }

    /// Runs each by a script of its own.
    #[must_use]
    pub fn in_scripts(mut self, ours: &str, gnu: &str) -> Self {
        self.scripts = Some([ours.to_owned(), gnu.to_owned()]);
        self
    }

    /// Runs ours by a link with the name of GNU's.
    #[must_use]
    pub fn under_gnus_name(mut self) -> Self {
        self.has_gnus_name = true;
        self
    }

    /// Skips if GNU's program is older than the reference, because older releases behave differently.
    #[must_use]
    pub fn only_newest(mut self) -> Self {
        self.only_newest = true;
        self
    }

    /// Returns GNU's program, or the reason why there is nothing to compare with.
    #[track_caller]
    pub(super) fn gnu_program(&self) -> Result<PathBuf, Skip> {
        match self.only_newest {
            true => newest_gnu(&self.gnu),
            false => gnu(&self.gnu),
        }
    }

    /// Builds the trees, runs both programs, and compares. Returns our outcome for further assertions, or `None`
    /// if the comparison was skipped because the GNU program is missing.
    ///
    /// # Panics
    /// Panics with both trees and both outputs if they differ.
    #[track_caller]
    pub fn check(&self, build: impl Fn(&Tree)) -> Option<Outcome> {
        match self.observe(build) {
            Ok([ours, gnu]) => {
                let difference = difference(&ours, &gnu);
                let (program, args) = (self.ours.display(), &self.run.args);
                assert!(
                    difference.is_empty(),
                    "{program} differs from GNU\nargs: {args:?}\n{difference}"
                );
                Some(ours.outcome)
            }
            Err(skip) => {
                skip.announce();
                None
            }
        }
    }

    /// Builds the trees and runs both programs. Returns what ours did, and what GNU's did.
    ///
    /// # Errors
    /// If the GNU program is missing, or if a script cannot prepare the run.
    #[track_caller]
    pub fn observe(&self, build: impl Fn(&Tree)) -> Result<[Observed; 2], Skip> {
        let gnu = self.gnu_program()?;
        let trees: [_; 2] = self.twins.make(build);
        let link = self.linked();
        let ours = link.as_ref().map_or(self.ours.clone(), Link::path);
        // One period for both: what both have preserved is then as fresh for one as for the other.
        let begin = now();
        let [ours, gnu] = [(ours, 0), (gnu, 1)].map(|(it, side)| self.run(it, side, &trees[side]));
        if self.scripts.is_some() {
            prepared([&ours.1, &gnu.1])?;
        }
        let period = since(begin);
        let observed = |(program, outcome), tree| Observed {
            program,
            outcome,
            tree: self.snapshot(tree, &period),
        };
        Ok([observed(ours, &trees[0]), observed(gnu, &trees[1])])
    }

    /// Builds a tree and runs ours. Returns what it did.
    #[track_caller]
    pub fn observe_ours(&self, build: impl Fn(&Tree)) -> Observed {
        let [scratch] = self.twins.make(build);
        let link = self.linked();
        let ours = link.as_ref().map_or(self.ours.clone(), Link::path);
        let (program, outcome) = self.run(ours, 0, &scratch);
        Observed {
            program,
            outcome,
            tree: self.snapshot(&scratch, &NEVER),
        }
    }

    /// Makes the link by which ours has the name of GNU's, if it has.
    fn linked(&self) -> Option<Link> {
        let makes = || Link::named(&self.gnu, &self.ours);
        self.has_gnus_name.then(makes)
    }

    /// Builds a tree, and runs ours with `--dry-run` and then with `--verbose` in it. Returns what both did, each with the
    /// tree from before it.
    #[track_caller]
    pub fn observe_dry_run(&self, build: impl Fn(&Tree)) -> [Observed; 2] {
        let [scratch] = self.twins.make(build);
        ["--dry-run", "--verbose"].map(|first| {
            let tree = self.snapshot(&scratch, &NEVER);
            let mut parity = self.clone();
            parity.run.args.insert(0, first.into());
            let (program, outcome) = parity.run(self.ours.clone(), 0, &scratch);
            Observed {
                program,
                outcome,
                tree,
            }
        })
    }

    /// Runs a program in a tree, perhaps by the script of its `side`. Returns the path by which it was called, too.
    #[track_caller]
    fn run(&self, program: PathBuf, side: usize, tree: &Scratch) -> (PathBuf, Outcome) {
        // A script may become another user.
        let lent = lend(&program);
        let program = lent.as_ref().map_or(program, Link::path);
        let pwd = tree.path().as_os_str().as_bytes();
        let real = |arg: &OsString| replaced(arg.as_bytes(), PWD.as_bytes(), pwd);
        let args = self.run.args.iter().map(real);
        let mut run = self.run.clone().current_dir(tree);
        run.program = program.clone().into();
        run.args = args.map(OsString::from_vec).collect();
        if let Some(scripts) = &self.scripts {
            // The script may add arguments after the bare name.
            run.program = program.file_name().unwrap_or_default().to_owned();
            let dir = program.parent().filter(|dir| dir.is_absolute());
            run = run.with_programs(dir.map(Path::to_owned));
            run = run.under(Run::new("sh").args(["-c", &scripts[side], "sh"]));
        }
        let served = self
            .served
            .as_ref()
            .map(|(name, habits)| Served::begin(tree.at(name), habits));
        let mut outcome = run.output();
        drop(served);
        for stream in [&mut outcome.stdout, &mut outcome.stderr] {
            *stream = replaced(stream, pwd, PWD.as_bytes());
        }
        (program, outcome)
    }

    fn snapshot(&self, tree: &Scratch, fresh: &RangeInclusive<i64>) -> Snapshot {
        let snapshot = Snapshot::with_fresh_times(tree.path(), self.attributes, fresh);
        snapshot.with_targets(tree.path(), PWD)
    }
}

/// Checks that a script could prepare its runs, of which these are the outcomes.
fn prepared(outcomes: [&Outcome; 2]) -> Result<(), Skip> {
    let is_missing = outcomes.iter().all(|it| it.status == NOT_FOUND);
    let unprepared = |it: &&&Outcome| is_missing || it.status == CANNOT_PREPARE;
    match outcomes.iter().find(unprepared) {
        Some(outcome) => {
            let why = outcome.stderr_text();
            Err(Skip(format!("the script cannot prepare the run: {why}")))
        }
        None => Ok(()),
    }
}

/// A directory that is served at its own place, as long as this lives.
struct Served {
    mount: Option<FuseMount>,
    point: PathBuf,
    stored: PathBuf,
}

impl Served {
    #[track_caller]
    fn begin(point: PathBuf, habits: &Habits) -> Self {
        let tree = point.parent().expect("a directory of a tree");
        let stored = tree.with_extension("stored");
        fs::rename(&point, &stored).expect("the tree has such a directory");
        fs::create_dir(&point).expect("the name is free");
        let mount = FuseMount::over(&stored, &point, habits.clone());
        Self {
            mount: Some(mount.expect("such a filesystem was mounted before")),
            point,
            stored,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.mount = None;
        let removed = fs::remove_dir(&self.point);
        let moved = removed.and_then(|()| fs::rename(&self.stored, &self.point));
        // The test may be failing already.
        if let Err(error) = moved {
            note(&format!(
                "{} is not restored: {error}",
                self.point.display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;

    /// Writes a command that runs GNU's, renames it in messages, and then runs `change`.
    fn impostor(scratch: &Scratch, change: &str) -> PathBuf {
        let script = format!(
            "#!/bin/sh\nrm \"$@\" 2>err; s=$?; sed 's/^rm:/rmz:/' err >&2; rm err\n{change}\nexit $s\n"
        );
        Tree::at(scratch.path()).file("rmz", script).mode(0o755);
        scratch.at("rmz")
    }

    fn build(tree: &Tree) {
        tree.plant("a/b/c=content d/e= l->a");
    }

    #[test]
    fn each_difference_is_seen() {
        for (change, expected) in [
            ("", None),
            ("touch extra", Some("+ extra: RegularFile")),
            ("s=2", Some("differs from GNU")),
            ("echo a word more", Some("\na word more")),
            ("echo rmz: a word more >&2", Some("rmz: a word more")),
            (
                "touch -hd @5 l",
                Some("~ l: mtime 1000000000.000000000 != mtime 5.000000000"),
            ),
        ] {
            let scratch = Scratch::new();
            let parity = Parity::new(impostor(&scratch, change), "rm");
            let parity = parity.words("-rv a missing $PWD/d");
            let checked = panic::catch_unwind(|| parity.check(build));
            let message = checked.err().map(|it| *it.downcast::<String>().unwrap());
            let is_seen = |text| message.as_ref().is_some_and(|it| it.contains(text));
            let is_right = expected.map_or(message.is_none(), is_seen);
            assert!(is_right, "{change}: {message:?}");
        }
    }

    #[test]
    fn scripts_run_both() {
        let scratch = Scratch::new();
        let outcome = Parity::new(impostor(&scratch, ""), "rm")
            .args(["-r", "a", "missing"])
            .in_script(r#"echo before; "$@"; echo "$?"; exit 7"#)
            .check(build);
        let outcome = outcome.expect("rm is GNU's here");
        assert_eq!(outcome.stdout_text(), "before\n1\n");
        assert_eq!(outcome.status, Status::Exit(7));
    }

    #[test]
    fn a_script_that_cannot_prepare_the_run_skips_it() {
        let scratch = Scratch::new();
        let cannot = "echo no mounts >&2; exit 99";
        let runs = r#"exec "$@""#;
        for (ours, gnu, reason) in [
            (cannot, cannot, "no mounts"),
            (cannot, runs, "no mounts"),
            ("exec none", "exec none", "not found"),
        ] {
            let observed = Parity::new(impostor(&scratch, "echo more"), "rm")
                .in_scripts(ours, gnu)
                .observe(build);
            let Skip(why) = observed.expect_err(reason);
            assert!(why.contains(reason), "{why}");
        }
    }

    #[test]
    #[should_panic(expected = "only ours says this")]
    fn scripts_run_both_even_if_they_have_one_name() {
        let scratch = Scratch::new();
        scratch.plant("rmz='#!/bin/sh\necho only ours says this\n' %755");
        Parity::new(scratch.at("rmz"), "rm")
            .under_gnus_name()
            .args(["-r", "a"])
            .in_script(r#"exec "$@""#)
            .check(build);
    }

    #[test]
    fn another_user_gets_the_trees() {
        if !crate::probe::is_root() {
            crate::skip!("only root can become another user");
        }
        let scratch = Scratch::new();
        Parity::new(impostor(&scratch, ""), "rm")
            .args(["-r", "a", "locked"])
            .uid(crate::probe::NOBODY)
            .check(|tree| {
                build(tree);
                tree.plant("locked/f= locked %555");
            });
    }
}
