//! Libraries that are preloaded to intercept file calls, such as that of `fakeroot`. They do not see the calls of
//! this process, which makes system calls itself. So a package would get the owners of the real files.
//!
//! ```text
//!  a library is preloaded ─┬─ called as rm or cp ─▶ execute the next rm or cp in an absolute directory of PATH
//!                          │                           │ there is none
//!                          └─ called otherwise ────────┴─▶ warn, and go on
//! ```
//!
//! The invariant: without a library, only the environment is read.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::sys;

/// The variable by which a library that is preloaded can be switched off.
enum Switch {
    None,
    OffBy(&'static str),
    OnBy(&'static str),
}

/// Programs that preload a library for other programs. The name of the file begins with `lib` and this name.
///
/// LD_PRELOAD alone says that a library is preloaded, because no other variable of these programs has an effect
/// without it. pseudo, fakechroot and the sandbox keep it set in the programs that they run, even under `env -i`.
const INTERCEPTORS: [(&str, Switch); 5] = [
    ("fakeroot", Switch::None),
    ("pseudo", Switch::OffBy("PSEUDO_DISABLED")),
    ("fakechroot", Switch::None),
    ("eatmydata", Switch::None),
    // Gentoo builds packages in it.
    ("sandbox", Switch::OnBy("SANDBOX_ON")),
];

impl Switch {
    /// Returns `true` unless the variable switches the library off.
    fn is_on(&self, variable: impl Fn(&str) -> Option<OsString>) -> bool {
        // pseudo, too, looks at the first character only.
        let says_no = |value: OsString| {
            let first = value.as_bytes().first();
            first.is_some_and(|first| b"0fFnN".contains(first))
        };
        match self {
            Self::None => true,
            Self::OffBy(name) => variable(name).is_none_or(says_no),
            Self::OnBy(name) => !variable(name).is_some_and(says_no),
        }
    }
}

/// Returns `true` if this value of LD_PRELOAD, a list with spaces or colons, contains the library of a program.
fn contains(preloaded: &OsStr, program: &str) -> bool {
    let is_separator = |byte: &u8| *byte == b':' || byte.is_ascii_whitespace();
    preloaded.as_bytes().split(is_separator).any(|path| {
        let file = path.rsplit(|&byte| byte == b'/').next();
        let suffix = file
            .and_then(|file| file.strip_prefix(b"lib"))
            .and_then(|file| file.strip_prefix(program.as_bytes()));
        // Such as `.so`, `.so.0` and `-sysv.so`, but not the rest of another word.
        suffix.is_some_and(|suffix| !suffix.first().is_some_and(u8::is_ascii_alphabetic))
    })
}

/// Returns the names of the programs whose libraries are preloaded, according to the environment.
fn active(variable: impl Fn(&str) -> Option<OsString>) -> Vec<&'static str> {
    let Some(preloaded) = variable("LD_PRELOAD") else {
        return Vec::new();
    };
    let active = INTERCEPTORS
        .iter()
        .filter(|(name, switch)| contains(&preloaded, name) && switch.is_on(&variable));
    active.map(|&(name, _)| name).collect()
}

/// Returns the warning that `command` bypasses libraries, if some are preloaded.
pub(crate) fn warning(command: &str) -> Option<String> {
    let active = active(|name| env::var_os(name));
    let are = match active[..] {
        [] => return None,
        [_] => "is",
        _ => "are",
    };
    let names = active.join(" and ");
    Some(format!(
        "warning: {names} {are} bypassed: preloaded libraries do not see the system calls of {command}"
    ))
}

/// The variable that names the programs which were executed in place of this one, by device and inode, in
/// hexadecimal digits.
///
/// A copy of this program, or a script that calls this program, inherits it. So none is executed twice, and there
/// is an end.
const TRIED: &str = "FUC_TRIED";

/// If a library is preloaded, executes the next program `name` in PATH, or else the system's one, with the same
/// arguments and environment. Returns if there is neither.
///
/// Without this program, a shell would seldom come to the last directories in PATH. So only absolute ones count: any
/// user may own the working directory.
pub(crate) fn give_way(name: &str) {
    if active(|name| env::var_os(name)).is_empty() {
        return;
    }
    let path = env::var_os("PATH");
    let directories = path.iter().flat_map(env::split_paths);
    let directories = directories.filter(|directory| directory.is_absolute());
    let of_system = ["/usr/bin", "/bin"].map(PathBuf::from);
    let mut tried = env::var(TRIED).unwrap_or_default();
    tried.extend(identity(Path::new("/proc/self/exe")));
    for directory in directories.chain(of_system) {
        let program = directory.join(name);
        if let Some(identity) = identity(&program)
            && !tried.contains(&identity)
        {
            tried.push_str(&identity);
            execute(&program, &tried);
        }
    }
}

/// Returns the identity of the file at `path`, as [`TRIED`] contains it: between commas.
fn identity(path: &Path) -> Option<String> {
    let stat = rustix::fs::stat(path).ok()?;
    Some(format!(",{:x}:{:x},", stat.st_dev, stat.st_ino))
}

/// Executes `program` with the arguments of this process. Returns if it cannot be executed.
fn execute(program: &Path, tried: &str) {
    let others = env::vars_os().filter(|(name, _)| name != TRIED);
    let variables = others.chain([(TRIED.into(), tried.into())]);
    let environment: Vec<CString> = variables
        .map(|(name, value)| c_string([name, value].join(OsStr::new("="))))
        .collect();
    let program = c_string(program);
    let mut arguments: Vec<CString> = sys::arguments().into_iter().map(c_string).collect();
    if sys::execute(&program, &arguments, &environment) == Errno::NOEXEC {
        // A script without an interpreter, which shells and `execvp` give to this one.
        let shell = c"/bin/sh";
        arguments.splice(..1, [shell.to_owned(), program]);
        sys::execute(shell, &arguments, &environment);
    }
}

fn c_string(string: impl Into<OsString>) -> CString {
    let bytes = string.into().into_vec();
    CString::new(bytes).expect("BUG: no string that the process was given has a NUL in it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Vec<&'static str> {
        active(|name| {
            let mut variables = variables.iter();
            let found = variables.find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn libraries_are_found_by_the_names_of_their_files() {
        for (preloaded, names) in [
            ("libfakeroot-sysv.so", &["fakeroot"][..]),
            ("/usr/lib/libfakeroot/libfakeroot-tcp.so", &["fakeroot"]),
            ("libfakeroot.so.0", &["fakeroot"]),
            ("/usr/$LIB/pseudo/libpseudo.so", &["pseudo"]),
            ("libfakechroot.so", &["fakechroot"]),
            ("/a/libjemalloc.so.2:libeatmydata.so", &["eatmydata"]),
            (" libx.so  libsandbox.so", &["sandbox"]),
            (
                "libfakechroot.so libfakeroot-sysv.so:libfakeroot-sysv.so",
                &["fakeroot", "fakechroot"],
            ),
            ("", &[]),
            ("libjemalloc.so.2", &[]),
            ("/usr/lib/libfakeroot/libx.so", &[]),
            ("libpseudonym.so:notlibfakeroot.so", &[]),
        ] {
            assert_eq!(of(&[("LD_PRELOAD", preloaded)]), names, "{preloaded:?}");
        }
    }

    #[test]
    fn a_library_that_is_switched_off_is_not_active() {
        for (preloaded, variable, value, is_active) in [
            ("libpseudo.so", "PSEUDO_DISABLED", "1", false),
            ("libpseudo.so", "PSEUDO_DISABLED", "", false),
            ("libpseudo.so", "PSEUDO_DISABLED", "0", true),
            ("libpseudo.so", "PSEUDO_DISABLED", "no", true),
            ("libsandbox.so", "SANDBOX_ON", "0", false),
            ("libsandbox.so", "SANDBOX_ON", "1", true),
            ("libfakeroot.so", "SANDBOX_ON", "0", true),
        ] {
            let active = of(&[("LD_PRELOAD", preloaded), (variable, value)]);
            let case = format!("{preloaded} {variable}={value}");
            assert_eq!(!active.is_empty(), is_active, "{case}");
        }
    }

    #[test]
    fn variables_without_a_library_mean_nothing() {
        for variable in ["FAKEROOTKEY", "PSEUDO_PREFIX", "FAKECHROOT", "SANDBOX_ON"] {
            assert!(of(&[(variable, "1")]).is_empty(), "{variable}");
        }
    }
}
