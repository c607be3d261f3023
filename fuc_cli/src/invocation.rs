//! The name a command was called by, and what follows from it.
//!
//! A link called `rm` must be `rm`: to scripts, to `alias rm='rm -i'`, to
//! whoever pipes its stderr through grep. So the base name of argv\[0\] decides
//! between strictly GNU and ours, and argv\[0\] as given is in front of each message.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::locale::Charset;

/// Which of two commands this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// GNU's tool and nothing else: directories need `-r`, extensions are unknown options.
    Strict,
    /// Ours: directories are taken whole, extensions are understood.
    Extended,
}

impl Personality {
    /// By the base name of argv\[0\]: `strict_name` is strict, any other name is not.
    #[must_use]
    pub fn of(program: &OsStr, strict_name: &str) -> Self {
        let base = program.as_bytes().rsplit(|&byte| byte == b'/').next();
        if base == Some(strict_name.as_bytes()) {
            Self::Strict
        } else {
            Self::Extended
        }
    }

    /// Whether directories are taken whole without `-r`.
    #[must_use]
    pub fn is_recursive_by_default(self) -> bool {
        self == Self::Extended
    }
}

/// How this process was called.
#[derive(Debug)]
pub struct Invocation {
    /// argv\[0\], as given.
    pub program: Vec<u8>,
    /// What the name makes of it.
    pub personality: Personality,
    /// What the environment's locale can show.
    pub charset: Charset,
    /// argv without its first.
    pub arguments: Vec<OsString>,
}

impl Invocation {
    /// Of this process. `name` is used where there is no argv\[0\].
    #[must_use]
    pub fn of_this_process(name: &str, strict_name: &str) -> Self {
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_else(|| name.into());
        Self {
            personality: Personality::of(&program, strict_name),
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
        Personality::of(OsStr::new(program), "rm")
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
