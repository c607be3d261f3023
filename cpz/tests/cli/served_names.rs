//! Filesystems on which several names or numbers lead to one file.

use std::{
    fs::{self, File},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use rustix::fs::inotify;
use testkit::{
    habits, needs, or_skip,
    probe::{Errno, FuseMount, Habits, NOBODY, Names, Numbering},
    run::{Outcome, Run, Status},
    served,
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CP, CPZ, NEWEST_CP, complaint, cpz, succeeds};

const MIB: usize = 1 << 20;

/// Merges the tree `s` of the source with the directory `d`, which may exist.
#[track_caller]
fn merge(source: &Scratch, place: &FuseMount, threads: &str) {
    let dest = place.at("d");
    fs::create_dir_all(&dest).unwrap();
    let dest = dest.display().to_string();
    succeeds(source, [threads, "-rT", "s", &dest]);
}

fn copy(dir: &Path, args: &[&str]) -> Outcome {
    cpz(dir, args).output()
}

/// Returns two names that a filesystem takes for the same.
fn pair(names: Names) -> [&'static str; 2] {
    match names {
        Names::LowerCase => ["Data", "dATA"],
        Names::Cut(_) => ["data-long-one", "data-long-two"],
        _ => ["caf\u{e9}", "cafe\u{301}"],
    }
}

const COLLIDING: [Names; 3] = [Names::LowerCase, Names::Cut(9), Names::Decomposed];

/// Asserts that one of two colliding entries was copied, and that the other one was refused.
#[track_caller]
fn one_is_refused(names: Names, option: &str, words: &str) {
    let source = Scratch::new();
    let [one, other] = pair(names);
    source.plant(words.replace("ONE", one).replace("OTHER", other));
    let place = served!(names);
    let dest = place.at("new").display().to_string();
    let outcome = cpz(source.path(), [option, "s", &dest]).output();
    assert_eq!(outcome.status, Status::Exit(1), "{names:?} {outcome}");
    let said = complaint(&outcome);
    assert!(
        said.ends_with(": File exists\n") && said.lines().count() == 1,
        "{names:?} {option} {words} {said}"
    );
    assert_eq!(fs::read_dir(place.stored_at("new")).unwrap().count(), 1);
}

#[test]
#[ignore = "slow"]
fn the_second_of_two_names_in_a_new_directory_is_refused() {
    for names in COLLIDING {
        for option in ["-r", "-a", "-b", "--remove-destination", "-u", "-n", "-f"] {
            one_is_refused(names, option, "s/ONE=1 s/OTHER=22");
        }
        for words in [
            "s/ONE= s/OTHER=",
            "s/ONE->nowhere s/OTHER->nowhere",
            "s/ONE<fifo> s/OTHER<fifo>",
            "s/ONE/f= s/OTHER/f=",
        ] {
            one_is_refused(names, "-r", words);
        }
        one_is_refused(names, "-a", "s/ONE=1 s/OTHER==s/ONE");
    }
}

#[test]
#[ignore = "slow"]
fn two_large_files_are_never_mixed() {
    let source = Scratch::in_memory();
    let tree = Tree::at(source.path());
    for number in 1..=2 {
        tree.file(format!("s/DATA{number}"), vec![b'A'; 12 * MIB])
            .file(format!("s/data{number}"), vec![b'b'; 5 * MIB])
            .file(format!("s/Small{number}"), vec![b'A'; 3000])
            .file(format!("s/small{number}"), vec![b'b'; 2000]);
    }
    for (is_new, numbering) in [
        (true, Numbering::True),
        (false, Numbering::True),
        (false, Numbering::Lasting),
        (false, Numbering::Fresh),
    ] {
        let place = served!(numbering, names: Names::LowerCase);
        place.set_latency(Duration::from_millis(1));
        let dest = place.at("d");
        if !is_new {
            fs::create_dir(&dest).unwrap();
        }
        let dest = dest.display().to_string();
        let outcome = copy(source.path(), &["--threads=8", "-rT", "s", &dest]);
        // cp overwrites in silence in a directory that existed.
        let status = if is_new { 1 } else { 0 };
        outcome.assert_status(status);
        let mut files = 0;
        for entry in fs::read_dir(place.stored_at("d")).unwrap() {
            let content = fs::read(entry.unwrap().path()).unwrap();
            let whole = match content[0] {
                b'A' => [12 * MIB, 3000],
                _ => [5 * MIB, 2000],
            };
            assert!(content.iter().all(|byte| *byte == content[0]), "a mixture");
            assert!(whole.contains(&content.len()), "{} bytes", content.len());
            files += 1;
        }
        assert_eq!(files, 4);
    }
}

#[test]
#[ignore = "slow"]
fn directories_that_become_one_are_not_filled_at_once() {
    let source = Scratch::in_memory();
    let tree = Tree::at(source.path());
    for number in 0..40 {
        tree.file(format!("s/Sub/{number}"), vec![b'A'; 3000])
            .file(format!("s/sUB/{number}"), vec![b'b'; 2000]);
    }
    let place = or_skip!(FuseMount::with(habits!(names: Names::LowerCase)));
    place.set_latency(Duration::from_millis(1));
    merge(&source, &place, "--threads=8");
    for number in 0..40 {
        let content = fs::read(place.stored_at(format!("d/sub/{number}"))).unwrap();
        let whole = [vec![b'A'; 3000], vec![b'b'; 2000]];
        assert!(whole.contains(&content), "{number} is a mixture");
    }
}

#[test]
#[ignore = "slow"]
fn directories_that_become_one_are_merged_as_by_cp() {
    let source = Scratch::in_memory();
    let tree = Tree::at(source.path());
    for number in 0..20 {
        for (dir, file) in [("Late", "a"), ("lATE", "b")] {
            tree.file(format!("s/{dir}{number}/{file}"), file)
                .file(format!("s/{dir}{number}/both/{file}"), file);
        }
    }
    // Which one is copied first is left to chance. After a late look, it is the one that has not made the dest.
    for first_look in [0, 0, 0, 20, 20, 20].map(Duration::from_millis) {
        let place = served!(first_look, names: Names::LowerCase);
        merge(&source, &place, "--threads=8");
        let merged = ["a", "b", "both", "both/a", "both/b"];
        let expected = (0..20).flat_map(|number| {
            let below = merged.map(|name| format!("late{number}/{name}"));
            [vec![format!("late{number}")], below.to_vec()].concat()
        });
        let copied = Snapshot::of(place.stored_at("d"), Attributes::CONTENT);
        assert_eq!(copied.len(), 1 + expected.clone().count());
        for name in expected {
            let content = name
                .ends_with('a')
                .then_some("a")
                .or(name.ends_with('b').then_some("b"));
            let found = fs::read_to_string(place.stored_at("d").join(&name));
            assert_eq!(found.ok().as_deref(), content, "{name}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn trees_are_merged_if_all_dests_have_one_number() {
    let source = Scratch::in_memory();
    let tree = Tree::at(source.path());
    for dir in ["s/1", "s/1/below", "s/2", "s/2/below/deep", "s/3"] {
        tree.file(format!("{dir}/large"), noise(9 * MIB));
        for number in 0..20 {
            tree.file(format!("{dir}/{number}"), dir);
        }
    }
    for numbering in [Numbering::Equal, Numbering::Zero] {
        for threads in ["--threads=2", "--threads=8"] {
            let place = served!(numbering);
            for dir in ["d/1/below", "d/2/below/deep", "d/3"] {
                fs::create_dir_all(place.stored_at(dir)).unwrap();
            }
            merge(&source, &place, threads);
            let copy = place.stored_at("d");
            assert_same_tree(source.at("s"), copy, Attributes::CONTENT);
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_source_with_two_numbers_is_not_emptied() {
    for numbering in [Numbering::Lasting, Numbering::Fresh] {
        for size in [5, 3 * MIB] {
            let place = served!(numbering);
            let content = vec![b'x'; size];
            Tree::at(place.stored())
                .file("f", &content)
                .plant("hard==f d/f==f s/f==f");
            for args in [
                &["f", "hard"][..],
                &["f", "f"],
                &["-a", "f", "hard"],
                &["-rT", "--threads=4", "s", "d"],
                &["f", "d"],
            ] {
                // The numbers decide whether the copy is refused or made.
                copy(place.path(), args);
                for name in ["f", "hard", "d/f", "s/f"] {
                    let found = fs::read(place.stored_at(name)).unwrap();
                    assert!(found == content, "{numbering:?} {args:?} {name}");
                }
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_source_is_not_emptied_through_its_mirror() {
    for habits in [
        Habits::default(),
        habits!(open_untruncated: Some(Errno::PERM)),
        habits!(utimens: Some(Errno::PERM)),
    ] {
        let place = or_skip!(FuseMount::with(habits));
        Tree::at(place.stored()).plant("f=precious");
        let [stored, shown] = [place.stored(), place.path()].map(|at| at.join("f"));
        for [from, to] in [[&stored, &shown], [&shown, &stored]] {
            for option in ["-r", "-f", "--remove-destination"] {
                Run::new(CPZ).arg(option).arg(from).arg(to).output();
                assert_eq!(fs::read(&stored).unwrap(), b"precious", "{option}");
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn another_file_of_the_same_size_and_time_is_overwritten() {
    let place = served!();
    let time = Duration::from_secs(1_000_000_000);
    Tree::at(place.path())
        .plant("a=one")
        .mtime(time)
        .plant("b=two")
        .mtime(time)
        .plant("c=one")
        .mtime(time);
    for args in [["a", "b"], ["a", "c"]] {
        succeeds(place.path(), args);
        let dest = place.at(args[1]);
        assert_eq!(fs::read(&dest).unwrap(), b"one");
        let modified = fs::metadata(&dest).unwrap().modified().unwrap();
        assert!(modified > std::time::UNIX_EPOCH + time, "{args:?}");
    }
    succeeds(place.path(), "-p a c");
    let modified = fs::metadata(place.at("c")).unwrap().modified();
    assert_eq!(modified.unwrap(), std::time::UNIX_EPOCH + time);
}

#[test]
#[ignore = "slow"]
fn a_source_that_another_process_touches_is_not_the_dest() {
    let place = served!();
    let names: Vec<_> = (0..50).map(|number| format!("s/{number}")).collect();
    let tree = Tree::at(place.path());
    for name in &names {
        tree.file(name, "equal");
    }
    succeeds(place.path(), "-aT s d");
    let begin = SystemTime::now();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for name in &names {
                    let file = File::options().write(true).open(place.at(name));
                    file.unwrap().set_modified(SystemTime::now()).unwrap();
                }
            }
        });
        thread::sleep(Duration::from_millis(50));
        for _ in 0..3 {
            let outcome = copy(place.path(), &["-rT", "s", "d"]);
            outcome.assert_status(0);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for name in &names {
        let source = fs::metadata(place.stored_at(name)).unwrap();
        assert!(
            source.modified().unwrap() >= begin,
            "{name} got an old time"
        );
    }
}

/// Compares rows on a filesystem with these habits.
#[track_caller]
fn compare_on(habits: Habits, rows: &str) {
    let place = or_skip!(FuseMount::with(habits));
    let table = NEWEST_CP.table();
    table.setting(|parity| parity.on(place.path())).rows(rows);
}

#[test]
#[ignore = "slow"]
fn files_that_can_only_be_opened_empty_are_overwritten() {
    for errno in [Errno::PERM, Errno::INVAL, Errno::IO] {
        compare_on(
            habits!(open_untruncated: Some(errno)),
            "s/f=new s/e= d/f='old content' d/e=old
            cpz (-r|-a|-f|-b|--sparse=always) (s/f d/f|s/. d)
            cpz --attributes-only s/f d/f
            cpz d/f d/f",
        );
    }
}

#[test]
#[ignore = "slow"]
fn files_that_cannot_be_opened_are_replaced_with_force() {
    for errno in [Errno::IO, Errno::PERM] {
        for truncate in [None, Some(errno)] {
            // Opening it fails, or it opens and cannot be emptied.
            let open_untruncated = Some(errno).filter(|_| truncate.is_none());
            let habits = habits!(truncate, open_untruncated, open_truncated: Some(errno));
            // With the same size and time, it could be the source, and would be replaced without being opened.
            compare_on(habits, "n=new f=old @0 \n cpz (-r|-f|-af) n f");
        }
    }
}

#[test]
#[ignore = "slow"]
fn files_that_cannot_be_truncated_are_overwritten() {
    for errno in [Errno::PERM, Errno::NOSYS] {
        let rows = "n=new (f='old content'|f=) \n cpz (-r|-a|-f|-u) n f";
        compare_on(habits!(truncate: Some(errno)), rows);
    }
}

/// Returns the names of the files that were closed after writing in `dir` while cpz ran as `run` says.
fn closed(run: &Run, dir: &Path) -> Vec<String> {
    let events = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&events, dir, inotify::WatchFlags::CLOSE_WRITE).unwrap();
    run.output().assert_success();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&events, &mut buffer);
    let mut names = Vec::new();
    while let Ok(event) = reader.next() {
        let name = event.file_name().expect("a file of the directory");
        names.push(name.to_str().unwrap().to_owned());
    }
    // The kernel shows a file without a name as its number.
    names.retain(|name| !name.starts_with('#'));
    names.sort();
    names
}

#[test]
#[ignore = "slow"]
fn a_watcher_of_the_dest_learns_of_each_empty_file() {
    let source = Scratch::new();
    let tree = Tree::at(source.path());
    for number in 0..4 {
        tree.plant(format!("s/{number}="));
    }
    let link = Scratch::new();
    let cp = link.at("cp");
    std::os::unix::fs::symlink(CPZ, &cp).unwrap();
    for program in [Path::new(CPZ), &cp] {
        let dest = Scratch::new();
        let run = Run::new(program).words("-rT s").arg(dest.path());
        let names = closed(&run.current_dir(&source), dest.path());
        assert_eq!(names, ["0", "1", "2", "3"]);
    }
}

#[test]
#[ignore = "slow"]
fn a_watcher_of_the_dest_learns_of_large_files_that_their_owner_may_not_write() {
    needs!(root);
    let source = Scratch::in_memory();
    Tree::at(source.path())
        .file("s/pack", vec![1; MIB])
        .mode(0o444)
        .file("s/plain", vec![1; MIB])
        .select("")
        .mode(0o755);
    for (user, option) in [(0, "-r"), (0, "-a"), (NOBODY, "-r"), (NOBODY, "-p")] {
        let dest = Scratch::in_memory();
        Tree::at(dest.path())
            .plant("d/ %777")
            .select("")
            .mode(0o755);
        let dir = dest.at("d");
        let args = [option, "s/pack", "s/plain"];
        let run = Run::new(CPZ).uid(user).args(args).arg(&dir);
        let names = closed(&run.current_dir(&source), &dir);
        assert_eq!(names, ["pack", "plain"], "{user} {option}");
    }
}

#[test]
#[ignore = "slow"]
fn no_server_is_trusted_with_a_file_without_a_name() {
    let place = served!();
    let source = Scratch::in_memory();
    Tree::at(source.path()).file("s/large", vec![1; MIB]);
    for args in [&["-r", "s"][..], &["s/large"]] {
        let run = Run::new(CPZ).args(args).arg(place.path());
        let calls = or_skip!(run.current_dir(&source).calls());
        assert!(calls.iter().any(|call| call.shown.contains("O_CREAT")));
        let unnamed = calls.iter().find(|call| call.shown.contains("O_TMPFILE"));
        assert!(unnamed.is_none(), "{args:?}: {unnamed:?}");
    }
}

#[test]
#[ignore = "slow"]
fn a_served_dest_is_merged_or_replaced() {
    CP.table().served("m", habits!()).rows(
        "# Two operands are copied to one directory.
        a/x/f=1 b/x/g=2 m/
        cpz -r a/. b/. m
        = m/x/f=1 m/x/g=2
        # A dest of the same size, time and content is another file.
        m/s=equal @1000000000 m/d=equal @1000000000 m/other==m/d
        cpz (--remove-destination|--atomic) m/s m/d
        = -m/d m/d=equal",
    );
}
