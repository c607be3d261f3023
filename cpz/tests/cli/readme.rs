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
    // These build, which takes minutes.
    let left_out = ["cargo"];
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let tree = dir.path().join("tree");
    let ran = run_examples(&page, programs, &left_out, &tree, |tree| {
        let files = [
            "photos/cat.jpg",
            "build/app",
            "target/debug",
            "node_modules/module.js",
            "old-checkout/file",
            "project/main.c",
            "project/main.o",
        ];
        for file in files {
            Tree::at(tree).file(file, "text\n");
        }
        fs::create_dir(tree.join("deployed")).expect("a directory can be made");
    });
    assert_eq!(ran, 16);
    for gone in ["node_modules", "target", "old-checkout"] {
        assert!(!tree.join(gone).exists(), "{gone}");
    }
    for made in ["album/cat.jpg", "backup/cat.jpg", "deployed/app"] {
        assert!(tree.join(made).exists(), "{made}");
    }
    assert!(tree.join("home/.local/bin/rm").exists());
}
