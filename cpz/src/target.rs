//! Separates the dest from the sources.
//!
//! | given | sources | dest |
//! |---|---|---|
//! | `-t DIR` | all operands | into DIR, which must be a directory |
//! | `-T` | the first of two | exactly the second |
//! | two operands | the first | into the second if that is a directory (through symlinks too), else exactly it |
//! | more | all but the last | into the last, which must be a directory |
//! | `--files0-from` and one operand | those in the list | into the operand, which must be a directory |

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::name_list;
use fuc_cli::wording::errno_text;
use fuc_engine::Dest;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::options::{LastOperand, Options};

/// Takes the dest out of `operands` and leaves the sources there.
///
/// # Errors
/// If there are too few or too many operands, or if the target is not a directory.
pub(crate) fn take_dest(
    options: &Options,
    operands: &mut Vec<OsString>,
    console: &Console,
) -> Result<Dest, UsageError> {
    check_number(options, operands, console)?;
    if let Some(directory) = &options.target_directory {
        return target_directory(options, directory, console);
    }
    let last = PathBuf::from(operands.pop().expect("BUG: no operands"));
    let not_into = || UsageError::with_help("with --parents, the destination must be a directory");
    match options.last_operand {
        LastOperand::IsTheDest if operands.len() > 1 => {
            let extra = operands
                .get(2)
                .map_or(last.as_os_str(), OsString::as_os_str);
            let extra = console.quoted(extra);
            Err(UsageError::with_help(format!("extra operand {extra}")))
        }
        LastOperand::IsTheDest if options.engine.parents => Err(not_into()),
        LastOperand::IsTheDest => Ok(Dest::Exactly(last)),
        LastOperand::MayBeDirectory => match into("target ", &last, console) {
            Err(_) if operands.len() == 1 && options.engine.parents => Err(not_into()),
            Err(_) if operands.len() == 1 => Ok(Dest::Exactly(last)),
            found => found,
        },
    }
}

/// Takes the directory out of `operands` into which the sources in a list are copied.
///
/// # Errors
/// If there are too few or too many operands, or if the target is not a directory.
pub(crate) fn dest_of_list(
    options: &Options,
    operands: &mut Vec<OsString>,
    console: &Console,
) -> Result<Dest, UsageError> {
    let operands = std::mem::take(operands);
    match (&options.target_directory, &*operands) {
        (Some(directory), []) => target_directory(options, directory, console),
        (None, []) => Err(UsageError::with_help("missing destination file operand")),
        (None, [_]) if options.last_operand == LastOperand::IsTheDest => Err(UsageError::plain(
            "cannot combine --files0-from and --no-target-directory (-T)",
        )),
        (None, [directory]) => into("target ", Path::new(directory), console),
        (_, [extra, ..]) => Err(name_list::extra_operand(extra, console)),
    }
}

/// Returns the dest for the directory of `-t`.
fn target_directory(
    options: &Options,
    directory: &Path,
    console: &Console,
) -> Result<Dest, UsageError> {
    if options.last_operand == LastOperand::IsTheDest {
        return Err(UsageError::plain(
            "cannot combine --target-directory (-t) and --no-target-directory (-T)",
        ));
    }
    into("target directory ", directory, console)
}

fn check_number(
    options: &Options,
    operands: &[OsString],
    console: &Console,
) -> Result<(), UsageError> {
    match operands {
        [] => Err(UsageError::with_help("missing file operand")),
        [only] if options.target_directory.is_none() => {
            let only = console.quoted(only);
            let message = format!("missing destination file operand after {only}");
            Err(UsageError::with_help(message))
        }
        _ => Ok(()),
    }
}

/// Returns the dest for a directory to copy into.
///
/// # Errors
/// If the path does not lead to a directory, through any links. The message calls it `what`.
fn into(what: &str, path: &Path, console: &Console) -> Result<Dest, UsageError> {
    // The standard library also asks for the time of birth, because of which some FUSE servers fail.
    let errno = match rustix::fs::stat(path) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
            return Ok(Dest::Into(path.into()));
        }
        Ok(_) => Errno::NOTDIR,
        Err(errno) => errno,
    };
    let (path, reason) = (console.quoted(path), errno_text(&errno.into()));
    Err(UsageError::plain(format!("{what}{path}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_cli::flags::{ArgOrder, Scan};
    use fuc_cli::invocation::Personality;
    use fuc_cli::locale::Charset;
    use fuc_cli::reporter::Verbosity;

    /// Returns the sources and the dest of a command line. In names, `@` stands for a directory that
    /// holds `dir`, `file`, and `link` to `dir`.
    fn taken(arguments: &[&str]) -> Result<(Vec<OsString>, Dest), String> {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        std::fs::create_dir(root.join("dir")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink("dir", root.join("link")).unwrap();

        let base = format!("{}/", root.display());
        let arguments = arguments
            .iter()
            .map(|argument| argument.replace('@', &base));
        let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
        let personality = Personality::Strict;
        let mut scan = Scan::of(&crate::flags::TABLE, &arguments, personality, ArgOrder::Any);
        let console = &Console::new(b"cpz".to_vec(), Charset::Ascii);
        let options = crate::options::resolve(&scan.matched, personality, console).unwrap();
        assert_eq!(options.common.verbosity, Verbosity::Quiet);

        let bare = |path: PathBuf| path.display().to_string().replace(&base, "@").into();
        match take_dest(&options, &mut scan.operands, console) {
            Ok(Dest::Into(path)) => Ok((scan.operands, Dest::Into(bare(path)))),
            Ok(Dest::Exactly(path)) => Ok((scan.operands, Dest::Exactly(bare(path)))),
            Err(error) => Err(String::from_utf8(error.message)
                .unwrap()
                .replace(&base, "@")),
        }
    }

    fn into(sources: &[&str], dest: &str) -> Result<(Vec<OsString>, Dest), String> {
        let sources = sources.iter().map(OsString::from).collect();
        Ok((sources, Dest::Into(dest.into())))
    }

    fn exactly(source: &str, dest: &str) -> Result<(Vec<OsString>, Dest), String> {
        Ok((vec![source.into()], Dest::Exactly(dest.into())))
    }

    #[test]
    fn copies_into_a_last_operand_that_leads_to_a_directory() {
        assert_eq!(taken(&["a", "@dir"]), into(&["a"], "@dir"));
        assert_eq!(taken(&["a", "@link"]), into(&["a"], "@link"));
        assert_eq!(taken(&["a", "b", "@dir/"]), into(&["a", "b"], "@dir/"));
    }

    #[test]
    fn copies_exactly_to_a_path_that_is_not_a_directory() {
        assert_eq!(taken(&["a", "@file"]), exactly("a", "@file"));
        assert_eq!(taken(&["a", "@new"]), exactly("a", "@new"));
        assert_eq!(taken(&["", ""]), exactly("", ""));
        assert_eq!(taken(&["-T", "a", "@dir"]), exactly("a", "@dir"));
    }

    #[test]
    fn all_operands_are_sources_with_a_target_directory() {
        assert_eq!(
            taken(&["-t@dir", "a", "@dir"]).map(|(sources, dest)| (sources.len(), dest)),
            Ok((2, Dest::Into("@dir".into())))
        );
    }

    #[test]
    fn several_sources_need_a_directory() {
        let refused = |arguments| taken(arguments).unwrap_err();
        assert_eq!(
            refused(&["a", "b", "@new"]),
            "target '@new': No such file or directory"
        );
        assert_eq!(
            refused(&["a", "b", "@file"]),
            "target '@file': Not a directory"
        );
        assert_eq!(
            refused(&["-t@file", "a"]),
            "target directory '@file': Not a directory"
        );
    }

    #[test]
    fn counts_operands_as_cp_does() {
        let refused = |arguments| taken(arguments).unwrap_err();
        assert_eq!(refused(&[]), "missing file operand");
        assert_eq!(refused(&["-tx"]), "missing file operand");
        assert_eq!(
            refused(&["a b"]),
            "missing destination file operand after 'a b'"
        );
        assert_eq!(refused(&["-T", "a", "b", "c", "d"]), "extra operand 'c'");
        assert_eq!(refused(&["-T", "a", "b", "c"]), "extra operand 'c'");
        assert_eq!(
            refused(&["-Tt@dir", "a"]),
            "cannot combine --target-directory (-t) and --no-target-directory (-T)"
        );
    }
}
