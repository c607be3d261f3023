//! Flags and variables about dests that exist, and what they come to.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fuc_cli::flags::{UsageError, choose};
use fuc_cli::locale::Charset;
use fuc_engine::{Backup, BackupNaming, DestRules, Replace};

use crate::words::{CONTROL, UPDATE};

/// Which of `-i` and `-n` came last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clobber {
    Unasked,
    Ask,
    Never,
}

/// What the flags say, later over earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleFlags {
    pub(crate) clobber: Clobber,
    pub(crate) remove_destination: bool,
    pub(crate) keep_directory_symlink: bool,
    update: Replace,
    makes_backups: bool,
    control: Option<OsString>,
    suffix: Option<OsString>,
}

impl RuleFlags {
    pub(crate) fn new() -> Self {
        Self {
            clobber: Clobber::Unasked,
            remove_destination: false,
            keep_directory_symlink: false,
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

    /// The rules, with the environment taken into account.
    ///
    /// # Errors
    /// Backups of what is never replaced, and words that are no kind of backup.
    pub(crate) fn resolve(self, charset: Charset) -> Result<DestRules, UsageError> {
        let keeps = self.clobber == Clobber::Never;
        if self.makes_backups && (keeps || self.update == Replace::NoneAndFail) {
            let message = "--backup is mutually exclusive with -n or --update=none-fail";
            return Err(UsageError::with_help(message));
        }
        let mut rules = DestRules::default();
        rules.replace = if keeps { Replace::None } else { self.update };
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

/// An empty word, on the command line or in the environment, is none.
fn naming(control: Option<&OsStr>, charset: Charset) -> Result<Option<BackupNaming>, UsageError> {
    if let Some(control) = control.filter(|control| !control.is_empty()) {
        return choose("backup type", control, &CONTROL, charset);
    }
    match env::var_os("VERSION_CONTROL").filter(|control| !control.is_empty()) {
        Some(control) => choose("$VERSION_CONTROL", &control, &CONTROL, charset),
        None => Ok(Some(BackupNaming::NumberedIfAny)),
    }
}

/// The suffix of the flag, else of the environment; one that would lead elsewhere is none.
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
    fn no_flag_is_no_rule() {
        assert_eq!(rules(RuleFlags::new()), Ok(DestRules::default()));
    }

    #[test]
    fn no_clobber_counts_for_more_than_update() {
        let mut flags = RuleFlags::new();
        flags.clobber = Clobber::Never;
        flags.update(None, Charset::Ascii).unwrap();
        assert_eq!(rules(flags).unwrap().replace, Replace::None);
    }

    #[test]
    fn update_wants_one_of_its_words() {
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
    fn nothing_that_is_kept_is_backed_up() {
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
    fn a_suffix_with_a_slash_is_none() {
        assert_eq!(usable_suffix(Some("x/y".into())), "~");
        assert_eq!(usable_suffix(Some("".into())), "~");
        assert_eq!(usable_suffix(Some(".o".into())), ".o");
    }
}
