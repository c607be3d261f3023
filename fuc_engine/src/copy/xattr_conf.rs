//! The rules of the system about extended attributes: `/etc/xattr.conf`, which `cp` obeys too.
//!
//! Each line has a pattern, as of `fnmatch` without flags and without classes of characters, and an action. The last line that matches a name decides.

use std::ffi::CStr;

use crate::sys;

/// Says what becomes of an extended attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
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

/// The attributes that are always ACLs.
const POSIX_ACLS: [&CStr; 2] = [sys::ACCESS_ACL, sys::DEFAULT_ACL];

/// Returns `true` for the attributes of POSIX ACLs, which are copied with the mode.
pub(super) fn is_posix_acl(name: &CStr) -> bool {
    POSIX_ACLS.contains(&name)
}

pub(super) struct XattrConf {
    /// Patterns and actions, the last line first.
    rules: Vec<(Vec<u8>, Action)>,
}

impl XattrConf {
    /// Reads the rules of the system.
    pub(super) fn read() -> Self {
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
                b"skip" => Action::Skip,
                b"permissions" => Action::KeepWithMode,
                _ => return None,
            };
            Some((pattern.to_vec(), action))
        };
        let lines = text.split(|&byte| byte == b'\n').rev();
        Self {
            rules: lines.filter_map(rule).collect(),
        }
    }

    pub(super) fn action(&self, name: &CStr) -> Action {
        let matching = |(pattern, _): &&(Vec<u8>, _)| matches(pattern, name.to_bytes());
        self.rules
            .iter()
            .find(matching)
            .map_or(Action::Copy, |&(_, action)| action)
    }
}

/// Returns `true` if `name` matches a pattern as of `fnmatch` without flags. Classes of characters are unknown.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], _) => name.is_empty(),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        (_, []) => false,
        ([b'?', rest @ ..], [_, name @ ..]) => matches(rest, name),
        ([b'[', rest @ ..], [first, name @ ..]) => match set_matches(rest, *first) {
            Some((is_in, rest)) => is_in && matches(rest, name),
            None => *first == b'[' && matches(rest, name),
        },
        ([b'\\', literal, rest @ ..], [first, name @ ..])
        | ([literal, rest @ ..], [first, name @ ..]) => literal == first && matches(rest, name),
    }
}

/// Finds a byte in the set that `pattern` begins with, after its `[`. Returns the pattern after the set, or
/// `None` if the set has no end.
fn set_matches(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (is_negated, mut set) = match pattern {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let (mut is_first, mut is_in) = (true, false);
    loop {
        let range;
        (range, set) = match set {
            [b']', rest @ ..] if !is_first => return Some((is_in != is_negated, rest)),
            [low, b'-', high, rest @ ..] if *high != b']' => (*low..=*high, rest),
            [one, rest @ ..] => (*one..=*one, rest),
            [] => return None,
        };
        is_in |= range.contains(&byte);
        is_first = false;
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
            (c"user.one", Action::KeepWithMode),
            (c"user.two", Action::Skip),
            (c"user.three", Action::KeepWithMode),
            (c"user.a/b.c", Action::Skip),
            (c"user.x", Action::Copy),
            (c"user.y", Action::Copy),
            (c"comment", Action::Copy),
        ] {
            assert_eq!(conf.action(name), action, "{name:?}");
        }
    }

    #[test]
    fn patterns_match_as_by_fnmatch() {
        for (pattern, name, matching) in [
            ("a.*", "a.", true),
            ("a.*.z", "a.b.c.z", true),
            ("a.*.z", "a.z", false),
            ("?", "", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            ("[x", "[x", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("abc", "ab", false),
        ] {
            let found = matches(pattern.as_bytes(), name.as_bytes());
            assert_eq!(found, matching, "{pattern} {name}");
        }
    }
}
