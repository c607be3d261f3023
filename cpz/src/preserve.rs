//! The state of `-p`, `-a`, `--preserve`, `--no-preserve` and `-Z`, later over earlier.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fuc_cli::console::Console;
use fuc_cli::flags::{UsageError, choose};
use fuc_cli::locale::Charset;
use fuc_engine::{ModePolicy, Preserve, Xattrs};

use crate::words::{ATTRIBUTES, Attribute};

/// The attributes to preserve, according to the flags so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PreserveFlags {
    /// The attributes without regard to the next field. Extended attributes are required if they were requested by their
    /// own name, but not as one of `all`.
    attributes: Preserve,
    /// `-a` was given, which warns of no attribute that cannot be preserved.
    is_archive: bool,
    /// The context was requested by its own name, which `--no-preserve=all` does not take back.
    requires_context: bool,
    /// The last value of `--context`, if the kernel has SELinux.
    given_context: Option<CString>,
}

impl PreserveFlags {
    /// Applies `-p`.
    pub(crate) fn preserve_default(&mut self) {
        self.attributes.mode = ModePolicy::Preserve;
        self.attributes.ownership = true;
        self.attributes.timestamps = true;
    }

    /// Applies `-a`, except for recursion and symbolic links.
    pub(crate) fn preserve_archive(&mut self) {
        self.preserve_one(Attribute::All);
        self.is_archive = true;
    }

    /// Applies `-d`, except for symbolic links.
    pub(crate) fn preserve_links(&mut self) {
        self.attributes.links = true;
    }

    /// Applies `--preserve`.
    pub(crate) fn preserve(
        &mut self,
        list: Option<&OsStr>,
        charset: Charset,
    ) -> Result<(), UsageError> {
        match list {
            None => self.preserve_default(),
            Some(list) => {
                for attribute in parse("--preserve", list, charset)? {
                    self.preserve_one(attribute);
                }
            }
        }
        Ok(())
    }

    /// Applies `--no-preserve`.
    pub(crate) fn discard(&mut self, list: &OsStr, charset: Charset) -> Result<(), UsageError> {
        for attribute in parse("--no-preserve", list, charset)? {
            self.discard_one(attribute);
        }
        Ok(())
    }

    /// Applies `-Z` or `--context`. As in cp, the warning that the kernel lacks SELinux is printed immediately.
    pub(crate) fn set_context(&mut self, context: Option<&OsString>, console: &Console) {
        let Some(context) = context else {
            return;
        };
        if has_selinux() {
            let context = CString::new(context.as_bytes());
            self.given_context = Some(context.expect("BUG: a NUL in an argument"));
        } else {
            console.error("warning: ignoring --context; it requires an SELinux-enabled kernel");
        }
    }

    /// Returns the attributes that the engine is to preserve.
    pub(crate) fn attributes(&self) -> Preserve {
        let mut attributes = self.attributes;
        if self.is_archive && attributes.xattrs == Xattrs::Warn {
            attributes.xattrs = Xattrs::Try;
        }
        attributes
    }

    /// Returns the context that `--context` gives to all copies.
    pub(crate) fn given_context(&self) -> Option<CString> {
        self.given_context.clone()
    }

    /// Checks a context that was requested by name, as cp does once all flags are known.
    ///
    /// # Errors
    /// If another context was given, or if the kernel lacks SELinux.
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

    fn preserve_one(&mut self, attribute: Attribute) {
        match attribute {
            Attribute::Mode => self.attributes.mode = ModePolicy::Preserve,
            Attribute::Timestamps => self.attributes.timestamps = true,
            Attribute::Ownership => self.attributes.ownership = true,
            Attribute::Links => self.preserve_links(),
            Attribute::Context => {
                self.attributes.context = true;
                self.requires_context = true;
            }
            Attribute::Xattr => self.attributes.xattrs = Xattrs::Require,
            Attribute::All => {
                self.preserve_default();
                self.preserve_links();
                self.attributes.context = true;
                if self.attributes.xattrs == Xattrs::Leave {
                    self.attributes.xattrs = Xattrs::Warn;
                }
            }
        }
    }

    fn discard_one(&mut self, attribute: Attribute) {
        match attribute {
            Attribute::Mode => self.attributes.mode = ModePolicy::Discard,
            Attribute::Timestamps => self.attributes.timestamps = false,
            Attribute::Ownership => self.attributes.ownership = false,
            Attribute::Links => self.attributes.links = false,
            Attribute::Context => {
                self.attributes.context = false;
                self.requires_context = false;
            }
            Attribute::Xattr => self.attributes.xattrs = Xattrs::Leave,
            Attribute::All => {
                self.attributes = Preserve::default();
                self.attributes.mode = ModePolicy::Discard;
            }
        }
    }
}

fn has_selinux() -> bool {
    Path::new("/sys/fs/selinux/enforce").exists()
}

fn parse(flag: &str, list: &OsStr, charset: Charset) -> Result<Vec<Attribute>, UsageError> {
    list.as_bytes()
        .split(|&byte| byte == b',')
        .map(|word| choose(flag, OsStr::from_bytes(word), &ATTRIBUTES, charset))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_attributes_that_are_named_must_be_possible() {
        let kept = |lists: &[&str]| {
            let mut flags = PreserveFlags::default();
            for list in lists {
                let list = Some(OsStr::new(list));
                flags.preserve(list, Charset::Ascii).unwrap();
            }
            flags.attributes().xattrs
        };
        assert_eq!(kept(&["all"]), Xattrs::Warn);
        assert_eq!(kept(&["x", "all"]), Xattrs::Require);
        let mut archive = PreserveFlags::default();
        archive.preserve_archive();
        assert_eq!(archive.attributes(), Preserve::all());
    }
}
