//! `--delete`: a dest becomes a mirror of its source, and nothing else is deleted.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::or_skip;
use testkit::probe::{Errno, FuseMount, Habits, NOBODY, Names, Numbering, is_root};
use testkit::run::{Outcome, Run, Status, as_done};
use testkit::skip;
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, chain};

use crate::support::{CP, CPZ, complaint, succeeds};

fn copy(dir: impl AsRef<Path>, args: &[&str]) -> Outcome {
    Run::new(CPZ).args(args).current_dir(dir).output()
}

/// Returns a scratch directory with a tree that `build` makes.
fn built(build: impl Fn(&Tree)) -> Scratch {
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
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
        let tree = Tree::at(scratch.path());
        let mut numbers = Numbers(seed);
        // A dry run does not know that a file will have fewer names.
        let has_links = seed % 2 == 0;
        grow(&tree, "s", 3, has_links, &mut numbers);
        grow(&tree, "d", 3, has_links, &mut numbers);
        let source = snapshot(scratch.path().join("s"));
        let way: &[&str] = match seed % 3 {
            0 => &["-aT", "--delete", "s", "d"],
            1 => &["-aT", "--delete", "--resume", "s", "d"],
            _ => &["-aT", "--delete", "--remove-destination", "s", "d"],
        };
        let before = snapshot(scratch.path().join("d"));
        let dry = copy(&scratch, &[&["--dry-run"], way].concat());
        assert_eq!(before, snapshot(scratch.path().join("d")), "seed {seed}");
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
        assert_eq!(source, snapshot(scratch.path().join("d")), "seed {seed}");
        assert_eq!(source, snapshot(scratch.path().join("s")), "seed {seed}");
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
        let at = |name: &str| scratch.path().join(name);
        succeeds(&scratch, &["-aT", "d", "theirs"]);
        for exclude in [&[][..], &["--exclude=b"], &["--exclude=c/"]] {
            for delete in ["--delete", "--delete-excluded"] {
                let args = [&["-a", delete], exclude].concat();
                let theirs = Run::new("rsync").args(&args).args(["s/", "theirs/"]);
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
    let scratch = built(|tree| {
        tree.file("s/a", "")
            .file("s/sub/b", "")
            .file("d/sub/old", "")
            .file("d/x/y", "");
    });
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

/// The path of such a source does not show that it is in the dest.
#[test]
fn a_source_that_is_mounted_from_inside_the_dest_is_not_deleted() {
    if !is_root() {
        skip!("mounting takes root");
    }
    for inner in ["d/cur", "d/old/cur"] {
        let scratch = built(|tree| {
            tree.file(Path::new(inner).join("precious"), "1")
                .file("d/gone", "")
                .dir("s");
        });
        let script = r#"mount --bind "$0" s && "$@"; s=$?; umount s; exit $s"#;
        let args = ["-c", script, inner, CPZ, "-aT", "--delete", "s", "d"];
        let outcome = Run::new("sh").args(args).current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1), "{inner}: {outcome}");
        let said = complaint(&outcome);
        assert!(
            said.starts_with("cpz: cannot delete in 'd': "),
            "{inner}: {said}"
        );
        let kept = scratch.path().join(inner).join("precious");
        assert!(kept.exists(), "{inner}");
        assert!(scratch.path().join("d/precious").exists(), "{inner}");
        assert!(!scratch.path().join("d/gone").exists(), "{inner}");
    }
}

#[test]
fn what_cannot_be_read_deletes_nothing() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = built(|tree| {
        tree.file("s/closed/f", "")
            .file("s/files/f", "")
            .file("s/rules/.gitignore", "/build\n");
        tree.file("s/rules/sub/f", "");
        tree.file("d/old", "")
            .file("d/closed/old", "")
            .file("d/files/f/old", "")
            .file("d/files/x", "");
        tree.file("d/rules/build/x", "")
            .file("d/rules/sub/build", "")
            .file("d/rules/old", "");
        tree.select("s/closed")
            .mode(0)
            .select("s/files/f")
            .mode(0)
            .select("s/rules/.gitignore")
            .mode(0);
        let owner = NOBODY.to_string();
        let chown = |path: &str| {
            Command::new("chown")
                .args(["-R", &owner])
                .arg(tree.path().join(path))
                .status()
        };
        assert!(["s", "d"].iter().all(|path| chown(path).unwrap().success()));
        tree.select("").mode(0o777);
    });
    let run = Run::new(CPZ).uid(NOBODY).current_dir(&scratch);
    let outcome = run
        .args(["-rT", "--delete", "--gitignore", "s", "d"])
        .output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert!(
        complaint(&outcome).contains("'s/files/f' for reading"),
        "{outcome}"
    );
    let left = |path: &str| scratch.path().join("d").join(path).exists();
    for path in [
        "closed/old",
        "rules/build/x",
        "rules/sub/build",
        "rules/old",
    ] {
        assert!(left(path), "{path}");
    }
    // These directories were read.
    assert!(!left("old") && !left("files/x"));
}

/// Each listing of the source fails once, or is empty for a moment.
#[test]
fn names_stay_if_a_listing_of_their_source_fails() {
    for fault in ["error=EIO", "retval=0"] {
        let scratch = built(|tree| {
            tree.file("s/document", "")
                .file("d/document", "")
                .file("d/old", "");
        });
        let run = Run::new(CPZ).args(["-aT", "--threads=1", "--delete", "s", "d"]);
        let run = run.current_dir(&scratch);
        let calls = or_skip!(run.calls());
        let listings = calls
            .iter()
            .filter(|call| call.name.starts_with("getdents") && call.shown.contains("/s>"));
        let listings: Vec<_> = listings.collect();
        // Two for each look at the names, and for the copy.
        assert_eq!(listings.len(), 6, "{calls:?}");
        for (index, call) in listings.into_iter().enumerate() {
            fs::write(scratch.path().join("d/old"), "").unwrap();
            let outcome = run.with_fault(call, fault).output();
            assert!(scratch.path().join("d/document").exists(), "{outcome}");
            let is_failure = fault == "error=EIO";
            let is_left = scratch.path().join("d/old").exists();
            assert_eq!(
                is_left,
                is_failure && index < 4,
                "{index} {fault} {outcome}"
            );
            let said = match is_failure {
                true => "cpz: cannot access 's': Input/output error\n",
                false => "",
            };
            assert_eq!(complaint(&outcome), said, "{index}");
        }
    }
}

/// Not even root can look at names in this directory. FUSE asks the server for them.
#[test]
fn names_stay_if_those_of_their_source_cannot_be_looked_at() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = built(|tree| {
        tree.file("s/unsearchable/f", "")
            .file("d/unsearchable/old", "")
            .file("d/gone", "");
        tree.select("s/unsearchable").mode(0o644);
        tree.select("d")
            .mode(0o777)
            .select("d/unsearchable")
            .mode(0o777);
    });
    let run = Run::new(CPZ).uid(NOBODY).current_dir(&scratch);
    let outcome = run.args(["-rT", "--delete", "s", "d"]).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let left = |path: &str| scratch.path().join("d").join(path).exists();
    assert!(left("unsearchable/old") && !left("gone"), "{outcome}");
}

#[test]
fn enters_no_other_filesystem() {
    for (options, status) in [("-aT", 1), ("-aTx", 0)] {
        let scratch = built(|tree| {
            tree.dir("s")
                .dir("d/old/point")
                .file("d/old/gone", "")
                .dir("d/mounted")
                .file("inner/precious", "");
        });
        let at = |path: &str| scratch.path().join(path);
        let points = ["d/old/point", "d/mounted"];
        for point in points {
            let mount = Command::new("mount")
                .arg("--bind")
                .args([at("inner"), at(point)])
                .status();
            if !mount.is_ok_and(|status| status.success()) {
                skip!("no bind mounts");
            }
        }
        let outcome = copy(&scratch, &[options, "--delete", "s", "d"]);
        let left = points.map(|point| at(point).join("precious").exists());
        for point in points {
            assert!(
                Command::new("umount")
                    .arg(at(point))
                    .status()
                    .unwrap()
                    .success()
            );
        }
        assert_eq!(left, [true, true], "{outcome}");
        assert_eq!(outcome.status, Status::Exit(status), "{outcome}");
        assert!(!at("d/old/gone").exists());
        let said = complaint(&outcome);
        for point in points {
            let line = format!("cpz: skipping '{point}', since it's on a different device\n");
            assert_eq!(said.contains(&line), status == 1, "{said}");
        }
    }
}

/// As by `rsync -ax --delete`.
#[test]
fn with_one_file_system_nothing_is_deleted_on_another_one() {
    if !is_root() {
        skip!("mounting takes root");
    }
    for (option, is_left) in [("-ax", true), ("-a", false)] {
        let scratch = built(|tree| {
            tree.file("s/m/sub/f", "").file("d/gone", "").dir("d/m");
        });
        let script = r#"mount -t tmpfs none d/m && mkdir d/m/sub && touch d/m/old d/m/sub/old &&
            "$@"; s=$?; ls d/m d/m/sub; umount d/m; exit $s"#;
        let args = ["-c", script, "sh", CPZ, option, "-T", "--delete", "s", "d"];
        let outcome = Run::new("sh").args(args).current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(0), "{option}: {outcome}");
        let listed = match is_left {
            true => "d/m:\nold\nsub\n\nd/m/sub:\nf\nold\n",
            false => "d/m:\nsub\n\nd/m/sub:\nf\n",
        };
        assert_eq!(outcome.stdout_text(), listed, "{option}");
        assert!(!scratch.path().join("d/gone").exists(), "{option}");
    }
}

#[test]
#[ignore = "slow"]
fn a_copy_that_is_listed_by_another_name_is_not_lost() {
    const NUMBERINGS: [Numbering; 4] = [
        Numbering::True,
        Numbering::Lasting,
        Numbering::Fresh,
        Numbering::Equal,
    ];
    for (names, source, stored) in [
        (Names::LowerCase, "Data", "data"),
        (Names::Cut(9), "data-long-one", "data-long"),
        (Names::Decomposed, "caf\u{e9}", "cafe\u{301}"),
    ] {
        let scratch = built(|tree| {
            tree.file(format!("s/{source}"), "content")
                .file("s/Sub/Inner", "");
        });
        for numbering in NUMBERINGS {
            let place = or_skip!(FuseMount::with(Habits {
                names,
                numbering,
                ..Habits::default()
            }));
            let dest = place.path().join("d");
            fs::create_dir_all(dest.join("old/sub")).unwrap();
            fs::write(dest.join("gone"), "").unwrap();
            let dest = dest.display().to_string();
            for _ in 0..2 {
                succeeds(&scratch, &["-rT", "--delete", "s", &dest]);
                let stored_at = place.stored().join("d");
                let content = fs::read(stored_at.join(stored)).unwrap();
                assert_eq!(content, b"content", "{names:?} {numbering:?}");
                let count = fs::read_dir(&stored_at).unwrap().count();
                assert_eq!(count, 2, "{names:?} {numbering:?}");
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn what_the_dest_stores_under_another_name_is_kept() {
    for (names, source, stored) in [
        (Names::LowerCase, "Data", "data"),
        (Names::Trimmed, "data.", "data"),
        (Names::Decomposed, "caf\u{e9}", "cafe\u{301}"),
    ] {
        let scratch = built(|tree| {
            tree.file(format!("s/{source}"), "content")
                .file(format!("s/sub/{source}/f"), "");
        });
        let place = or_skip!(FuseMount::with(Habits {
            names,
            ..Habits::default()
        }));
        let dest = place.path().join("d").display().to_string();
        succeeds(&scratch, &["-aT", "s", &dest]);
        fs::write(place.path().join("d/gone"), "").unwrap();
        for said in [format!("removed '{dest}/gone'\n"), String::new()] {
            let outcome = copy(&scratch, &["-aT", "--resume", "--delete", "-v", "s", &dest]);
            assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
            assert_eq!(outcome.stdout_text(), said, "{names:?}");
            let stored_at = place.stored().join("d");
            assert_eq!(fs::read(stored_at.join(stored)).unwrap(), b"content");
            assert!(stored_at.join("sub").join(stored).join("f").exists());
        }
    }
}

#[test]
fn a_source_that_ignores_case_leaves_no_other_spellings() {
    let place = or_skip!(FuseMount::with(Habits {
        names: Names::LowerCase,
        ..Habits::default()
    }));
    Tree::at(place.stored())
        .file("s/foo", "")
        .file("s/bar/x", "");
    let scratch = built(|tree| {
        tree.file("d/foo", "")
            .file("d/Foo", "")
            .file("d/BAR/x", "")
            .file("d/zzz", "");
    });
    let source = place.path().join("s").display().to_string();
    succeeds(&scratch, &["-rT", "--delete", &source, "d"]);
    assert_same_tree(
        place.stored().join("s"),
        scratch.path().join("d"),
        Attributes::NAMES,
    );
}

/// The dest lists one of two names that it takes for one, or none of them.
#[test]
#[ignore = "slow"]
fn a_directory_whose_name_is_taken_for_another_one_is_refused() {
    for [upper, lower] in [["Foo", "foo"], ["\u{212a}", "k"]] {
        let scratch = built(|tree| {
            tree.file(format!("s/{upper}/a"), "")
                .file(format!("s/{lower}/b"), "");
        });
        for numbering in [Numbering::True, Numbering::Fresh, Numbering::Equal] {
            for is_listed in [true, false] {
                let place = or_skip!(FuseMount::with(Habits {
                    names: Names::LowerCase,
                    numbering,
                    ..Habits::default()
                }));
                let stored = place.stored().join("d").join(lower);
                match is_listed {
                    true => Tree::at(&stored).file("old", ""),
                    false => Tree::at(place.stored()).dir("d"),
                };
                let dest = place.path().join("d").display().to_string();
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
    let place = or_skip!(FuseMount::with(Habits::default()));
    let scratch = built(|tree| {
        for number in 0..20 {
            tree.dir(format!("parent/{number}"));
            Tree::at(place.stored()).file(format!("parent/{number}/old"), "");
        }
    });
    let dest = place.path().join("parent").display().to_string();
    let run = Run::new(CPZ).args(["-rT", "--threads=1", "--delete", "parent", &dest]);
    let calls = or_skip!(run.current_dir(&scratch).calls());
    let listings = calls
        .iter()
        .filter(|call| call.name.starts_with("getdents") && call.shown.contains("/parent>"));
    // The dest once, and the source for the names and for the copy.
    assert_eq!(listings.count(), 6, "{calls:?}");
    assert!(!place.stored().join("parent/7/old").exists());
}

#[test]
fn a_source_directory_that_shows_no_links_is_not_taken_for_a_removed_one() {
    let scratch = built(|tree| {
        tree.file("d/sub/extraneous", "").file("d/old/f", "");
    });
    let place = or_skip!(FuseMount::with(Habits {
        numbering: Numbering::Zero,
        ..Habits::default()
    }));
    Tree::at(place.stored()).file("s/sub/f", "");
    let source = place.path().join("s").display().to_string();
    succeeds(&scratch, &["-rT", "--delete", &source, "d"]);
    assert_same_tree(
        place.stored().join("s"),
        scratch.path().join("d"),
        Attributes::NAMES,
    );
}

#[test]
fn unrelated_names_do_not_keep_what_is_extraneous() {
    let place = or_skip!(FuseMount::with(Habits::default()));
    let scratch = built(|tree| {
        tree.file("s/документы/a", "").file("s/музыка/a", "");
    });
    Tree::at(place.stored()).file("d/документы/old", "");
    let dest = place.path().join("d").display().to_string();
    let args = ["-rT", "--delete", "--exclude=музыка", "s", &dest];
    succeeds(&scratch, &args);
    let stored = place.stored().join("d/документы");
    assert!(stored.join("a").exists() && !stored.join("old").exists());
}

#[test]
fn what_is_excluded_goes_by_its_other_name_too() {
    let place = or_skip!(FuseMount::with(Habits {
        names: Names::LowerCase,
        ..Habits::default()
    }));
    let scratch = built(|tree| {
        tree.file("s/SECRET", "").file("s/f", "");
    });
    Tree::at(place.stored()).file("d/secret", "");
    let dest = place.path().join("d").display().to_string();
    let args = ["-rT", "--delete-excluded", "--exclude=SECRET", "s", &dest];
    succeeds(&scratch, &args);
    let stored = place.stored().join("d");
    assert!(stored.join("f").exists() && !stored.join("secret").exists());
}

#[test]
fn what_cannot_be_deleted_is_reported() {
    for errno in [Errno::INVAL, Errno::NOENT, Errno::NOTDIR, Errno::LOOP] {
        let scratch = built(|tree| {
            tree.file("s/f", "");
        });
        let place = or_skip!(FuseMount::with(Habits {
            opendir: Some(errno),
            ..Habits::default()
        }));
        Tree::at(place.stored()).file("d/bad/f", "");
        let dest = place.path().join("d").display().to_string();
        let run = Run::new(CPZ).args(["-rT", "--delete", "s", &dest]);
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1), "{errno} {outcome}");
        let expected = format!("cpz: cannot remove '{dest}/bad': ");
        assert!(outcome.stderr_text().starts_with(&expected), "{outcome}");
        assert!(place.stored().join("d/bad/f").exists(), "{errno}");
    }
}

#[test]
#[ignore = "slow"]
fn deep_trees_are_deleted_with_few_descriptors() {
    let scratch = built(|tree| {
        tree.dir("s/a/b/c/d/e/f/g/h").dir("d/a/b/c/d/e/f/g/h");
        chain(tree.path().join("d/a/b/c/d/e/f/g/h/old"), 3_000);
        chain(tree.path().join("d/a/b/c/old"), 3_000);
    });
    let run = Run::new(CPZ).nofile_limit(20).current_dir(&scratch);
    let outcome = run.args(["-aT", "--delete", "s", "d"]).output();
    assert_eq!(
        (outcome.status, complaint(&outcome)),
        (Status::Exit(0), String::new())
    );
    assert_same_tree(
        scratch.path().join("s"),
        scratch.path().join("d"),
        Attributes::CONTENT,
    );
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
        let scratch = Scratch::new();
        Tree::at(scratch.path()).file("d/f", "").file("e/old", "");
        let run = Run::new(CPZ).args(args).current_dir(&scratch);
        let shown = or_skip!(run.at_terminal()).output().stdout_text();
        let found = shown.lines().filter(|line| *line == hint).count();
        assert_eq!(found, hints, "{args:?}: {shown}");
        // The mirror exists now.
        let again = or_skip!(run.at_terminal()).output().stdout_text();
        assert_eq!(again, "", "{args:?}");
        assert_eq!(run.output().stderr_text(), "");
    }
}
