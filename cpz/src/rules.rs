//! The flags and environment variables about existing dests, and the rules that they resolve to.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fuc_cli::flags::{UsageError, choose, choose_or};
use fuc_cli::locale::Charset;
use fuc_engine::{Backup, DestRules, Replace};

use crate::words::{CONTROL, UPDATE};

/// The last of `-i` and `-n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clobber {
    /// Neither `-i` nor `-n` was given.
    #[default]
    Default,
    Ask,
    Never,
}

/// The state of the flags, later over earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleFlags {
    pub(crate) clobber: Clobber,
    /// Set by `--resume`, which excludes other choices of dests to replace.
    pub(crate) resume: bool,
    /// The rules that flags set directly. `--atomic` excludes other ways to clear a dest.
    pub(crate) dest: DestRules,
    update: Replace,
    makes_backups: bool,
    control: Option<OsString>,
    suffix: Option<OsString>,
}

impl RuleFlags {
    pub(crate) fn update(
        &mut self,
        when: Option<&OsStr>,
        charset: Charset,
    ) -> Result<(), UsageError> {
        self.update = choose_or(Replace::Older, "--update", when, &UPDATE, charset)?;
        Ok(())
    }

    pub(crate) fn back_up(&mut self, control: Option<OsString>) {
        self.makes_backups = true;
        if control.is_some() {
            self.control = control;
        }
    }

    pub(crate) fn suffix(&mut self, suffix: OsString) {
        self.makes_backups = true;
        self.suffix = Some(suffix);
    }

    /// Checks the flags against each other.
    ///
    /// # Errors
    /// If backups are requested of files that are never replaced, if `--resume` is combined with another
    /// choice of dests, or with backups, or if `--atomic` is combined with another way to clear a dest.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        let replaces_nothing = matches!(self.replace(), Replace::None | Replace::NoneAndFail);
        let selects = self.clobber == Clobber::Ask || self.replace() != Replace::All;
        UsageError::of_first(&[
            (
                self.makes_backups && replaces_nothing,
                // As in cp, the message does not name `--update=none`.
                "--backup is mutually exclusive with -n or --update=none-fail",
            ),
            (
                self.resume && (selects || self.makes_backups),
                "--resume is mutually exclusive with -i, -n, --update and --backup",
            ),
            (
                self.dest.atomic && (self.makes_backups || self.dest.remove_first),
                "--atomic is mutually exclusive with --backup and --remove-destination",
            ),
        ])
    }

    /// Returns which dests are replaced without `--resume`.
    fn replace(&self) -> Replace {
        match self.clobber {
            Clobber::Never => Replace::None,
            Clobber::Default | Clobber::Ask => self.update,
        }
    }

    /// Returns the rules that follow from the flags and the environment, after [`check`](Self::check).
    ///
    /// # Errors
    /// If a word for the naming of backups is unknown.
    pub(crate) fn resolve(self, charset: Charset) -> Result<DestRules, UsageError> {
        let mut rules = self.dest.clone();
        rules.replace = match self.resume {
            true => Replace::Changed,
            false => self.replace(),
        };
        rules.ask = self.clobber == Clobber::Ask;
        rules.create_through_links = env::var_os("POSIXLY_CORRECT").is_some();
        if self.makes_backups {
            rules.backup = naming(self.control.as_deref(), charset)?;
            rules.backup_suffix = usable_suffix(self.suffix);
        }
        Ok(rules)
    }
}

/// Returns how backups are named, or `None` if none are made. An empty word counts as unset, on the
/// command line and in the environment.
fn naming(control: Option<&OsStr>, charset: Charset) -> Result<Option<Backup>, UsageError> {
    if let Some(control) = control.filter(|control| !control.is_empty()) {
        return choose("backup type", control, &CONTROL, charset);
    }
    match env::var_os("VERSION_CONTROL").filter(|control| !control.is_empty()) {
        Some(control) => choose("$VERSION_CONTROL", &control, &CONTROL, charset),
        None => Ok(Some(Backup::NumberedIfAny)),
    }
}

/// Returns the suffix of the flag, otherwise that of the environment, otherwise `~`. A suffix that is empty or holds
/// a slash before other bytes counts as `~`. With a slash at its end, renaming a file to the backup fails.
fn usable_suffix(given: Option<OsString>) -> OsString {
    let is_usable = |suffix: &OsString| {
        let name = suffix.as_bytes();
        let last = name.iter().rposition(|&byte| byte != b'/');
        last.is_some_and(|last| !name[..last].contains(&b'/'))
    };
    given
        .or_else(|| env::var_os("SIMPLE_BACKUP_SUFFIX"))
        .filter(is_usable)
        .unwrap_or_else(|| "~".into())
}
