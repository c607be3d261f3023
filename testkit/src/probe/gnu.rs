//! GNU's programs, with which ours are compared.
//!
//! If `FUC_REFERENCE` names a directory, its programs are used, which `testkit/gnu-reference.sh` builds there.
//! Otherwise the installed ones are used, which are often older. A comparison about which they differ from the
//! newest release asks for [`newest_gnu`].

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

use super::Skip;
use crate::util::{TIME_LIMIT, note, unless_busy};

/// The release whose behaviour ours is.
const NEWEST: (u32, u32) = (9, 10);

/// The programs that are taken from `FUC_REFERENCE`. Others are the installed ones.
const FROM_REFERENCE: &[&str] = &["rm", "cp"];

/// A program that a test found.
#[derive(Clone, Debug)]
struct Found {
    program: PathBuf,
    /// The release, or `None` if the program is not GNU's.
    release: Option<(u32, u32)>,
}

/// Returns GNU's program `name`, as a path or as a name in `PATH`. Prints its version if it is an installed one.
///
/// # Errors
/// If the installed program is not GNU's.
///
/// # Panics
/// Panics if `FUC_REFERENCE` is set and that directory lacks the program.
#[track_caller]
pub fn gnu(name: &str) -> Result<PathBuf, Skip> {
    let found = found(name);
    match found.release {
        Some(_) => Ok(found.program),
        None => Err(Skip(format!("{name} is not GNU's here"))),
    }
}

/// Returns GNU's program `name` if it is as new as the reference.
///
/// # Errors
/// If the program is older, or not GNU's.
///
/// # Panics
/// Panics if `FUC_REFERENCE` is set and that directory lacks the program.
#[track_caller]
pub fn newest_gnu(name: &str) -> Result<PathBuf, Skip> {
    let program = gnu(name)?;
    match found(name).release {
        Some(release) if release < NEWEST => {
            let (major, minor) = NEWEST;
            Err(Skip(format!("{name} is older than {major}.{minor}")))
        }
        _ => Ok(program),
    }
}

/// Finds a program, once for each test binary.
#[track_caller]
fn found(name: &str) -> Found {
    static FOUND: Mutex<BTreeMap<String, Found>> = Mutex::new(BTreeMap::new());
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(name) {
        return found.clone();
    }
    let found = find(name);
    known.insert(name.to_owned(), found.clone());
    found
}

#[track_caller]
fn find(name: &str) -> Found {
    let reference = env::var_os("FUC_REFERENCE").filter(|_| FROM_REFERENCE.contains(&name));
    if let Some(dir) = reference {
        let program = Path::new(&dir).join(name);
        let release = release_of(&program);
        assert!(
            program.is_absolute() && release.is_some(),
            "FUC_REFERENCE is not an absolute path of a directory with GNU {name}"
        );
        return Found { program, release };
    }
    let program = PathBuf::from(name);
    let release = release_of(&program);
    if let Some((major, minor)) = release {
        note(&format!(
            "compared with the installed {name} {major}.{minor}"
        ));
    }
    Found { program, release }
}

fn release_of(program: &Path) -> Option<(u32, u32)> {
    let mut version = Command::new(program);
    version.arg("--version").env("LC_ALL", "C");
    let output = unless_busy(TIME_LIMIT, || version.output()).ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, release) = text.lines().next()?.split_once("(GNU coreutils) ")?;
    Some(super::version(release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_gnus_is_reported() {
        let skip = Skip("sh is not GNU's here".to_owned());
        assert_eq!(gnu("sh"), Err(skip.clone()));
        assert_eq!(newest_gnu("sh"), Err(skip));
    }

    #[test]
    fn a_release_is_known() {
        let program = gnu("rm").expect("rm is GNU's here");
        assert!(release_of(&program) > Some((5, 0)));
    }
}
