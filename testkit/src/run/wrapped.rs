//! Commands run by scripts, and a command under another name.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::tree::{Scratch, Tree};

/// Our command and GNU's, each run by a shell script that has `"$@"` in place of the command line. Every user
/// can run the scripts.
pub(super) struct Scripts {
    dir: Scratch,
    names: [String; 2],
}

/// The directories of the two scripts. They are separate, because the scripts may have the same name.
const SIDES: [&str; 2] = ["ours", "gnu"];

impl Scripts {
    /// Writes a script for each program, given by its name in `PATH` or by a path. The script has the name of
    /// its program.
    #[track_caller]
    pub(super) fn around(commands: [(&Path, &str); 2]) -> Self {
        let dir = Scratch::new();
        let names = commands.map(|(program, _)| name(program).to_owned());
        for (side, (program, script)) in SIDES.into_iter().zip(commands) {
            let tree = Tree::at(dir.path().join(side));
            let mut path = String::new();
            if program.components().count() > 1 {
                let programs = tree.dir("programs").path().join("programs");
                // Let another process copy the program: if this process wrote it, it might be "busy" when it is
                // started.
                let copied = Command::new("cp").arg(program).arg(&programs).status();
                assert!(copied.is_ok_and(|status| status.success()), "cp copies");
                tree.select(Path::new("programs").join(name(program)))
                    .mode(0o755);
                path = format!("PATH={}:$PATH", programs.display());
            }
            let script = format!(
                "#!/bin/sh\n{path}\nset -- {0} \"$@\"\n{script}\n",
                name(program)
            );
            tree.file(name(program), script).mode(0o755);
        }
        Self { dir, names }
    }

    /// Returns the paths of our script and of GNU's.
    pub(super) fn paths(&self) -> [PathBuf; 2] {
        [0, 1].map(|side| self.dir.path().join(SIDES[side]).join(&self.names[side]))
    }
}

fn name(program: &Path) -> &str {
    let name = program.file_name().and_then(|name| name.to_str());
    name.expect("a program has a name in UTF-8")
}

/// A symlink to a program under another name.
#[derive(Debug)]
pub struct Link {
    dir: Scratch,
    name: String,
}

impl Link {
    /// Makes a symlink `name`, in a directory of its own, to the program at `target`.
    ///
    /// # Panics
    /// Panics if it can't be made.
    #[must_use]
    #[track_caller]
    pub fn named(name: &str, target: impl AsRef<Path>) -> Self {
        let dir = Scratch::new();
        Tree::at(dir.path()).symlink(name, target);
        Self {
            dir,
            name: name.to_owned(),
        }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }
}
