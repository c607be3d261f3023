//! Commands behind scripts, and a command under another name.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::tree::{Scratch, Tree};

/// Our command and GNU's, each behind a shell script that says `"$@"` where the command line belongs.
/// Every user can run them.
pub(super) struct Scripts {
    dir: Scratch,
}

impl Scripts {
    /// Each is a program, in `PATH` or by its path, and a script, which is called as the program is.
    #[track_caller]
    pub(super) fn around(commands: [(&Path, &str); 2]) -> Self {
        let dir = Scratch::new();
        let programs = dir.path().join("programs");
        Tree::at(&programs);
        for (program, script) in commands {
            let mut search = Path::new("");
            if program.components().count() > 1 {
                // By another process: a file that this one wrote may be "busy" when it is to be run.
                let copied = Command::new("cp").arg(program).arg(&programs).status();
                assert!(copied.is_ok_and(|status| status.success()), "cp copies");
                let copy = Path::new("programs").join(name(program));
                Tree::at(dir.path()).select(copy).mode(0o755);
                search = &programs;
            }
            Tree::at(dir.path())
                .file(name(program), wrapper(search, name(program), script))
                .mode(0o755);
        }
        Self { dir }
    }

    pub(super) fn path(&self, program: &Path) -> PathBuf {
        self.dir.path().join(name(program))
    }
}

fn name(program: &Path) -> &str {
    let name = program.file_name().and_then(|name| name.to_str());
    name.expect("a program has a name in UTF-8")
}

fn wrapper(search: &Path, name: &str, script: &str) -> String {
    format!(
        "#!/bin/sh\n\
         PATH={}:$PATH\n\
         set -- {name} \"$@\"\n\
         {script}\n",
        search.display()
    )
}

/// A link to a program under another name.
#[derive(Debug)]
pub struct Link {
    dir: Scratch,
    name: String,
}

impl Link {
    /// A symlink called `name`, in a directory of its own, to the program at `target`.
    ///
    /// # Panics
    /// If it can't be made.
    #[must_use]
    #[track_caller]
    pub fn named(name: &str, target: &str) -> Self {
        let dir = Scratch::new();
        Tree::at(dir.path()).symlink(name, target);
        Self {
            dir,
            name: name.to_owned(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }
}
