//! Libraries that are preloaded to intercept file calls. Under the name `rm`, another rm is executed, and under the
//! name `rmz` a warning is written. The tests of cpz have more cases.

use testkit::{
    needs,
    probe::{NOBODY, is_root},
    run::Run,
    tree::Scratch,
};

use crate::support::{RM, RMZ};

#[test]
fn a_file_that_gets_the_inode_of_a_removed_one_does_not_get_its_owner_under_fakeroot() {
    needs!("fakeroot");
    let scratch = Scratch::new();
    let link = RM.link("rm");
    scratch.plant(". %777");
    // Some filesystems use the inode again, at least for one of many files.
    let script = r#"PATH=$(dirname "$0"):$PATH
        for i in 1 2 3 4 5 6 7 8 9; do
            echo >f$i; chown 4711:4712 f$i; rm -f f$i; echo >g$i
        done
        stat -c %u:%g g* | sort -u"#;
    let run = Run::new("fakeroot")
        .args(["sh", "-c", script])
        .arg(link.path())
        .current_dir(&scratch);
    let run = match is_root() {
        true => run.uid(NOBODY),
        false => run,
    };
    let outcome = run.output();
    outcome.assert_success();
    assert_eq!(outcome.stdout_text(), "0:0\n");
}

#[test]
fn rmz_removes_with_a_warning() {
    needs!("fakeroot");
    let scratch = Scratch::with("d/f=");
    let outcome = Run::new("fakeroot")
        .args([RMZ, "d"])
        .current_dir(&scratch)
        .output();
    outcome.assert_status(0);
    assert_eq!(
        outcome.stderr_text(),
        "rmz: warning: fakeroot is bypassed: preloaded libraries do not see the system calls of rmz\n"
    );
    assert!(!scratch.at("d").exists());
}
