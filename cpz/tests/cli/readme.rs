//! The examples of the main README, as a reader types them.

use std::fs;
use std::path::Path;

use testkit::run::run_examples;
use testkit::tree::Tree;

use crate::support::CPZ;

#[test]
fn each_example_of_the_main_readme_does_what_it_says() {
    let programs = Path::new(CPZ)
        .parent()
        .expect("a program is in a directory");
    if !programs.join("rmz").exists() {
        println!("SKIP: rmz is not built beside cpz");
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    // These install or measure, which takes minutes.
    let left_out = ["cargo", "rustup", "benches/setup.sh"];
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let tree = dir.path().join("tree");
    let ran = run_examples(&page, programs, &left_out, &tree, |tree| {
        for name in [
            "node_modules",
            "target",
            "linux",
            "photos",
            "build",
            "old-checkout",
        ] {
            Tree::at(tree.join(name)).file("sub/file", name);
        }
        fs::create_dir(tree.join("deployed")).expect("a directory can be made");
        Tree::at(tree.join("project"))
            .file("main.c", "")
            .file("main.o", "");
    });
    assert_eq!(ran, 9);
    for gone in ["node_modules", "target", "old-checkout"] {
        assert!(!tree.join(gone).exists(), "{gone}");
    }
    for made in ["linux-patched", "backup", "deployed"] {
        assert!(tree.join(made).join("sub/file").exists(), "{made}");
    }
    assert!(tree.join("copy/main.c").exists() && !tree.join("copy/main.o").exists());
    assert!(tree.join("home/.local/bin/rm").exists());
}
