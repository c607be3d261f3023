//! Generates a command's manual page and completions from its table of flags, for its tests.
//!
//! The files are checked in, because users install them without building anything. A test of each
//! command compares them with what the table gives now. It writes them instead if the environment
//! has `FUC_GENERATE`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::flags::Table;

pub use manual::Manual;

mod clap_command;
mod completions;
mod manual;

/// A generated file.
#[derive(Debug)]
struct Generated {
    /// The path, relative to the package of the command.
    path: PathBuf,
    content: String,
}

/// Compares the files in `package`, the root of a command's package, with those that are generated now from its table.
/// If `FUC_GENERATE` is set, writes them.
///
/// # Panics
/// If a file is missing or differs, or cannot be written.
pub fn check<I: Copy>(package: &Path, table: &Table<I>, manual: &Manual) {
    let name = manual.name;
    let command = clap_command::clap_command(table, manual);
    let page = Generated {
        path: format!("man/{name}.1").into(),
        content: manual.page(table, &command),
    };
    let mut files = completions::all(table, command);
    files.push(page);
    let stale: Vec<&Generated> = files
        .iter()
        .filter(|file| {
            let present = fs::read_to_string(package.join(&file.path));
            present.ok().as_ref() != Some(&file.content)
        })
        .collect();
    if env::var_os("FUC_GENERATE").is_some() {
        for file in stale {
            let path = package.join(&file.path);
            let dir = path.parent().expect("BUG: each file is in a directory");
            fs::create_dir_all(dir).expect("the directory can be made");
            fs::write(&path, &file.content).expect("the file can be written");
        }
        return;
    }
    let stale: Vec<&Path> = stale.iter().map(|file| file.path.as_path()).collect();
    assert!(
        stale.is_empty(),
        "generate these files of {name} again, see CONTRIBUTING.md: {stale:?}"
    );
}
