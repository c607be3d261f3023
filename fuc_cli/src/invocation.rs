//! The name by which a command was called, and the behaviour that it selects.
//!
//! A link with the name `rm` must behave as `rm`, because scripts and aliases such as `rm='rm -i'`
//! expect that, and other programs read its stderr. Therefore the base name of argv\[0\] decides
//! between GNU's behaviour and ours, and each message begins with that name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::locale::Charset;
use crate::sys;
use crate::tool::Tool;

/// The behaviour of this process: GNU's or ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// Strictly GNU's tool: directories need `-r`, and extensions are unknown options.
    Strict,
    /// Our own command: it recurses without `-r`, and has extensions.
    Extended,
}

impl Personality {
    /// Returns the personality for argv\[0\]: strict if the base name is that of the tool.
    #[must_use]
    pub fn of(program: &OsStr, tool: Tool) -> Self {
        let base = program.as_bytes().rsplit(|&byte| byte == b'/').next();
        if base == Some(tool.name().as_bytes()) {
            Self::Strict
        } else {
            Self::Extended
        }
    }

    /// Returns `true` if the command recurses without `-r`.
    #[must_use]
    pub fn is_recursive_by_default(self) -> bool {
        self == Self::Extended
    }
}

/// The command line of this process, and the personality that its first word selects.
#[derive(Debug)]
pub struct Invocation {
    /// argv\[0\], as given.
    pub program: Vec<u8>,
    /// The personality that this name selects.
    pub personality: Personality,
    /// The charset of the environment's locale.
    pub charset: Charset,
    /// The rest of argv.
    pub arguments: Vec<OsString>,
}

impl Invocation {
    /// Returns the invocation of this process. Without argv\[0\], `name` stands for it.
    #[must_use]
    pub fn of_this_process(name: &str, tool: Tool) -> Self {
        let mut arguments = sys::arguments().into_iter();
        let program = arguments.next().unwrap_or_else(|| name.into());
        Self {
            personality: Personality::of(&program, tool),
            program: program.into_vec(),
            charset: Charset::from_environment(),
            arguments: arguments.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str) -> Personality {
        Personality::of(OsStr::new(program), Tool::Remove)
    }

    #[test]
    fn is_strict_by_the_base_name_alone() {
        for program in ["rm", "/bin/rm", "./rm"] {
            assert_eq!(of(program), Personality::Strict, "{program}");
        }
    }

    #[test]
    fn is_extended_by_any_other_name() {
        for program in ["rmz", "/usr/bin/rmz", "rm/x", "", "rm ", "RM", "cp"] {
            assert_eq!(of(program), Personality::Extended, "{program}");
        }
    }
}
