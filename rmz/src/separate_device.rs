//! `--preserve-root=all`: a directory on another device than its parent is left alone.
//!
//! A safeguard against slips, not against attackers, so it looks before the
//! run begins; what is mounted later is met by the kernel's EBUSY.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::wording::{Diagnostic, errno_text};

/// Takes mount points out of `operands`, with a diagnostic for each.
pub(crate) fn set_aside(operands: &mut Vec<OsString>, console: &Console) -> Outcome {
    let mut outcome = Outcome::Complete;
    operands.retain(|operand| {
        let name = operand.as_bytes();
        let diagnostic = match is_mount_point(operand) {
            Ok(false) => return true,
            Ok(true) => {
                let quoted = console.quoted(name);
                let line = [
                    b"skipping ",
                    &quoted[..],
                    b", since it's on a different device",
                ];
                Diagnostic {
                    line: line.concat(),
                    advice: Some("and --preserve-root=all is in effect"),
                }
            }
            Err(error) => {
                let parent = console.quoted(&[name, b"/.."].concat());
                let quoted = console.quoted(name);
                let line = [b"failed to stat ", &parent[..], b": skipping ", &quoted];
                let reason = format!(": {}", errno_text(&error));
                [&line.concat()[..], reason.as_bytes()].concat().into()
            }
        };
        console.complain(&diagnostic);
        outcome = Outcome::Incomplete;
        false
    });
    outcome
}

/// Whether `operand` is a directory on another device than its parent.
///
/// Whatever the engine refuses or fails to find anyway counts as none.
fn is_mount_point(operand: &OsStr) -> io::Result<bool> {
    if ends_in_dots(operand) {
        return Ok(false);
    }
    let path = Path::new(operand);
    let device = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => metadata.dev(),
        Ok(_) | Err(_) => return Ok(false),
    };
    Ok(path.join("..").symlink_metadata()?.dev() != device)
}

fn ends_in_dots(operand: &OsStr) -> bool {
    let mut components = operand.as_bytes().rsplit(|&byte| byte == b'/');
    let last = components.find(|component| !component.is_empty());
    matches!(last, Some(b"." | b".."))
}
