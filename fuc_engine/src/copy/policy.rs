//! The options of a run and the rules of the system, and answers that need no system call except the umask.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use super::decide::mode::{self, Origin};
use super::facts::Symlinks;
use super::options::{CopyOp, Dereference, LinkKind, ModePolicy, Reflink, Replace};
use crate::setup::Execution;
use crate::sys::{self, Stat};

pub(super) struct Policy<'a> {
    pub(super) options: &'a CopyOp<'a>,
    /// The effective user, which may read the files that it owns.
    pub(super) user: u32,
    /// Says whether symbolic links below an operand are followed; cached.
    pub(super) symlinks_of_entries: Symlinks,
    /// `true` if attributes are set after the content. Cached, because each entry needs it.
    pub(super) sets_attributes: bool,
    /// `true` if content is written, and not only attributes.
    pub(super) writes_content: bool,
    /// `true` if creating an empty file completes the copy of one.
    pub(super) creates_empty_files: bool,
    /// Computed when it is first needed.
    umask: OnceLock<u32>,
    /// Computed when it is first needed.
    changes_files_of_others: OnceLock<bool>,
    /// Read when it is first needed.
    xattr_conf: OnceLock<XattrConf>,
}

impl<'a> Policy<'a> {
    pub(super) fn new(options: &'a CopyOp<'a>) -> Self {
        let is_real = options.execution == Execution::Real;
        let sets_attributes = options.preserve.sets_attributes() || options.context.is_some();
        let sets_attributes = is_real && sets_attributes;
        Self {
            options,
            user: sys::effective_user(),
            symlinks_of_entries: match options.dereference {
                Dereference::Never | Dereference::Operands => Symlinks::NoFollow,
                Dereference::Always => Symlinks::Follow,
            },
            sets_attributes,
            writes_content: is_real && !options.attributes_only,
            creates_empty_files: !sets_attributes
                && !options.closes_empty_files
                && options.reflink != Reflink::Always
                && !options.verify
                && !options.durable
                && !options.reports_methods
                && is_real,
            umask: OnceLock::new(),
            changes_files_of_others: OnceLock::new(),
            xattr_conf: OnceLock::new(),
        }
    }

    /// Returns `true` if attributes of files of other users may be changed. Root may lack that right in a container.
    pub(super) fn changes_files_of_others(&self) -> bool {
        let changes = &self.changes_files_of_others;
        *changes.get_or_init(sys::may_change_files_of_others)
    }

    /// Returns `true` if the content of FIFOs and devices is read, instead of making new ones.
    pub(super) fn reads_special_content(&self) -> bool {
        self.options.copy_contents || !self.options.recursive
    }

    /// Returns `true` if no existing dest is replaced.
    pub(super) fn keeps_existing(&self) -> bool {
        matches!(
            self.options.rules.replace,
            Replace::None | Replace::NoneAndFail
        )
    }

    pub(super) fn makes_hard_links(&self) -> bool {
        self.options.as_links == Some(LinkKind::Hard)
    }

    /// Returns whether an operand that is a symbolic link is followed.
    pub(super) fn symlinks_of_operands(&self) -> Symlinks {
        match self.options.dereference {
            Dereference::Never => Symlinks::NoFollow,
            Dereference::Operands | Dereference::Always => Symlinks::Follow,
        }
    }

    /// Returns `true` if this owner does not use what it owns against this run: it is root or the user itself.
    pub(super) fn trusts(&self, owner: u32) -> bool {
        const ROOT: u32 = 0;
        [self.user, ROOT].contains(&owner)
    }

    /// Returns the permission bits for creating the copy of a source with `mode`.
    pub(super) fn creation_mode(&self, mode: u32) -> u32 {
        mode::for_creation(&self.options.preserve, mode)
    }

    /// Returns the mode for creating the copy of a directory with `mode`.
    pub(super) fn directory_creation_mode(&self, mode: u32) -> u32 {
        mode::for_directory(&self.options.preserve, mode)
    }

    /// Returns the mode to set in the end on the copy of a source with `mode`, type included.
    pub(super) fn last_mode(&self, mode: u32, origin: Origin) -> Option<u32> {
        mode::when_complete(&self.options.preserve, mode, origin, || self.umask())
    }

    /// Returns the mode to set in the end on the copy of a directory with `mode`. `present` is
    /// the mode that the copy has until then.
    pub(super) fn last_directory_mode(
        &self,
        mode: u32,
        present: u32,
        origin: Origin,
    ) -> Option<u32> {
        let preserve = &self.options.preserve;
        mode::when_directory_complete(preserve, mode, present, origin, || self.umask())
    }

    /// Returns `true` if a dest may be another name of a file of the older copy, which is not changed.
    pub(super) fn may_be_in_older_copy(&self, dest: &Stat) -> bool {
        self.options.link_dest.is_some() && sys::links(dest) > 1
    }

    /// Returns `true` if a dest loses the ACL that its source does not have.
    pub(super) fn replaces_acls(&self) -> bool {
        self.sets_attributes && self.options.preserve.mode != ModePolicy::Default
    }

    /// Returns what becomes of an extended attribute that is not a POSIX ACL.
    pub(super) fn xattr_action(&self, name: &CStr) -> XattrAction {
        self.xattr_conf.get_or_init(XattrConf::read).action(name)
    }

    pub(super) fn umask(&self) -> u32 {
        *self.umask.get_or_init(sys::umask)
    }
}

/// Says what becomes of an extended attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XattrAction {
    Copy,
    /// It is an ACL: it is copied if modes are preserved, and after the mode.
    KeepWithMode,
    Skip,
}

/// The rules for systems without the file. It holds what Debian's file does.
const DEFAULT: &[u8] = b"system.nfs4_acl permissions
system.nfs4acl permissions
trusted.SGI_* skip
xfsroot.* skip
user.Beagle.* skip
security.evm skip
afs.* skip
";

/// Returns `true` for the attributes of POSIX ACLs, which are copied with the mode.
pub(super) fn is_posix_acl(name: &CStr) -> bool {
    [sys::ACCESS_ACL, sys::DEFAULT_ACL].contains(&name)
}

/// The rules of the system about extended attributes: `/etc/xattr.conf`, which `cp` obeys too.
///
/// Each line has a pattern, as of `fnmatch` without flags, and an action. The last line that matches a name decides.
struct XattrConf {
    /// Patterns and actions, the last line first.
    rules: Vec<(CString, XattrAction)>,
}

impl XattrConf {
    /// Reads the rules of the system.
    fn read() -> Self {
        Self::parse(&sys::read_xattr_conf().unwrap_or_else(|_| DEFAULT.to_vec()))
    }

    fn parse(text: &[u8]) -> Self {
        let rule = |line: &[u8]| {
            let line = line.split(|&byte| byte == b'#').next()?;
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            let (pattern, action) = (words.next()?, words.next()?);
            let action = match action {
                b"skip" => XattrAction::Skip,
                b"permissions" => XattrAction::KeepWithMode,
                _ => return None,
            };
            Some((CString::new(pattern).ok()?, action))
        };
        let lines = text.split(|&byte| byte == b'\n').rev();
        Self {
            rules: lines.filter_map(rule).collect(),
        }
    }

    fn action(&self, name: &CStr) -> XattrAction {
        let mut rules = self.rules.iter();
        let found = rules.find(|(pattern, _)| sys::matches_pattern(pattern, name));
        found.map_or(XattrAction::Copy, |&(_, action)| action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_matches_decides() {
        let conf = XattrConf::parse(
            b"# comment\nuser.one skip\nuser.one permissions # as well\n\
              user.t* permissions\nuser.two skip\nuser.a*c\tskip\nuser.x nonsense\nuser.y\n",
        );
        for (name, action) in [
            (c"user.one", XattrAction::KeepWithMode),
            (c"user.two", XattrAction::Skip),
            (c"user.three", XattrAction::KeepWithMode),
            (c"user.a/b.c", XattrAction::Skip),
            (c"user.x", XattrAction::Copy),
            (c"user.y", XattrAction::Copy),
            (c"comment", XattrAction::Copy),
        ] {
            assert_eq!(conf.action(name), action, "{name:?}");
        }
    }
}
