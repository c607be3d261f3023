//! `--delete`: a dest becomes a mirror of its source, and nothing else is deleted.

use std::{fs, path::Path, process::Command, time::Duration};

use testkit::{
    habits, or_skip,
    probe::{Errno, Names, Numbering},
    run::{Outcome, Run, Status, as_done},
    served, skip,
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, chain, plant},
};

use crate::support::{CP, CPZ, complaint, cpz, succeeds};

fn copy(dir: impl AsRef<Path>, args: &[&str]) -> Outcome {
    cpz(dir, args).output()
}

/// Returns a scratch directory with a tree that `build` makes.
fn built(build: impl Fn(&Tree)) -> Scratch {
    let scratch = Scratch::new();
    build(&Tree::at(&scratch));
    scratch
}

fn snapshot(path: impl AsRef<Path>) -> Snapshot {
    Snapshot::of(path, Attributes::ALL - Attributes::ATIME)
}

/// Numbers that look random, and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Fills `dir` with names that other trees use for other types.
fn grow(tree: &Tree, dir: &str, depth: u64, has_links: bool, numbers: &mut Numbers) {
    tree.dir(dir);
    for name in ["a", "b", "c", "d", "e"] {
        let path = format!("{dir}/{name}");
        match numbers.below(9) {
            0 | 1 => tree.file(&path, vec![b'x'; numbers.below(4) as usize]),
            2 => tree.symlink(&path, ["a", "missing", ".."][numbers.below(3) as usize]),
            3 => tree.fifo(&path),
            4 if has_links && tree.path().join(dir).join("a").is_file() && name != "a" => {
                tree.hardlink(format!("{dir}/a"), &path)
            }
            5 | 6 if depth > 0 => {
                grow(tree, &path, depth - 1, has_links, numbers);
                tree.select(&path)
            }
            _ => continue,
        };
        tree.mtime(Duration::from_secs(1_000_000_000 + numbers.below(3)));
    }
}

#[test]
#[ignore = "slow"]
fn makes_random_trees_equal_to_their_sources() {
    for seed in 0..150 {
        let scratch = Scratch::new();
        let tree = Tree::at(&scratch);
        let mut numbers = Numbers(seed);
        // A dry run does not know that a file will have fewer names.
        let has_links = seed % 2 == 0;
        grow(&tree, "s", 3, has_links, &mut numbers);
        grow(&tree, "d", 3, has_links, &mut numbers);
        let source = snapshot(scratch.at("s"));
        let way: &[&str] = match seed % 3 {
            0 => &["-aT", "--delete", "s", "d"],
            1 => &["-aT", "--delete", "--resume", "s", "d"],
            _ => &["-aT", "--delete", "--remove-destination", "s", "d"],
        };
        let before = snapshot(scratch.at("d"));
        let dry = copy(&scratch, &[&["--dry-run"], way].concat());
        assert_eq!(before, snapshot(scratch.at("d")), "seed {seed}");
        let real = copy(&scratch, &[&["-v", "--threads=1"], way].concat());
        assert_eq!(real.status, Status::Exit(0), "seed {seed}: {real}");
        let lines = |stdout: &[u8]| {
            let text = String::from_utf8_lossy(stdout);
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        if !has_links {
            let planned = lines(&as_done(&dry.stdout));
            assert_eq!(planned, lines(&real.stdout), "seed {seed}");
        }
        assert_eq!(source, snapshot(scratch.at("d")), "seed {seed}");
        assert_eq!(source, snapshot(scratch.at("s")), "seed {seed}");
    }
}

/// Both keep a directory in the way if a part of it is excluded.
#[test]
#[ignore = "slow"]
fn random_mirrors_with_a_pattern_are_those_of_rsync() {
    if Command::new("rsync").arg("--version").output().is_err() {
        skip!("there is no rsync");
    }
    for seed in 0..60 {
        let scratch = built(|tree| {
            for dir in ["s", "d"] {
                grow(
                    tree,
                    dir,
                    3,
                    false,
                    &mut Numbers(seed * 2 + u64::from(dir == "d")),
                );
            }
        });
        let at = |name: &str| scratch.at(name);
        succeeds(&scratch, "-aT d theirs");
        for exclude in [&[][..], &["--exclude=b"], &["--exclude=c/"]] {
            for delete in ["--delete", "--delete-excluded"] {
                let args = [&["-a", delete], exclude].concat();
                let theirs = Run::new("rsync").args(&args).words("s/ theirs/");
                let theirs = theirs.current_dir(&scratch).output();
                let ours = copy(&scratch, &[&["-T"], &args[..], &["s", "d"]].concat());
                let row = format!("seed {seed} {args:?}: {ours} {theirs}");
                let are_complete = [&ours, &theirs].map(|it| it.status == Status::Exit(0));
                assert_eq!(are_complete[0], are_complete[1], "{row}");
                // If a directory is incomplete, rsync sets its time nevertheless.
                let [ours, theirs] =
                    ["d", "theirs"].map(|dir| Snapshot::of(at(dir), Attributes::CONTENT));
                assert_eq!(ours, theirs, "{row}");
            }
        }
    }
}

#[test]
fn names_are_deleted_before_others_are_copied() {
    let scratch = built(plant("s/a= s/sub/b= d/sub/old= d/x/y="));
    let outcome = copy(&scratch, &["-aTv", "--threads=1", "--delete", "s", "d"]);
    assert_eq!(
        outcome.stdout_text(),
        "removed 'd/x/y'\nremoved directory 'd/x'\n's/a' -> 'd/a'\nremoved 'd/sub/old'\n's/sub/b' -> 'd/sub/b'\n"
    );
}

#[test]
fn dests_become_mirrors() {
    CP.rows(
        r#"
        # A dest of another type is replaced although it is newer, and no link is written through.
        s/{link,fifo,file}=1 s/link @1 s/fifo @1 s/file @1 outside=kept d/link->../outside d/fifo<fifo> d/file=newer
        cpz -aT -u --delete s d
        = -d/link -d/fifo d/link=1 d/fifo=1
        cpz -aT (--update=none|-n) --delete s d
        =
        # Other types are replaced.
        outside/kept=kept s/x=content (d/x/sub/y=content|d/x->../outside/kept|d/x<fifo>)
        cpz -aT --delete s d
        = -d/x d/x=content
        outside/kept=kept s/x/sub/y=content (d/x=content|d/x->../outside)
        cpz -aT --delete s d
        = -d/x d/x/sub/y=content
        outside/kept=kept s/x->../outside d/x/sub/y=content
        cpz -aT --delete s d
        = -d/x d/x->../outside
        outside/kept=kept s/x<fifo> d/x/sub/y=content
        cpz -aT --delete s d
        = -d/x d/x<fifo>
        # What is excluded is spared, unless that is deleted, too.
        s/a= s/sub/k.o= s/sub/.gitignore='/tmp/\n' d/old/deep/k.o= d/old/x= d/sub/y.o= d/sub/tmp/z= d/sub/other/tmp=
        d/top/tmp/z=
        cpz -aT --delete --exclude=*.o s d
        = d/a= d/sub/.gitignore='/tmp/\n' -d/old/x -d/sub/tmp -d/sub/other -d/top
        cpz -aT --delete --exclude=/old s d
        = d/a= d/sub/.gitignore='/tmp/\n' d/sub/k.o= -d/sub/y.o -d/sub/tmp -d/sub/other -d/top
        cpz -aT --delete --exclude=/old/deep/ s d
        = d/a= d/sub/.gitignore='/tmp/\n' d/sub/k.o= -d/old/x -d/sub/y.o -d/sub/tmp -d/sub/other -d/top
        cpz -aT --delete --gitignore s d
        = d/a= d/sub/.gitignore='/tmp/\n' d/sub/k.o= -d/old -d/sub/y.o -d/sub/other -d/top
        cpz -aT --delete-excluded --exclude=*.o s d
        = d/a= d/sub/.gitignore='/tmp/\n' -d/old -d/sub/y.o -d/sub/tmp -d/sub/other -d/top
        cpz -aT --delete-excluded --gitignore s d
        = d/a= d/sub/.gitignore='/tmp/\n' d/sub/k.o= -d/old -d/sub/y.o -d/sub/tmp -d/sub/other -d/top
        # No more is deleted than the limit, and the rest is counted.
        s/one/kept= d/one/kept= d/one/sub/{a,b}= d/zero=
        cpz -aT --delete --max-delete=0 --stats=json s d
        > ..."deleted":0,"not_deleted":4,...
        ! entries not deleted because of --max-delete: 4
        cpz -aT --delete --max-delete=(1|3) --stats=json s d
        > ..."deleted":1,"not_deleted":3,...
        ! entries not deleted because of --max-delete: 3
        = -d/zero
        cpz -aT --delete --max-delete=4 --stats=json s d
        > ..."deleted":4,"not_deleted":0,...
        = -d/zero -d/one/sub
        # A link that the limit keeps is not written through.
        s/x=new outside=kept d/x->../outside
        cpz -aT --delete --max-delete=0 s d
        ! entries not deleted because of --max-delete: 1
        = -d/x d/x=new
        # A name goes whose source is excluded because of its type.
        s/cache/new= d/cache=old
        cpz -aT (--delete|--delete-excluded) --exclude=cache/ s d
        = -d/cache
        # A directory that a pattern excludes is not in the way.
        s/cache->elsewhere d/cache/precious=1
        cpz -aT --delete --exclude=cache/ s d
        ! cannot overwrite directory 'd/cache' with non-directory 's/cache'
        cpz -aT --delete-excluded --exclude=cache/ s d
        = -d/cache d/cache->elsewhere
        cpz --dry-run -aT --delete-excluded --exclude=cache/ s d
        > would remove...
        > would remove...
        > would copy...
        > would copy...
        # A directory in the way stays if a part of it is excluded.
        s/x= d/x/part.o= d/x/rest=
        cpz -rT --delete --exclude=*.o s d
        ! cannot overwrite directory 'd/x' with non-directory 's/x'
        = -d/x/rest
        # Several sources each have their mirror.
        x/a/1= x/b/2= d/a/old= d/other=
        cpz -a --delete x/a x/b d
        = d/a/1= d/b/2= -d/a/old"#,
    );
}

#[test]
fn dests_that_are_no_mirrors_are_refused() {
    CP.rows(
        r"
        # The source would be deleted with its dest.
        a/b/f=1 a/x=2 y/b/g=3 d/a/b/h=4 file=5 link->d
        cpz --delete -aT a/b a
        ! cannot delete in 'a': a source is in it, or several sources are copied to it
        cpz --delete -aT a .
        ! cannot delete in '.': a source is in it, or several sources are copied to it
        # Two sources have one dest.
        cpz --delete -a (a/b y/b|a/. y/.|--parents a/b y/b) d
        ! cannot delete in 'd': a source is in it, or several sources are copied to it
        # These options contradict it.
        cpz --delete (-aTb|-aTi|-aT --keep-directory-symlink) a d
        ! --delete is mutually exclusive with -i, --backup, --keep-directory-symlink and --attributes-only
        ! try
        cpz --delete -rLT a d
        ! --delete is mutually exclusive with -L
        ! try
        cpz --delete -rlT a d
        ! --delete follows no links; -l does, without -P
        ! try
        cpz --max-delete=1 -aT a d
        ! --max-delete needs --delete
        ! try
        # These dests are refused without it, too.
        cpz --delete -aT file d
        ! cannot overwrite directory 'd' with non-directory 'file'
        cpz --delete -aT a file
        ! cannot overwrite non-directory 'file' with directory 'a'
        cpz --delete -aT a link
        ! cannot overwrite non-directory 'link' with directory 'a'
        cpz --delete -aT a a
        ! 'a' and 'a' are the same file
        # A source in a dest stops that operand only.
        a/x= c/new= d/a/b/precious= d/c/old=
        cpz -a --delete a d/a/b c d
        ! cannot delete in 'd/a'...
        = d/b/precious= d/c/new= -d/c/old
        # So does one that is named through a link, which may be one of several, or lead to a directory on the way.
        s/x/a= d/x/sub/precious=1 to-file->d/x/sub/precious d/x/link->../../to-file to-link->d/x/link to-directory->d/x/sub
        cpz -rH --delete s/x to-file d
        ! cannot delete in 'd/x': a source is in it, or several sources are copied to it
        = d/to-file=1
        cpz -rH --delete s/x to-link d
        ! cannot delete in 'd/x': a source is in it, or several sources are copied to it
        = d/to-link=1
        cpz -rH --delete s/x to-directory/precious d
        ! cannot delete in 'd/x': a source is in it, or several sources are copied to it
        = d/precious=1
        cpz -rH --delete s/x to-directory d
        ! cannot delete in 'd/x': a source is in it, or several sources are copied to it
        = d/to-directory/precious=1",
    );
}

/// Each listing of the source fails once, or is empty for a moment. The first four find the names, and the others copy. A
/// filesystem may say that a directory is missing although it is there.
#[test]
fn names_stay_if_a_listing_of_their_source_fails() {
    for (option, fault, reason) in [
        ("-aT", "error=EIO", Some("Input/output error")),
        ("-aT", "error=ENOENT", Some("No such file or directory")),
        ("-rT", "error=ENOENT", Some("No such file or directory")),
        ("-aT", "retval=0", None),
    ] {
        let scratch = Scratch::with("s/document= s/new= d/document= d/old=");
        let run = cpz(&scratch, [option, "--threads=1", "--delete", "s", "d"]);
        let mut calls = or_skip!(run.calls());
        calls.retain(|call| call.name.starts_with("getdents") && call.shown.contains("/s>"));
        // Two for each look at the names, and for the copy.
        assert_eq!(calls.len(), 6, "{calls:?}");
        for (index, call) in calls.iter().enumerate() {
            let [document, new, old] =
                ["document", "new", "old"].map(|name| scratch.at("d").join(name));
            fs::write(&old, "").unwrap();
            fs::remove_file(&new).unwrap();
            let outcome = run.with_fault(call, fault).output();
            let row = format!("{option} {fault} {index}: {outcome}");
            assert!(document.exists(), "{row}");
            assert_eq!(new.exists(), index != 4, "{row}");
            assert_eq!(old.exists(), reason.is_some() && index < 4, "{row}");
            let status = Status::Exit(i32::from(reason.is_some()));
            assert_eq!(outcome.status, status, "{row}");
            let said = reason.map(|reason| format!("cpz: cannot access 's': {reason}\n"));
            assert_eq!(complaint(&outcome), said.unwrap_or_default(), "{row}");
            fs::write(&new, "").unwrap();
        }
    }
}

/// The dest lists one of two names that it takes for one, or none of them.
#[test]
#[ignore = "slow"]
fn a_directory_whose_name_is_taken_for_another_one_is_refused() {
    for [upper, lower] in [["Foo", "foo"], ["\u{212a}", "k"]] {
        let scratch = built(|tree| {
            tree.plant(format!("s/{upper}/a= s/{lower}/b="));
        });
        for numbering in [Numbering::True, Numbering::Fresh, Numbering::Equal] {
            for is_listed in [true, false] {
                let place = served!(names: Names::LowerCase,
                    numbering);
                let stored = place.stored_at("d").join(lower);
                match is_listed {
                    true => Tree::at(&stored).plant("old="),
                    false => Tree::at(place.stored()).dir("d"),
                };
                let dest = place.at("d").display().to_string();
                let outcome = copy(&scratch, &["-rT", "--delete", "s", &dest]);
                let row = format!("{numbering:?} {is_listed} {outcome}");
                assert_eq!(outcome.status, Status::Exit(1), "{row}");
                let said = complaint(&outcome);
                assert_eq!(said.lines().count(), 1, "{row}");
                assert!(
                    said.starts_with(&format!("cpz: cannot delete in '{dest}/")),
                    "{row}"
                );
                let left: Vec<_> = ["a", "b", "old"]
                    .into_iter()
                    .filter(|name| stored.join(name).exists())
                    .collect();
                match is_listed {
                    true => assert_eq!(left, ["b"], "{row}"),
                    false => assert_eq!(left.len(), 1, "{row}"),
                }
            }
        }
    }
}

/// With 2,000 subdirectories, more listings of their parents took most of the time.
#[test]
fn a_directory_is_not_listed_again_for_each_one_in_it() {
    let place = served!();
    let scratch = built(|tree| {
        for number in 0..20 {
            tree.dir(format!("parent/{number}"));
            Tree::at(place.stored()).plant(format!("parent/{number}/old="));
        }
    });
    let dest = place.at("parent").display().to_string();
    let run = Run::new(CPZ).args(["-rT", "--threads=1", "--delete", "parent", &dest]);
    let calls = or_skip!(run.current_dir(&scratch).calls());
    let listings = calls
        .iter()
        .filter(|call| call.name.starts_with("getdents") && call.shown.contains("/parent>"));
    // The dest once, and the source for the names and for the copy.
    assert_eq!(listings.count(), 6, "{calls:?}");
    assert!(!place.stored_at("parent/7/old").exists());
}

#[test]
#[ignore = "slow"]
fn deep_trees_are_deleted_with_few_descriptors() {
    let scratch = built(|tree| {
        tree.plant("s/a/b/c/d/e/f/g/h/ d/a/b/c/d/e/f/g/h/");
        chain(tree.path().join("d/a/b/c/d/e/f/g/h/old"), 3_000);
        chain(tree.path().join("d/a/b/c/old"), 3_000);
    });
    let run = Run::new(CPZ).nofile_limit(20).current_dir(&scratch);
    let outcome = run.words("-aT --delete s d").output();
    assert_eq!(
        (outcome.status, complaint(&outcome)),
        (Status::Exit(0), String::new())
    );
    assert_same_tree(scratch.at("s"), scratch.at("d"), Attributes::CONTENT);
}

#[test]
fn a_mirror_in_the_directory_that_should_have_been_the_mirror_is_named_at_a_terminal() {
    let hint = "cpz: hint: the mirror is 'e/d'; with -T, it is the destination itself";
    for (args, hints) in [
        (&["--delete", "d", "e"][..], 1),
        (&["--delete", "d", "-te"], 0),
        (&["--delete", "-T", "d", "e"], 0),
        (&["d", "e"], 0),
    ] {
        let scratch = Scratch::with("d/f= e/old=");
        let run = cpz(&scratch, args);
        let shown = or_skip!(run.at_terminal()).output().stdout_text();
        let found = shown.lines().filter(|line| *line == hint).count();
        assert_eq!(found, hints, "{args:?}: {shown}");
        // The mirror exists now.
        let again = or_skip!(run.at_terminal()).output().stdout_text();
        assert_eq!(again, "", "{args:?}");
        assert_eq!(run.output().stderr_text(), "");
    }
}

#[test]
fn nothing_is_deleted_that_is_mounted_or_cannot_be_read() {
    CP.rows(
        r#"
        # The path of such a source does not show that it is in the dest.
        s/ d/gone= d/cur/precious=1
        root sh:'mount --bind d/cur s && "$@"; s=$?; umount s; exit $s' cpz -aT --delete s d
        ! cannot delete in 'd'...
        = d/precious=1 -d/gone
        s/ d/gone= d/old/cur/precious=1
        root sh:'mount --bind d/old/cur s && "$@"; s=$?; umount s; exit $s' cpz -aT --delete s d
        ! cannot delete in 'd'...
        = d/precious=1 -d/gone
        # No other filesystem is entered.
        s/ d/old/point/ d/old/gone= d/mounted/ inner/precious=
        root sh:'for at in d/old/point d/mounted; do mount --bind inner $at; done; "$@"; s=$?; umount d/old/point d/mounted; exit $s' cpz -aT --delete s d
        ! skipping 'd/old/point', since it's on a different device
        ! skipping 'd/mounted', since it's on a different device
        = -d/old/gone
        root sh:'for at in d/old/point d/mounted; do mount --bind inner $at; done; "$@"; s=$?; umount d/old/point d/mounted; exit $s' cpz -aTx --delete s d
        = -d/old/gone
        # With -x, nothing is deleted on another one, as by rsync.
        s/m/sub/f= d/gone= d/m/
        root sh:'mount -t tmpfs none d/m; mkdir d/m/sub; touch d/m/old d/m/sub/old; "$@"; s=$?; find d/m -type f; umount d/m; exit $s' cpz -axT --delete s d
        > d/m/old
        > d/m/sub/f
        > d/m/sub/old
        = -d/gone
        root sh:'mount -t tmpfs none d/m; mkdir d/m/sub; touch d/m/old d/m/sub/old; "$@"; s=$?; find d/m -type f; umount d/m; exit $s' cpz -aT --delete s d
        > d/m/sub/f
        = -d/gone
        # What cannot be read has names that cannot be known.
        s/closed/f= s/files/f= s/rules/.gitignore='/build\n' s/rules/sub/f= d/old= d/closed/old= d/files/f/old= d/files/x=
        d/rules/build/x= d/rules/sub/build= d/rules/old= s/closed %0 s/files/f %0 s/rules/.gitignore %0
        user cpz -rT --delete --gitignore s d
        ! cannot open 's/files/f' for reading: Permission denied
        ! cannot access 's/closed': Permission denied
        ! cannot open 's/rules/.gitignore' for reading: Permission denied
        = -d/old -d/files/x -d/files/f
        # The names in this directory cannot be looked at.
        s/unsearchable/f= d/unsearchable/old= d/gone= s/unsearchable %644
        user cpz -rT --delete s d
        ! cannot access 's/unsearchable': Permission denied
        ! cannot stat 's/unsearchable/f': Permission denied
        = -d/gone"#,
    );
}

#[test]
#[ignore = "slow"]
fn a_dest_that_shows_other_names_is_a_mirror() {
    for numbering in [
        Numbering::True,
        Numbering::Lasting,
        Numbering::Fresh,
        Numbering::Equal,
    ] {
        for (names, source, copy) in [
            (
                Names::LowerCase,
                "s/Data=content s/Sub/Inner=",
                "m/d/data=content m/d/sub/inner=",
            ),
            (
                Names::Cut(9),
                "s/data-long-one=content s/Sub/Inner=",
                "m/d/data-long=content m/d/Sub/Inner=",
            ),
            (
                Names::Decomposed,
                "s/caf\u{e9}=content s/Sub/caf\u{e9}/f=",
                "m/d/cafe\u{301}=content m/d/Sub/cafe\u{301}/f=",
            ),
        ] {
            // The copy is not lost if it is listed by another name, and the second run finds nothing to delete.
            CP.table()
                .served("m", habits!(names, numbering))
                .rows(&format!(
                    r#"{source} m/d/old/sub/ m/d/gone=
                sh:'"$@" && "$@"' cpz -rT --delete s m/d
                = -m/d/old -m/d/gone {copy}"#
                ));
        }
    }
    for (names, source, copy) in [
        (
            Names::LowerCase,
            "s/Data= s/sub/Data/f=",
            "m/d/data= m/d/sub/data/f=",
        ),
        (
            Names::Trimmed,
            "s/data.= s/sub/data./f=",
            "m/d/data= m/d/sub/data/f=",
        ),
        (Names::Decomposed, "s/caf\u{e9}=", "m/d/cafe\u{301}="),
    ] {
        CP.table().served("m", habits!(names)).rows(&format!(
            r#"{source} m/
            sh:'cpz -aT s m/d && touch m/d/gone && "$@" && "$@"' cpz -aT --resume --delete -v s m/d
            > removed 'm/d/gone'
            = {copy}"#
        ));
    }
}

#[test]
fn served_dests_and_sources_become_mirrors() {
    let served = |habits| CP.table().served("m", habits);
    served(habits!(names: Names::LowerCase)).rows(
        "# A source that ignores case leaves no other spellings.
        m/foo= m/bar/x= d/foo= d/Foo= d/BAR/x= d/zzz=
        cpz -rT --delete m d
        = -d/Foo -d/BAR -d/zzz d/bar/x=
        # What is excluded goes by its other name, too.
        s/SECRET= s/f= m/d/secret=
        cpz -rT --delete-excluded --exclude=SECRET s m/d
        = m/d/f= -m/d/secret",
    );
    served(habits!(numbering: Numbering::Zero)).rows(
        "# A source directory that shows no links is not taken for a removed one.
        m/sub/f= d/sub/extraneous= d/old/f=
        cpz -rT --delete m d
        = -d/sub/extraneous -d/old d/sub/f=",
    );
    served(habits!()).rows(
        "# Unrelated names do not keep what is extraneous.
        s/документы/a= s/музыка/a= m/d/документы/old=
        cpz -rT --delete --exclude=музыка s m/d
        = -m/d/документы/old m/d/документы/a=",
    );
    for errno in [Errno::INVAL, Errno::NOENT, Errno::NOTDIR, Errno::LOOP] {
        served(habits!(opendir: Some(errno))).rows(
            "# What cannot be deleted is reported.
            s/f= m/d/bad/f=
            cpz -rT --delete s m/d
            ! cannot remove 'm/d/bad'...
            = m/d/f=",
        );
    }
}
