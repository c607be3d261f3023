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

/// A program, and its release.
type Found = (PathBuf, (u32, u32));

/// Returns GNU's program `name`, as a path or as a name in `PATH`. Prints its version if it is an installed one.
///
/// # Errors
/// If the installed program is not GNU's.
///
/// # Panics
/// Panics if `FUC_REFERENCE` is set and that directory lacks the program.
#[track_caller]
pub fn gnu(name: &str) -> Result<PathBuf, Skip> {
    found(name).map(|(program, _)| program)
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
    let (program, release) = found(name)?;
    if release < NEWEST {
        let (major, minor) = NEWEST;
        return Err(Skip(format!("{name} is older than {major}.{minor}")));
    }
    Ok(program)
}

/// Finds a program, once for each test binary.
#[track_caller]
fn found(name: &str) -> Result<Found, Skip> {
    static FOUND: Mutex<BTreeMap<String, Result<Found, Skip>>> = Mutex::new(BTreeMap::new());
    let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.entry(name.to_owned()).or_insert_with(|| find(name));
    found.clone()
}

#[track_caller]
fn find(name: &str) -> Result<Found, Skip> {
    let reference = env::var_os("FUC_REFERENCE").filter(|_| FROM_REFERENCE.contains(&name));
    let program = Path::new(&reference.clone().unwrap_or_default()).join(name);
    let release = release_of(&program);
    if reference.is_some() {
        assert!(
            program.is_absolute() && release.is_some(),
            "FUC_REFERENCE is not an absolute path of a directory with GNU {name}"
        );
    } else if let Some((major, minor)) = release {
        note(&format!(
            "compared with the installed {name} {major}.{minor}"
        ));
    }
    let release = release.ok_or_else(|| Skip(format!("{name} is not GNU's here")))?;
    Ok((program, release))
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
