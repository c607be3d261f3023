//! `--reap`: which containers it removes, and which it leaves alone.

use super::*;

/// The mark in a container that a test makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Right,
    OfAnotherName,
    None,
}

fn name_of(number: usize) -> String {
    format!(".rmz-{number:032x}")
}

/// Makes a container.
fn plant(dir: &Path, number: usize, mark: Mark) -> Tree {
    let path = dir.join(name_of(number));
    fs::create_dir(&path).unwrap();
    let tree = Tree::at(&path);
    match mark {
        Mark::Right => drop(tree.file(name_of(number), "")),
        Mark::OfAnotherName => drop(tree.file(name_of(number + 1), "")),
        Mark::None => {}
    }
    Tree::at(dir).select(name_of(number)).mode(0o700);
    tree
}

#[test]
#[ignore = "slow"]
fn what_a_killed_process_has_left_is_reaped() {
    let held = Held::new(|_| {}, &[]);
    let container = held.container();
    held.signal("KILL");
    wait_for_lock(&File::open(&container).expect("the container"));
    held.finish();
    assert!(container.join("held").exists());
    let outcome = held.reap();
    assert_eq!(outcome.assert_success().stdout_text(), "");
    assert!(containers(held.dir()).is_empty());
}

#[test]
#[ignore = "slow"]
fn two_runs_may_reap_at_once() {
    let scratch = Scratch::new();
    for _ in 0..20 {
        for number in 0..20 {
            plant(scratch.path(), number, Mark::Right).file("d/a/f", "");
        }
        let run = || rmz(scratch.path(), &["--reap", "."]);
        let outcomes = thread::scope(|scope| {
            let other = scope.spawn(run);
            [run(), other.join().expect("the other run ends")]
        });
        for outcome in outcomes {
            outcome.assert_success();
        }
        assert_empty(scratch.path());
    }
}

#[test]
#[ignore = "slow"]
fn leftovers_are_reaped_in_any_state() {
    let scratch = Scratch::new();
    plant(scratch.path(), 1, Mark::Right).file("d/f", "");
    plant(scratch.path(), 2, Mark::Right);
    plant(scratch.path(), 3, Mark::None);
    plant(scratch.path(), 4, Mark::None);
    Tree::at(scratch.path()).select(name_of(4)).mode(0o300);
    let name = |number| format!("./{}", name_of(number));
    let outcome = rmz(scratch.path(), &["--reap", "-v", "."]);
    let [first, second, third, fourth] = [1, 2, 3, 4].map(name);
    assert_eq!(
        outcome.assert_success().stdout_text(),
        format!(
            "removed '{first}/d/f'\nremoved directory '{first}/d'\nremoved directory '{first}'\n\
             removed directory '{second}'\nremoved directory '{third}'\n\
             removed directory '{fourth}'\n"
        )
    );
    assert_empty(scratch.path());
}

#[test]
#[ignore = "slow"]
fn only_containers_are_reaped() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("precious/f", "")
        .symlink(name_of(1), "precious")
        .file(name_of(2), "")
        .file(".rmz-x/f", "")
        .file(format!("sub/{}/f", name_of(3)), "");
    plant(scratch.path(), 4, Mark::Right).file("d/f", "");
    tree.select(name_of(4)).mode(0o755);
    let before = snapshot(scratch.path());
    let outcome = rmz(scratch.path(), &["--reap", "."]);
    assert_eq!(outcome.assert_success().stdout_text(), "");
    assert!(before.diff(&snapshot(scratch.path())).is_empty());
}

#[test]
#[ignore = "slow"]
fn a_directory_with_entries_and_the_mode_of_a_new_container_is_reported_and_stays() {
    let scratch = Scratch::new();
    plant(scratch.path(), 7, Mark::Right).file("d/f", "");
    Tree::at(scratch.path()).select(name_of(7)).mode(0o300);
    let outcome = rmz(scratch.path(), &["--reap", "."]);
    assert_eq!(outcome.status, Status::Exit(1));
    let message = "rmz: skipping './NAME', whose mode is not 0700\n";
    let message = message.replace("NAME", &name_of(7));
    assert_eq!(outcome.stderr_text(), message);
    Tree::at(scratch.path()).select(name_of(7)).mode(0o700);
    assert!(scratch.path().join(name_of(7)).join("d/f").exists());
}

#[test]
#[ignore = "slow"]
fn a_private_directory_without_its_mark_is_reported_and_stays() {
    for mark in [Mark::None, Mark::OfAnotherName] {
        let scratch = Scratch::new();
        plant(scratch.path(), 7, mark).file("d/f", "");
        let before = snapshot(scratch.path());
        let outcome = rmz(scratch.path(), &["--reap", "."]);
        assert_eq!(outcome.status, Status::Exit(1));
        let message = "rmz: skipping './NAME', which has no mark of rmz\n";
        assert_eq!(outcome.stderr_text(), message.replace("NAME", &name_of(7)));
        assert!(before.diff(&snapshot(scratch.path())).is_empty());
    }
}

#[test]
#[ignore = "slow"]
fn an_error_of_the_filesystem_is_not_taken_for_a_foreign_directory() {
    let scratch = Scratch::new();
    plant(scratch.path(), 1, Mark::Right).file("d/f", "");
    let run = Run::new(RMZ).args(["--reap", "."]).current_dir(&scratch);
    let calls = or_skip!(run.calls());
    let look = calls
        .iter()
        .find(|call| call.name.contains("stat") && call.shown.contains(&name_of(1)))
        .expect("the container is looked at");
    plant(scratch.path(), 1, Mark::Right).file("d/f", "");
    let before = snapshot(scratch.path());
    let outcome = run.with_fault(look, "error=EIO").output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let message = "rmz: cannot remove './NAME': Input/output error\n";
    assert_eq!(outcome.stderr_text(), message.replace("NAME", &name_of(1)));
    assert!(before.diff(&snapshot(scratch.path())).is_empty());
}

#[test]
#[ignore = "slow"]
fn containers_of_other_users_are_left_alone() {
    if !is_root() {
        skip!("another user takes root");
    }
    let scratch = Scratch::new();
    plant(scratch.path(), 1, Mark::Right).file("d/f", "");
    give_to_user(scratch.path());
    let before = snapshot(scratch.path());
    let outcome = rmz(scratch.path(), &["--reap", "."]);
    assert_eq!(outcome.assert_success().stdout_text(), "");
    assert!(before.diff(&snapshot(scratch.path())).is_empty());
    // An ordinary user cannot even open the directory. It stays then, too.
    let status = Command::new("chown")
        .arg("-R")
        .arg("1:1")
        .arg(scratch.path())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    rmz_of_user(scratch.path())
        .args(["--reap", "."])
        .output()
        .assert_success();
    assert!(before.diff(&snapshot(scratch.path())).is_empty());
}

#[test]
#[ignore = "slow"]
fn directories_that_cannot_be_listed_are_reported() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "");
    plant(scratch.path(), 1, Mark::Right);
    let outcome = rmz(scratch.path(), &["--reap", "missing", "f", "."]);
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(
        outcome.stderr_text(),
        "rmz: cannot open directory 'missing': No such file or directory\n\
         rmz: cannot open directory 'f': Not a directory\n"
    );
    assert!(containers(scratch.path()).is_empty());
    rmz(scratch.path(), &["--reap", "-f", "missing"]).assert_success();
}

#[test]
#[ignore = "slow"]
fn the_question_of_reap_says_what_is_removed() {
    for (answer, is_left) in [("n\n", true), ("y\n", false)] {
        let scratch = Scratch::new();
        plant(scratch.path(), 1, Mark::Right).file("d/f", "");
        let outcome = Run::new(RMZ)
            .args(["-I", "--reap", "."])
            .current_dir(&scratch)
            .stdin(answer)
            .output();
        assert_eq!(outcome.status, Status::Exit(0));
        assert_eq!(
            outcome.stderr_text(),
            format!("{RMZ}: remove the hidden directories of --detach in 1 argument? ")
        );
        assert_eq!(!containers(scratch.path()).is_empty(), is_left);
    }
}
