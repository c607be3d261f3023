//! The examples of the main README and of the recipes, as a reader types them.

use std::{fs, path::Path, process::Command};

use testkit::{
    needs, or_skip,
    probe::Skip,
    run::run_examples,
    tree::{Scratch, Tree},
};

use crate::support::CPZ;

/// Runs the examples of a page in a directory that has these files, and returns it.
fn run(page: &str, commands: usize, build: impl FnOnce(&Path)) -> Result<Scratch, Skip> {
    let programs = Path::new(CPZ)
        .parent()
        .expect("a program is in a directory");
    if !programs.join("rmz").exists() {
        return Err(Skip("rmz is not built beside cpz".into()));
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    // These build, which takes minutes.
    let left_out = ["cargo", "make"];
    let scratch = Scratch::new();
    let ran = run_examples(&page, programs, &left_out, scratch.path(), build);
    assert_eq!(ran, commands);
    Ok(scratch)
}

fn with_files(dir: &Path, files: &[&str]) {
    for file in files {
        Tree::at(dir).file(file, "text\n");
    }
}

#[test]
#[ignore = "slow"]
fn each_example_of_the_main_readme_does_what_it_says() {
    let scratch = or_skip!(run("README.md", 17, |dir| {
        let files = [
            "photos/cat.jpg",
            "build/app",
            "target/debug",
            "node_modules/module.js",
            "old-checkout/file",
            "project/main.c",
            "project/main.o",
        ];
        with_files(dir, &files);
        fs::create_dir(dir.join("deployed")).expect("a directory can be made");
    }));
    let tree = scratch.path();
    for gone in ["node_modules", "target", "old-checkout"] {
        assert!(!tree.join(gone).exists(), "{gone}");
    }
    for made in ["album/cat.jpg", "backup/cat.jpg", "deployed/app"] {
        assert!(tree.join(made).exists(), "{made}");
    }
    assert!(tree.join("home/.local/bin/rm").exists());
}

#[test]
#[ignore = "slow"]
fn each_recipe_does_what_it_says() {
    needs!("git");
    let scratch = or_skip!(run("docs/recipes.md", 15, |dir| {
        let files = [
            "build/app",
            "dist/app",
            "go/pkg/mod/a@v1/a.go",
            "go/pkg/sumdb/file",
            "photos/cat.jpg",
            "project/main.c",
            "project/main.o",
            "store/entry",
        ];
        with_files(dir, &files);
        fs::write(dir.join("project/.gitignore"), "*.o\n").unwrap();
        let user = "-c user.name=a -c user.email=a@example.org";
        let script = format!(
            "chmod -R a-w go/pkg/mod && cd project && git init -q . &&
             git {user} commit -q --allow-empty -m begin && git worktree add -q ../feature"
        );
        let made = Command::new("sh")
            .args(["-ec", &script])
            .current_dir(dir)
            .status();
        assert!(made.is_ok_and(|status| status.success()));
    }));
    for gone in ["feature", "dist", "go/pkg/mod", "job-1/main.o"] {
        assert!(!scratch.at(gone).exists(), "{gone}");
    }
    assert!(scratch.at("build/app").exists());
}
