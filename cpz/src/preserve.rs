//! What `-p`, `-a`, `--preserve`, `--no-preserve` and `-Z` come to, later over earlier.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fuc_cli::console::Console;
use fuc_cli::flags::{UsageError, choose};
use fuc_cli::locale::Charset;
use fuc_engine::{ModePolicy, Preserve, Xattrs};

use crate::words::{ATTRIBUTES, Attribute};

/// How much an attribute was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Wish {
    #[default]
    No,
    /// As one of all.
    IfPossible,
    /// By its own name.
    Must,
}

/// The attributes to be kept, as the flags so far have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    engine: Preserve,
    xattrs: Wish,
    keeps_context: bool,
    /// Of what cannot be kept and was not named, nothing is said.
    is_archive: bool,
    /// That the context is kept was asked for by its own name, which `--no-preserve=all` does
    /// not take back.
    requires_context: bool,
    /// The last value of `--context`, where there is SELinux.
    pub(crate) given_context: Option<CString>,
}

impl Kept {
    /// `-p`
    pub(crate) fn keep_the_usual(&mut self) {
        self.engine.mode = ModePolicy::Preserve;
        self.engine.ownership = true;
        self.engine.timestamps = true;
    }

    /// `-a`, but for what it says of directories and symbolic links.
    pub(crate) fn keep_all_quietly(&mut self) {
        self.keep(Attribute::All);
        self.is_archive = true;
    }

    /// `-d`, but for what it says of symbolic links; a part of `--preserve` too.
    pub(crate) fn keep_links(&mut self) {
        self.engine.links = true;
    }

    /// `--preserve`
    pub(crate) fn keep_these(
        &mut self,
        list: Option<&OsStr>,
        charset: Charset,
    ) -> Result<(), UsageError> {
        match list {
            None => self.keep_the_usual(),
            Some(list) => {
                for attribute in parse("--preserve", list, charset)? {
                    self.keep(attribute);
                }
            }
        }
        Ok(())
    }

    /// `--no-preserve`
    pub(crate) fn drop_these(&mut self, list: &OsStr, charset: Charset) -> Result<(), UsageError> {
        for attribute in parse("--no-preserve", list, charset)? {
            self.drop(attribute);
        }
        Ok(())
    }

    /// `-Z`, `--context`. Says at once, as cp does, what has no meaning without SELinux.
    pub(crate) fn set_context(&mut self, context: Option<&OsString>, console: &Console) {
        let Some(context) = context else {
            return;
        };
        if has_selinux() {
            let context = CString::new(context.as_bytes());
            self.given_context = Some(context.expect("BUG: a NUL in an argument"));
        } else {
            let line = b"warning: ignoring --context; it requires an SELinux-enabled kernel";
            console.error(&line.to_vec().into());
        }
    }

    fn keep(&mut self, attribute: Attribute) {
        match attribute {
            Attribute::Mode => self.engine.mode = ModePolicy::Preserve,
            Attribute::Timestamps => self.engine.timestamps = true,
            Attribute::Ownership => self.engine.ownership = true,
            Attribute::Links => self.keep_links(),
            Attribute::Context => {
                self.keeps_context = true;
                self.requires_context = true;
            }
            Attribute::Xattr => self.xattrs = Wish::Must,
            Attribute::All => {
                self.keep_the_usual();
                self.keep_links();
                self.keeps_context = true;
                if self.xattrs == Wish::No {
                    self.xattrs = Wish::IfPossible;
                }
            }
        }
    }

    fn drop(&mut self, attribute: Attribute) {
        match attribute {
            Attribute::Mode => self.engine.mode = ModePolicy::Discard,
            Attribute::Timestamps => self.engine.timestamps = false,
            Attribute::Ownership => self.engine.ownership = false,
            Attribute::Links => self.engine.links = false,
            Attribute::Context => {
                self.keeps_context = false;
                self.requires_context = false;
            }
            Attribute::Xattr => self.xattrs = Wish::No,
            Attribute::All => {
                self.engine = Preserve::default();
                self.engine.mode = ModePolicy::Discard;
                self.xattrs = Wish::No;
                self.keeps_context = false;
            }
        }
    }

    /// What the engine is to do.
    pub(crate) fn engine(&self) -> Preserve {
        let mut engine = self.engine;
        engine.context = self.keeps_context;
        engine.xattrs = match self.xattrs {
            Wish::Must => Xattrs::Require,
            Wish::IfPossible if self.is_archive => Xattrs::Try,
            Wish::IfPossible => Xattrs::Warn,
            Wish::No => Xattrs::Leave,
        };
        engine
    }

    /// # Errors
    /// As of cp: a context that cannot be kept, because of the kernel or because of another one.
    pub(crate) fn check_context(&self) -> Result<(), UsageError> {
        if self.requires_context && self.given_context.is_some() {
            return Err(UsageError::plain(
                "cannot set target context and preserve it",
            ));
        }
        if self.requires_context && !has_selinux() {
            let line = "cannot preserve security context without an SELinux-enabled kernel";
            return Err(UsageError::plain(line));
        }
        Ok(())
    }
}

fn has_selinux() -> bool {
    Path::new("/sys/fs/selinux/enforce").exists()
}

fn parse(what: &str, list: &OsStr, charset: Charset) -> Result<Vec<Attribute>, UsageError> {
    list.as_bytes()
        .split(|&byte| byte == b',')
        .map(|word| choose(what, OsStr::from_bytes(word), &ATTRIBUTES, charset))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(flags: &[(bool, &str)]) -> Preserve {
        let mut kept = Kept::default();
        for (keeps, list) in flags {
            let list = OsStr::new(list);
            let parsed = match keeps {
                true => kept.keep_these(Some(list), Charset::Ascii),
                false => kept.drop_these(list, Charset::Ascii),
            };
            parsed.unwrap();
        }
        kept.engine()
    }

    #[test]
    fn the_later_flag_wins() {
        assert!(kept(&[(false, "links"), (true, "mode,links")]).links);
        assert!(!kept(&[(true, "all"), (false, "links")]).links);
        assert_eq!(
            kept(&[(true, "all"), (false, "mode")]).mode,
            ModePolicy::Discard
        );
    }

    #[test]
    fn only_what_is_named_must_be_possible() {
        assert_eq!(kept(&[(true, "all")]).xattrs, Xattrs::Warn);
        assert_eq!(kept(&[(true, "x"), (true, "all")]).xattrs, Xattrs::Require);
        assert_eq!(kept(&[(true, "x"), (false, "x")]).xattrs, Xattrs::Leave);
        let mut archive = Kept::default();
        archive.keep_all_quietly();
        assert_eq!(archive.engine(), Preserve::all());
    }
}
