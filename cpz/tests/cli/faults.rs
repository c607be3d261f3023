//! Each system call of a run fails in every way that is possible: either the copy is right and the status
//! is 0, or a message names a path and the status is 1.

use std::{fs, os::unix::fs::MetadataExt, time::Duration};

use testkit::{
    or_skip,
    probe::{Skip, supports_acls, supports_xattrs},
    run::{Call, Outcome, Run, Status, is_left_out, possible_errors},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise, remove_for_sure},
};

use crate::support::{CP, CPZ, complaint, cpz};

/// Larger than a file that is copied by a task of its own.
const LARGE_BYTES: u64 = (4 << 20) + 1;

fn build(scratch: &Scratch) {
    let tree = Tree::at(scratch);
    tree.plant("s/file=1 %640 s/empty= s/fifo<fifo> s/link->file s/none/")
        .file("s/d/e/file", vec![2; 100_000])
        .plant("s/d/name==s/file")
        .sparse("s/d/sparse", LARGE_BYTES, &[(3 << 20, b"3")]);
    if supports_xattrs(scratch.path()) {
        tree.plant("s/file xattr:user.note=4");
    }
    if supports_acls(scratch.path()) {
        tree.plant("s/d/e/file acl:u:1:rwx s/d/e acl:d:u:1:rwx");
    }
    for name in ["s/file", "s/d/sparse", "s/d", "s"] {
        tree.select(name).mtime(Duration::from_secs(1_000_000_000));
    }
}

/// Returns the attributes that a copy has in spite of `error`.
fn kept(attributes: Attributes, call: &Call, error: &str) -> Attributes {
    match (&*call.name, error) {
        (_, "EINTR") => attributes,
        // As with cp, `-a` copies extended attributes if it can, and does not report those that it can't.
        (name, _) if name.ends_with("xattr") => attributes - Attributes::XATTRS,
        // A filesystem that can't look for holes.
        ("lseek", _) => attributes - Attributes::HOLES,
        _ => attributes,
    }
}

/// Returns `true` if each line of stderr names a file of the source or of the copy.
fn names_paths(outcome: &Outcome) -> bool {
    let complaint = complaint(outcome);
    let names_path = |line: &str| {
        let paths = ["'s'", "'s/", "'d'", "'d/"];
        line.starts_with("cpz: ") && paths.iter().any(|path| line.contains(path))
    };
    !complaint.is_empty() && complaint.lines().all(names_path)
}

#[track_caller]
fn survives_faults(options: &[&str], attributes: Attributes) {
    let scratch = Scratch::in_memory();
    build(&scratch);
    let run = Run::new(CPZ)
        .args(options)
        .words("-T --threads=1 s d")
        .current_dir(&scratch);
    let calls = or_skip!(run.calls());

    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    let source_before = Snapshot::of(&source, Attributes::ALL - Attributes::ATIME);
    let undisturbed = scratch.at("undisturbed");
    fs::rename(&dest, &undisturbed).unwrap();
    let mut wrong = Vec::new();
    for (call, error) in possible_errors(&calls) {
        remove_for_sure(&dest).unwrap();
        let outcome = run.with_fault(call, &format!("error={error}")).output();
        let kept = kept(attributes, call, error);
        let difference = match dest.symlink_metadata() {
            Ok(_) => Snapshot::of(&undisturbed, kept).diff(&Snapshot::of(&dest, kept)),
            Err(_) => "- the whole copy".to_owned(),
        };
        let right = match outcome.status {
            Status::Exit(0) => difference.is_empty() && outcome.stderr.is_empty(),
            Status::Exit(1) => {
                let invented = difference.lines().any(|line| line.starts_with('+'));
                error != "EINTR" && names_paths(&outcome) && !invented
            }
            _ => false,
        };
        if !right && !is_left_out(&outcome) {
            wrong.push(format!("{error} of {}\n{outcome}{difference}", call.shown));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let source_after = Snapshot::of(&source, Attributes::ALL - Attributes::ATIME);
    assert_eq!(source_before, source_after);
}

#[test]
#[ignore = "slow"]
fn a_call_that_fails_is_reported_or_makes_no_difference() {
    survives_faults(&["-r"], Attributes::CONTENT);
}

#[test]
#[ignore = "slow"]
fn a_call_that_fails_in_an_archive_is_reported_or_makes_no_difference() {
    survives_faults(
        &["-a", "--fsync", "--verify"],
        Attributes::ALL - Attributes::ATIME,
    );
}

/// Errors that have nothing to do with the content of files.
const ERRORS: [&str; 18] = [
    "EBADF",
    "EBUSY",
    "EDQUOT",
    "EFBIG",
    "EINVAL",
    "EIO",
    "EISDIR",
    "ENODEV",
    "ENOMEM",
    "ENOSPC",
    "ENOSYS",
    "EOVERFLOW",
    "EPERM",
    "EPROTO",
    "EREMOTEIO",
    "ESPIPE",
    "ESTALE",
    "ETIMEDOUT",
];

/// Copies files of several kinds while `call` fails in each way, and asserts that the copies are right.
#[track_caller]
fn copies_without(call: &str, options: &[&str]) {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    let data = noise(1 << 16);
    tree.plant("s/small=1")
        .file("s/large", noise((20 << 20) + 5))
        .sparse(
            "s/data-at-both-ends",
            3 << 20,
            &[(0, &data), ((3 << 20) - 5, b"tail!")],
        )
        .sparse(
            "s/data-between",
            3 << 20,
            &[(1 << 20, &data), (2 << 20, &data)],
        )
        .sparse("s/hole", 5 << 20, &[]);
    let run = cpz(&scratch, options).words("-rT --threads=1 s d");
    or_skip!(run.calls());
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    let expected = Snapshot::of(&source, Attributes::CONTENT);
    // The first calls may succeed.
    let later = ["2+", "4+"]
        .into_iter()
        .flat_map(|when| ["EINVAL", "EIO"].map(|error| (error, when)));
    for (error, when) in ERRORS.map(|error| (error, "1+")).into_iter().chain(later) {
        remove_for_sure(&dest).unwrap();
        let faults = format!("{call}:error={error}:when={when}");
        let outcome = run.with_faults(&faults).output();
        let difference = expected.diff(&Snapshot::of(&dest, Attributes::CONTENT));
        let is_right = outcome.status == Status::Exit(0) && outcome.stderr.is_empty();
        assert!(
            is_right && difference.is_empty(),
            "{error} of {call} from number {when}\n{outcome}{difference}"
        );
    }
}

#[test]
#[ignore = "slow"]
fn whatever_error_the_kernel_copies_with_content_is_read_and_written() {
    copies_without("copy_file_range", &[]);
}

#[test]
#[ignore = "slow"]
fn whatever_error_a_clone_fails_with_content_is_copied() {
    copies_without("ioctl", &[]);
}

#[test]
#[ignore = "slow"]
fn a_tree_is_copied_if_the_kernel_cannot_say_when_directories_were_made() {
    copies_without("statx", &[]);
    CP.rows("s/f=1 d/ \n fault:statx:error=EINVAL cpz -r s d \n = d/s/f=1");
}

#[test]
#[ignore = "slow"]
fn a_file_that_cannot_be_extended_gets_its_size_by_a_write() {
    copies_without("ftruncate", &[]);
    copies_without("ftruncate", &["--sparse=always"]);
}

/// Returns a place with a sparse file `s`, the run that copies it to `d`, and the calls of the run.
fn copy_of_a_sparse_file(option: &str) -> Result<(Scratch, Run, Vec<Call>), Skip> {
    let scratch = Scratch::in_memory();
    Tree::at(&scratch).sparse("s", 3 << 20, &[(1 << 20, &noise(70_000)), (2 << 20, b"2")]);
    let run = cpz(&scratch, ["--threads=1", option, "s", "d"]);
    let calls = run.calls()?;
    Ok((scratch, run, calls))
}

/// Runs such a copy with a fault. Asserts that its content is right, and returns its metadata.
#[track_caller]
fn copied_with(fault: &str, call: &Call, scratch: &Scratch, run: &Run) -> fs::Metadata {
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    remove_for_sure(&dest).unwrap();
    run.with_fault(call, fault).output().assert_success();
    let is_right = fs::read(source).unwrap() == fs::read(&dest).unwrap();
    assert!(is_right, "{fault} of {}", call.shown);
    fs::metadata(dest).unwrap()
}

#[test]
#[ignore = "slow"]
fn holes_need_no_seek() {
    for flag in ["--sparse=auto", "--sparse=always", "--reflink=never"] {
        let (scratch, run, mut calls) = or_skip!(copy_of_a_sparse_file(flag));
        // A source that refuses to be read from a position cannot be copied.
        calls.retain(|call| {
            let reads = call.shown.contains("/s>") && call.shown.contains("SEEK_SET");
            call.name == "lseek" && !reads
        });
        assert!(calls.len() >= 4, "{calls:?}");
        for call in &calls {
            for error in ["EINVAL", "EIO", "ENOSYS", "EPERM", "ESPIPE"] {
                copied_with(&format!("error={error}"), call, &scratch, &run);
            }
        }
    }
}

#[test]
fn a_source_whose_filesystem_finds_data_wrongly_or_not_at_all_gets_a_right_copy() {
    let (scratch, run, mut calls) = or_skip!(copy_of_a_sparse_file("-r"));
    calls.retain(|call| call.shown.contains("SEEK_DATA"));
    assert!(calls.len() >= 3, "{calls:?}");
    for call in &calls {
        // Data beyond the end.
        copied_with(&format!("retval={}", 1_u32 << 30), call, &scratch, &run);
    }
    for fault in ["error=EINVAL", "error=EOPNOTSUPP"] {
        let copy = copied_with(fault, &calls[0], &scratch, &run);
        assert!(copy.blocks() < 2048, "{fault}: the copy is not sparse");
    }
}

#[test]
fn a_call_that_is_always_interrupted_fails() {
    let scratch = Scratch::in_memory();
    build(&scratch);
    or_skip!(Run::new(CPZ).arg("--version").calls());
    for (call, option) in [
        ("mkdirat", "-r"),
        ("mknodat", "-r"),
        ("symlinkat", "-r"),
        ("getdents64", "-r"),
        ("fchmod", "-a"),
        ("utimensat", "-a"),
        ("fsync", "--fsync"),
    ] {
        remove_for_sure(scratch.at("d")).unwrap();
        let run = cpz(&scratch, ["-r", option, "-T", "s", "d"]);
        let outcome = run.with_faults(&format!("{call}:error=EINTR")).output();
        assert_eq!(outcome.status, Status::Exit(1), "{call} {outcome}");
        let said = complaint(&outcome);
        assert!(
            said.contains(": Interrupted system call\n"),
            "{call} {said}"
        );
        assert!(names_paths(&outcome), "{call} {outcome}");
    }
}

#[test]
fn faults_that_are_reported_or_make_no_difference() {
    CP.rows(
        "
        # Attributes that are listed but cannot be read are reported.
        s=1 acl:u:1:rwx
        acls fault:fgetxattr:error=(ENODATA|EOPNOTSUPP) cpz (-p|-a) s d
        ! preserving permissions for ...
        = d=1 %604
        s=1 xattr:user.note=2
        xattrs fault:fgetxattr:error=(ENODATA|EOPNOTSUPP) cpz --preserve=xattr s d
        ! setting attributes for ...
        = d=1
        # Unless they are asked for by name, other attributes are copied if they can be.
        xattrs fault:fgetxattr:error=(ENODATA|EOPNOTSUPP) cpz (-a|--preserve=all) s d
        = d=1
        # An attribute is named that is lost though only attributes are copied.
        xattrs fault:setxattr,fsetxattr,lsetxattr:error=EPERM cpz -a --attributes-only s d
        ! setting attributes for 'd': Operation not permitted
        ? 0
        = d=
        xattrs fault:setxattr,fsetxattr,lsetxattr:error=EOPNOTSUPP cpz -a --attributes-only s d
        ! setting attributes for 'd': Operation not supported
        ? 0
        = d=
        # A mode that is right already need not be set.
        s=1 %600
        fault:fchmod,fchmodat,?fchmodat2:error=(EPERM|ENOSYS|EIO) cpz --preserve=ownership s d
        = d=1 %600
        # Hidden names need no random bytes of the kernel.
        s=new d=old
        fault:getrandom:error=(ENOSYS|EPERM) cpz -lf s d
        = -d d==s
        s/a=content t/b==s/a d/
        fault:getrandom:error=EIO cpz -a --backup=numbered s t s/a t/b d
        = d/s/a=content d/t/b==d/s/a d/a==d/s/a d/b==d/s/a",
    );
}
