//! Compares the public interface with `api.txt`, so that no change of it goes unnoticed.
//!
//! rustdoc describes the interface as JSON, in a format that changes with most versions of Rust. So this test uses
//! the oldest version that the crate supports, which stays the same until the manifest names another one. The
//! crate `public-api` of the version in Cargo.lock reads its format.

use std::{env, fs, path::Path, process::Command};

use testkit::probe::Skip;

/// The oldest version of Rust that the crate supports.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Returns the public interface, one item in each line.
fn interface() -> Result<String, Skip> {
    let is_installed = Command::new("rustup")
        .args(["run", RUST, "rustdoc", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_installed {
        return Err(Skip(format!("Rust {RUST} is not installed")));
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("api");
    let rustdoc = Command::new("rustup")
        .args(["run", RUST, "cargo", "rustdoc", "--locked", "--lib"])
        .arg("--target-dir")
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .current_dir(manifest)
        // The output format is an unstable option.
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTDOCFLAGS")
        .output()
        .expect("rustup can be started");
    let messages = String::from_utf8_lossy(&rustdoc.stderr);
    assert!(rustdoc.status.success(), "rustdoc failed:\n{messages}");
    let json = target.join("doc").join("fuc_engine.json");
    let interface = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .build()
        .expect("the version of public-api fits that of rustdoc");
    // These traits are internal to the standard library.
    let is_internal =
        |line: &str| line.contains("::StructuralPartialEq") || line.contains("::Freeze");
    let lines = interface.items().map(ToString::to_string);
    let lines: Vec<_> = lines.filter(|line| !is_internal(line)).collect();
    Ok(lines.join("\n") + "\n")
}

#[test]
#[ignore = "slow"]
fn the_public_interface_is_the_one_in_the_list() {
    let interface = testkit::or_skip!(interface());
    // A new version of that crate would then be a new version of this one.
    assert!(!interface.contains("rustix"), "{interface}");
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("api.txt");
    if env::var_os("FUC_GENERATE").is_some() {
        fs::write(&list, interface).expect("the list can be written");
        return;
    }
    let expected = fs::read_to_string(&list).unwrap_or_default();
    let only_in = |a: &str, b: &str, mark| -> String {
        let lines = a
            .lines()
            .filter(|line| !b.lines().any(|other| other == *line));
        lines.map(|line| format!("{mark} {line}\n")).collect()
    };
    let removed = only_in(&expected, &interface, '-');
    let added = only_in(&interface, &expected, '+');
    assert!(
        expected == interface,
        "the public interface has changed. If that is intended, generate api.txt again, see \
         CONTRIBUTING.md:\n{removed}{added}"
    );
}
