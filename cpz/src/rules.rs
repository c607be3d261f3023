//! The flags and environment variables about existing dests, and the rules that they resolve to.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fuc_cli::flags::{UsageError, choose};
use fuc_cli::locale::Charset;
use fuc_engine::{Backup, BackupNaming, DestRules, Replace};

use crate::words::{CONTROL, UPDATE};

/// The last of `-i` and `-n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clobber {
    /// Neither `-i` nor `-n` was given.
    Default,
    Ask,
    Never,
}

/// The state of the flags, later over earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleFlags {
    pub(crate) clobber: Clobber,
    pub(crate) remove_destination: bool,
    pub(crate) keep_directory_symlink: bool,
    /// Set by `--resume`, which excludes other choices of dests to replace.
    pub(crate) resume: bool,
    update: Replace,
    makes_backups: bool,
    control: Option<OsString>,
    suffix: Option<OsString>,
}

impl RuleFlags {
    pub(crate) fn new() -> Self {
        Self {
            clobber: Clobber::Default,
            remove_destination: false,
            keep_directory_symlink: false,
            resume: false,
            update: Replace::All,
            makes_backups: false,
            control: None,
            suffix: None,
        }
    }

    pub(crate) fn update(
        &mut self,
        when: Option<&OsStr>,
        charset: Charset,
    ) -> Result<(), UsageError> {
        self.update = match when {
            None => Replace::Older,
            Some(when) => choose("--update", when, &UPDATE, charset)?,
        };
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

    /// Returns the rules that follow from the flags and the environment.
    ///
    /// # Errors
    /// If backups are requested of files that are never replaced, or with an unknown way of naming them. If
    /// `--resume` is combined with another choice of dests, or with backups.
    pub(crate) fn resolve(self, charset: Charset) -> Result<DestRules, UsageError> {
        let never = self.clobber == Clobber::Never;
        if self.makes_backups && (never || self.update == Replace::NoneAndFail) {
            let message = "--backup is mutually exclusive with -n or --update=none-fail";
            return Err(UsageError::with_help(message));
        }
        let asks = self.clobber == Clobber::Ask;
        let selects = never || asks || self.update != Replace::All;
        if self.resume && (selects || self.makes_backups) {
            let message = "--resume is mutually exclusive with -i, -n, --update and --backup";
            return Err(UsageError::with_help(message));
        }
        let mut rules = DestRules::default();
        rules.replace = match (never, self.resume) {
            (true, _) => Replace::None,
            (false, true) => Replace::Changed,
            (false, false) => self.update,
        };
        rules.ask = self.clobber == Clobber::Ask;
        rules.remove_first = self.remove_destination;
        rules.follow_links_to_directories = self.keep_directory_symlink;
        rules.create_through_links = env::var_os("POSIXLY_CORRECT").is_some();
        if self.makes_backups {
            let naming = naming(self.control.as_deref(), charset)?;
            rules.backup = naming.map(|naming| Backup {
                naming,
                suffix: usable_suffix(self.suffix),
            });
        }
        Ok(rules)
    }
}

/// Returns how backups are named, or `None` if none are made. An empty word counts as unset, on the
/// command line and in the environment.
fn naming(control: Option<&OsStr>, charset: Charset) -> Result<Option<BackupNaming>, UsageError> {
    if let Some(control) = control.filter(|control| !control.is_empty()) {
        return choose("backup type", control, &CONTROL, charset);
    }
    match env::var_os("VERSION_CONTROL").filter(|control| !control.is_empty()) {
        Some(control) => choose("$VERSION_CONTROL", &control, &CONTROL, charset),
        None => Ok(Some(BackupNaming::NumberedIfAny)),
    }
}

/// Returns the suffix of the flag, otherwise that of the environment, otherwise `~`. A suffix that is empty or holds
/// a slash counts as `~`.
fn usable_suffix(given: Option<OsString>) -> OsString {
    let is_usable = |suffix: &OsString| !suffix.is_empty() && !suffix.as_bytes().contains(&b'/');
    given
        .or_else(|| env::var_os("SIMPLE_BACKUP_SUFFIX"))
        .filter(is_usable)
        .unwrap_or_else(|| "~".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(flags: RuleFlags) -> Result<DestRules, String> {
        let text = |error: UsageError| String::from_utf8(error.message).unwrap();
        flags.resolve(Charset::Ascii).map_err(text)
    }

    #[test]
    fn no_flag_gives_the_default_rules() {
        assert_eq!(rules(RuleFlags::new()), Ok(DestRules::default()));
    }

    #[test]
    fn no_clobber_overrides_update() {
        let mut flags = RuleFlags::new();
        flags.clobber = Clobber::Never;
        flags.update(None, Charset::Ascii).unwrap();
        assert_eq!(rules(flags).unwrap().replace, Replace::None);
    }

    #[test]
    fn update_accepts_only_its_words() {
        let mut flags = RuleFlags::new();
        let refused = flags.update(Some("non".as_ref()), Charset::Ascii);
        assert!(
            refused
                .unwrap_err()
                .message
                .starts_with(b"ambiguous argument")
        );
        flags
            .update(Some("none-".as_ref()), Charset::Ascii)
            .unwrap();
        assert_eq!(rules(flags).unwrap().replace, Replace::NoneAndFail);
    }

    #[test]
    fn a_backup_excludes_no_clobber() {
        let mut flags = RuleFlags::new();
        flags.back_up(Some("none".into()));
        flags.clobber = Clobber::Never;
        assert!(
            rules(flags)
                .unwrap_err()
                .starts_with("--backup is mutually")
        );
    }

    #[test]
    fn a_suffix_with_a_slash_is_ignored() {
        assert_eq!(usable_suffix(Some("x/y".into())), "~");
        assert_eq!(usable_suffix(Some("".into())), "~");
        assert_eq!(usable_suffix(Some(".o".into())), ".o");
    }
}
