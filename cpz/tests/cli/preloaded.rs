//! Libraries that are preloaded to intercept file calls. Under the name `cp`, another cp is executed, and under the
//! name `cpz` a warning is written.

use std::fs;

use testkit::{
    needs, or_skip,
    probe::{NOBODY, Skip, has_program, is_root},
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, complaint};

/// A script that prints its arguments in brackets.
const OTHER: &str = "#!/bin/sh\nprintf '[%s]' \"$@\"\n";

/// Makes a directory that every user can write to, with the command as `ours/cp`.
fn place() -> Scratch {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("ours/ . %777");
    // Let another process copy the command. If this process wrote it, it might be "busy" when it is started.
    copy(&scratch, CPZ, "ours/cp");
    tree.plant("ours %755 ours/cp %755");
    scratch
}

/// Copies a file in a directory by the installed cp.
fn copy(dir: &Scratch, from: &str, to: &str) {
    let run = Run::new("cp").args([from, to]).current_dir(dir);
    run.output().assert_success();
}

/// Makes a script that can be executed.
fn script(place: &Scratch, path: &str, text: &str) {
    Tree::at(place).file(path, text).select(path).mode(0o755);
}

/// Skips if one of the programs is missing.
fn need(programs: &[&str]) -> Result<(), Skip> {
    match programs.iter().find(|program| !has_program(program)) {
        Some(missing) => Err(Skip(format!("there is no {missing}"))),
        None => Ok(()),
    }
}

/// Returns a value of `PATH` with these directories of the working directory.
fn absolute(directories: &str) -> String {
    let absolute = |directory: &str| match directory.starts_with(['/', '$']) {
        true => directory.to_owned(),
        false => format!("$PWD/{directory}"),
    };
    let directories: Vec<_> = directories.split(':').map(absolute).collect();
    directories.join(":")
}

/// Runs a script under fakeroot in a place, with this `PATH`.
fn under_fakeroot(place: &Scratch, path: &str, script: &str) -> Run {
    Run::new("fakeroot")
        .args(["sh", "-c", &format!("PATH={path}\n{script}")])
        .current_dir(place)
}

#[test]
fn the_next_cp_in_the_path_is_executed_with_the_same_arguments() {
    or_skip!(need(&["fakeroot"]));
    let place = place();
    for (path, text) in [
        ("other/cp", OTHER),
        ("bare/cp", "printf '[%s]' \"$@\"\n"),
        ("cp", OTHER),
        ("wrapper/cp", "#!/bin/sh\nexec ours/cp \"$@\"\n"),
        ("forking/cp", "#!/bin/sh\nours/cp \"$@\"\n"),
        ("searching/cp", "#!/bin/sh\ncp \"$@\"\n"),
        ("broken/cp", "#!/no/interpreter\n"),
    ] {
        script(&place, path, text);
    }
    Tree::at(&place).file("plain/cp", OTHER).plant(
        "directory/cp/ dangling/cp->nothing fifo/cp<fifo> link/cp->../ours/cp hard/ copy/
        hard/cp==ours/cp",
    );
    copy(&place, "ours/cp", "copy/cp");
    for path in [
        "ours:other",
        "other",
        "ours:/none:other",
        "ours:bare",
        "ours:link:hard:other",
        "link:ours:other",
        "hard:link:ours:other",
        "ours:copy:other",
        "copy:ours:copy:link:other",
        "wrapper:ours:other",
        "ours:wrapper:other",
        "ours:copy:wrapper:forking:searching:other",
        "ours:missing:plain:directory:dangling:fifo:broken:other",
    ] {
        let script = r#"exec cp --help "a b" "" -x"#;
        let outcome = under_fakeroot(&place, &absolute(path), script).output();
        outcome.assert_success();
        assert_eq!(outcome.stdout_text(), "[--help][a b][][-x]", "{path}");
    }
}

/// The working directory may belong to another user.
#[test]
fn no_cp_in_a_relative_directory_of_the_path_is_executed() {
    or_skip!(need(&["fakeroot"]));
    let place = place();
    script(&place, "other/cp", OTHER);
    for path in ["cp", "hostile/cp"] {
        script(&place, path, "#!/bin/sh\necho hostile\n");
    }
    for relative in [".", "", "./hostile", "hostile", "other/../hostile"] {
        let path = format!("$PWD/ours:{relative}:$PWD/other");
        let outcome = under_fakeroot(&place, &path, "exec cp a b").output();
        outcome.assert_success();
        assert_eq!(outcome.stdout_text(), "[a][b]", "{relative:?}");
        let path = format!("$PWD/ours:{relative}");
        let outcome = under_fakeroot(&place, &path, "exec cp --version").output();
        let shown = outcome.assert_success().stdout_text();
        assert!(shown.contains("coreutils"), "{relative:?}: {shown}");
    }
}

#[test]
fn the_cp_of_the_system_is_executed_if_there_is_none_in_the_path() {
    or_skip!(need(&["fakeroot"]));
    let place = place();
    place.plant("f=content");
    for path in ["ours", "/none\nunset PATH"] {
        let version = under_fakeroot(&place, path, "exec ours/cp --version").output();
        assert!(!version.assert_success().stdout_text().contains("cpz"));
        under_fakeroot(&place, path, "exec ours/cp f g")
            .output()
            .assert_success();
        let copy = place.at("g");
        assert_eq!(fs::read(&copy).expect("a copy"), b"content");
        fs::remove_file(copy).expect("a copy");
    }
}

#[test]
fn cp_does_the_work_with_a_warning_if_there_is_no_other_one() {
    or_skip!(need(&["fakeroot", "unshare"]));
    needs!(root);
    let place = place();
    place.plant("f=content");
    let script = r#"for cp in /usr/bin/cp /bin/cp; do mount --bind ours/cp $cp || exit 9; done
        exec fakeroot sh -c 'PATH=ours; exec cp f g'"#;
    let run = Run::new("unshare").args(["-m", "sh", "-c", script]);
    let outcome = run.current_dir(&place).output();
    outcome.assert_status(0);
    assert_eq!(
        outcome.stderr_text(),
        "cp: warning: fakeroot is bypassed: preloaded libraries do not see the system calls of cpz\n"
    );
    let copy = fs::read(place.at("g")).expect("a copy");
    assert_eq!(copy, b"content");
}

/// Apart from the variable that keeps programs from executing each other forever, nothing is different.
#[test]
fn the_other_cp_gets_the_environment_the_signals_and_the_streams_of_ours() {
    or_skip!(need(&["fakeroot"]));
    let place = place();
    // `grep` looks at itself: the shell blocks signals while it starts a program.
    let text = r#"#!/bin/sh
        streams=
        for stream in 0 1 2; do [ -e /proc/$$/fd/$stream ] && streams="$streams $stream"; done
        {
            echo "$streams"
            grep -E '^Sig(Blk|Ign):' /proc/self/status
            env | grep -v -e ^FUC_TRIED= -e ^_=
        } </dev/null >$1 2>&1
        "#;
    script(&place, "other/cp", text);
    for (setting, streams) in [
        (":", " 0 1 2"),
        ("trap '' PIPE HUP; exec <&-", " 1 2"),
        ("exec >&-", " 0 2"),
        ("exec <&- 2>&-", " 1"),
    ] {
        let script = format!("{setting}\nother/cp expected; cp actual");
        let path = absolute("ours:other:/usr/bin:/bin");
        under_fakeroot(&place, &path, &script)
            .output()
            .assert_success();
        let [expected, actual] = ["expected", "actual"].map(|name| {
            let report = fs::read_to_string(place.at(name));
            report.expect("a report")
        });
        assert_eq!(actual, expected, "{setting}");
        assert_eq!(actual.lines().next(), Some(streams), "{setting}");
    }
}

/// Runs a script under `cp`, as a user without the right to give files away.
#[track_caller]
fn owners(program: &str, place: &Scratch, run: Run) {
    let run = run.current_dir(place).env("PATH", path(place));
    let run = match is_root() {
        true => run.uid(NOBODY),
        false => run,
    };
    let outcome = run.output();
    assert_eq!(outcome.status, Status::Exit(0), "{program}: {outcome}");
    assert_eq!(outcome.stdout_text(), "4711:4712\n", "{program}: {outcome}");
    assert_eq!(outcome.stderr_text(), "", "{program}: {outcome}");
}

/// Returns the `PATH` that begins with our cp.
fn path(place: &Scratch) -> String {
    let ours = place.at("ours");
    format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", ours.display())
}

const GIVE_AND_COPY: &str = "echo >f; chown 4711:4712 f; cp -a f g; stat -c %u:%g g; rm -f f g";

#[test]
fn a_copy_under_fakeroot_has_the_owner_that_its_source_has_there() {
    or_skip!(need(&["fakeroot"]));
    let run = Run::new("fakeroot").args(["sh", "-c", GIVE_AND_COPY]);
    owners("fakeroot", &place(), run);
}

#[test]
fn a_copy_under_pseudo_has_the_owner_that_its_source_has_there() {
    or_skip!(need(&["pseudo"]));
    let place = place();
    place.plant("state/ state %777");
    // Stop the server, which would otherwise go on for a while.
    let script = r#"pseudo sh -c "$0"; pseudo -S >&2"#;
    let run = Run::new("sh")
        .args(["-c", script, GIVE_AND_COPY])
        .env("PSEUDO_PREFIX", "/usr")
        .env("PSEUDO_LOCALSTATEDIR", place.at("state"));
    owners("pseudo", &place, run);
}

/// Runs cpz under a program that preloads a library. Returns its outcome.
fn copied_under(program: &str, args: &[&str], place: &Scratch) -> Outcome {
    let run = Run::new(program).args(args).args([CPZ, "f", "g"]);
    run.current_dir(place)
        .env("PSEUDO_PREFIX", "/usr")
        .env("PSEUDO_LOCALSTATEDIR", place.at("state"))
        .output()
}

#[test]
fn cpz_warns_once_of_each_library_that_it_bypasses() {
    for (programs, args, names) in [
        (&["fakeroot"][..], &[][..], "fakeroot is"),
        (&["fakechroot"], &[], "fakechroot is"),
        (&["eatmydata"], &[], "eatmydata is"),
        (&["pseudo"], &[], "pseudo is"),
        (
            &["fakechroot", "fakeroot"],
            &["fakeroot"],
            "fakeroot and fakechroot are",
        ),
    ] {
        or_skip!(need(programs));
        let place = place();
        place.plant("f=content state/");
        let outcome = copied_under(programs[0], args, &place);
        if programs[0] == "pseudo" {
            copied_under("sh", &["-c", "pseudo -S"], &place);
        }
        assert_eq!(outcome.status, Status::Exit(0), "{programs:?}: {outcome}");
        let reason = "preloaded libraries do not see the system calls of cpz";
        let warning = format!("cpz: warning: {names} bypassed: {reason}");
        // pseudo has messages of its own about calls of Rust's runtime.
        let stderr = complaint(&outcome);
        let ours = stderr.lines().filter(|line| line.starts_with("cpz: "));
        assert_eq!(ours.collect::<Vec<_>>(), [warning], "{outcome}");
        let copy = fs::read(place.at("g")).expect("a copy");
        assert_eq!(copy, b"content");
    }
}
