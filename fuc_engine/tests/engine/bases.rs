//! Runs whose relative paths are looked up in open directories instead of the working directory.

use std::{
    fs::{self, File},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use fuc_engine::{
    Backup, CopyOp, Counts, Dereference, Dest, Execution, LinkKind, Observer, Operation, Preserve,
    Refusal, RemoveOp, Replace,
};
use rustix::io::Errno;
use testkit::{
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, chain},
};

use crate::child::copies_between_open_directories;
use crate::kit::{
    self, Failure, Person, Told, all_but_atime, assert_nothing_in, assert_unchanged, paths,
};

/// A copy whose paths are relative to a tree that [`build`] makes.
struct Case {
    name: &'static str,
    options: CopyOp<'static>,
    sources: &'static [&'static str],
    dest: Dest,
}

fn case(
    name: &'static str,
    sources: &'static [&'static str],
    dest: Dest,
    change: impl FnOnce(&mut CopyOp<'_>),
) -> Case {
    let options = CopyOp::new().with(change);
    Case {
        name,
        options,
        sources,
        dest,
    }
}

/// Makes sources in `from` and dests in `to`.
fn build(root: &Path) {
    let from = Tree::at(root.join("from"));
    from.plant("file=new empty=")
        .file("large", vec![b'x'; 2 << 20])
        .plant(
            "tree/a/file=new tree/a/twin==tree/a/file tree/a/link->file tree/a/dangling->missing
        tree/pipe<fifo> tree/locked/ %500 other=new twin==other link->tree",
        );
    chain(from.path().join("tree/deep"), 40);
    let to = Tree::at(root.join("to"));
    to.plant("file=old into/file=old into/file.~1~=older into/tree/a/file=old dangling->created");
    for path in ["to/file", "to/into/file", "to/into/tree/a/file"] {
        let file = File::options().write(true).open(root.join(path)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
}

/// The cases of copies between open directories.
fn cases() -> Vec<Case> {
    let exactly = |path| Dest::Exactly(PathBuf::from(path));
    let into = || Dest::Into(PathBuf::from("to/into"));
    let all: &[_] = &[
        "from/file",
        "from/empty",
        "from/large",
        "from/tree",
        "from/other",
        "from/twin",
        "from/link",
        "from/missing",
    ];
    let file: &[_] = &["from/file"];
    let tree: &[_] = &["from/tree"];
    let plain = |_: &mut CopyOp<'_>| {};
    let simple = |options: &mut CopyOp<'_>| {
        options.rules.backup = Some(Backup::Simple);
        options.force = true;
    };
    let numbered = |options: &mut CopyOp<'_>| {
        options.rules.backup = Some(Backup::Numbered);
        options.force = true;
    };
    vec![
        case("a new file", file, exactly("to/new"), plain),
        case("an old file", file, exactly("to/file"), plain),
        case("a tree", tree, exactly("to/new"), plain),
        case("an archive", all, into(), |it| {
            it.preserve = Preserve::all();
        }),
        case("all links followed", all, into(), |it| {
            it.dereference = Dereference::Always;
        }),
        case("numbered backups", all, into(), numbered),
        case("simple backups", all, into(), simple),
        case("removed first", all, into(), |it| {
            it.rules.remove_first = true;
        }),
        case("newer ones only", all, into(), |it| {
            it.rules.replace = Replace::Older;
        }),
        case("verified and durable", all, into(), |it| {
            it.rules.replace = Replace::Changed;
            (it.verify, it.durable) = (true, true);
        }),
        case("hard links", all, into(), |it| {
            it.as_links = Some(LinkKind::Hard);
        }),
        case("symbolic links", all, into(), |it| {
            it.as_links = Some(LinkKind::Symbolic);
        }),
        case("a dry run", all, into(), |it| {
            it.rules.backup = Some(Backup::Numbered);
            it.execution = Execution::DryRun;
        }),
        case("named twice", &["from/file"; 2], into(), plain),
        case("a file of the same name", file, exactly("to/file"), simple),
        case("a dangling dest", file, exactly("to/dangling"), |it| {
            it.rules.create_through_links = true;
        }),
        case(
            "a refused dangling dest",
            file,
            exactly("to/dangling"),
            plain,
        ),
        case(
            "a missing target",
            all,
            Dest::Into("to/missing".into()),
            plain,
        ),
        case("a directory over a file", tree, exactly("to/file"), plain),
        case("a file over a directory", file, exactly("to/into"), plain),
        case("parents", &["from/tree/a/file"], into(), |it| {
            it.parents = true;
            it.preserve = Preserve::all();
        }),
        // In these cases, source and dest are in one directory.
        case("itself", file, exactly("from/./file"), plain),
        case("into itself", &["from"], exactly("from/tree/copy"), plain),
        case("its own backup", file, exactly("from/file"), simple),
        case(
            "its own numbered backup",
            file,
            exactly("from/file"),
            numbered,
        ),
    ]
}

/// Returns the directories of sources and dests: both are `root`, or they are `from` and `to` in it.
fn bases(root: &Path, apart: bool) -> [PathBuf; 2] {
    match apart {
        true => ["from", "to"].map(|name| root.join(name)),
        false => [root, root].map(Path::to_owned),
    }
}

impl Case {
    /// Copies between two directories that are opened.
    fn run_in(&self, root: &Path, apart: bool, observer: &dyn Observer) -> fuc_engine::Summary {
        let [from, to] = bases(root, apart);
        let relative = |path: &Path| {
            let base = Path::new(if apart { "to" } else { "" });
            path.strip_prefix(base).expect("it is in `to`").to_owned()
        };
        let prefix = if apart { "from/" } else { "" };
        let sources: Vec<_> = (self.sources.iter())
            .map(|source| source.strip_prefix(prefix).expect("it is in `from`"))
            .collect();
        let dest = match &self.dest {
            Dest::Into(path) => Dest::Into(relative(path)),
            Dest::Exactly(path) => Dest::Exactly(relative(path)),
        };
        let op = self.options.clone();
        let [from, to] = [from, to].map(|dir| File::open(dir).expect("it was made"));
        op.in_dir(&from)
            .dest_in_dir(&to)
            .run(paths(sources), &dest, observer)
    }

    /// Returns `true` if the dest is in `to`.
    fn is_between_two(&self) -> bool {
        let (Dest::Into(path) | Dest::Exactly(path)) = &self.dest;
        path.starts_with("to")
    }

    /// Returns `true` if the copy does not depend on how the path of a source begins.
    fn is_the_same_by_absolute_paths(&self) -> bool {
        !self.options.parents && self.options.as_links != Some(LinkKind::Symbolic)
    }

    /// Copies by absolute paths.
    fn run(&self, root: &Path) -> Told {
        let sources: Vec<_> = (self.sources.iter())
            .map(|source| root.join(source))
            .collect();
        let dest = match &self.dest {
            Dest::Into(path) => Dest::Into(root.join(path)),
            Dest::Exactly(path) => Dest::Exactly(root.join(path)),
        };
        kit::copy_with(self.options.clone(), sources, &dest)
    }
}

/// Runs all cases in trees below `root`, for a process whose working directory is another one. Returns the
/// total.
pub(crate) fn run_all(
    root: &Path,
    threads: Option<NonZeroUsize>,
    observer: &dyn Observer,
) -> kit::Counts {
    let mut total = (0, 0, 0);
    for (index, mut case) in cases().into_iter().enumerate() {
        case.options.threads = threads;
        for apart in [false, true] {
            if apart && !case.is_between_two() {
                continue;
            }
            let root = root.join(format!("{index}-{apart}"));
            let (entries, bytes, failures) = kit::counts(case.run_in(&root, apart, observer));
            total = (total.0 + entries, total.1 + bytes, total.2 + failures);
        }
    }
    total
}

/// Makes the trees for [`run_all`].
fn build_all(root: &Path) {
    for index in 0..cases().len() {
        for apart in [false, true] {
            build(&root.join(format!("{index}-{apart}")));
        }
    }
}

#[test]
#[ignore = "slow"]
fn copies_between_open_directories_are_those_by_absolute_paths() {
    let is_same = |case: &Case| case.is_the_same_by_absolute_paths();
    for case in cases().into_iter().filter(is_same) {
        for apart in [false, true] {
            if apart && !case.is_between_two() {
                continue;
            }
            let [expected, scratch] = [Scratch::in_memory(), Scratch::in_memory()];
            build(expected.path());
            build(scratch.path());
            let told = case.run(expected.path());
            let failures = Mutex::new(Vec::new());
            let summary = case.run_in(scratch.path(), apart, &failures);
            let [from, to] = bases(expected.path(), apart);
            let failures = failures.into_inner().unwrap();
            let below = failures
                .into_iter()
                .map(|error| error.below_each(&from, &to));
            let actual = Told {
                counts: kit::counts(summary),
                failures: below.map(|error| Failure::of(&error)).collect(),
            };
            assert_eq!(actual.sorted(), told.sorted(), "{}", case.name);
            let attributes = Attributes::CONTENT | Attributes::MODE;
            let expected = Snapshot::of(&expected, attributes);
            let difference = expected.diff(&Snapshot::of(&scratch, attributes));
            assert!(difference.is_empty(), "{}:\n{difference}", case.name);
        }
    }
}

#[test]
fn a_working_directory_with_the_same_names_stays_as_it_is() {
    let [scratch, trap] = [Scratch::in_memory(), Scratch::in_memory()];
    build_all(scratch.path());
    build(trap.path());
    // Without prefixes, the paths are those in `from` and `to`.
    for name in ["from", "to"] {
        build(&trap.at(name));
    }
    let before = Snapshot::of(&trap, all_but_atime());
    let child = copies_between_open_directories(&scratch).current_dir(&trap);
    let report = child.nofile_limit(20).run();
    assert!(report.counts.0 > 500, "{:?}", report.counts);
    assert_unchanged(&before, &trap, all_but_atime());
}

/// Copies between the directories `from` and `to` of a tree.
fn copy_between(root: &Path, options: CopyOp<'static>, sources: &[&str], dest: &Dest) -> Told {
    let [from, to] = ["from", "to"].map(|name| File::open(root.join(name)).unwrap());
    let copy = options.in_dir(&from).dest_in_dir(&to);
    kit::told(|observer| copy.run(paths(sources), dest, observer))
}

#[test]
fn parents_are_looked_up_and_made_in_open_directories() {
    let scratch = Scratch::new();
    build(scratch.path());
    let at = |path: &str| scratch.at(path);
    Tree::at(at("from/tree/a")).mode(0o710);
    let options = CopyOp::new().with(|options| {
        options.parents = true;
        options.preserve = Preserve::all();
    });
    let into = Dest::Into(".".into());
    let sources = ["tree/a/file", "missing/file"];
    let told = copy_between(scratch.path(), options, &sources, &into);
    let failure = Failure::failed(Operation::StatSourceParent, "missing", Errno::NOENT);
    assert_eq!(told, Told::complete(1, 3).with([failure]));
    assert_eq!(fs::read(at("to/tree/a/file")).unwrap(), b"new");
    let metadata = |path: &str| fs::metadata(at(path)).unwrap();
    for directory in ["tree", "tree/a"] {
        let [made, source] = ["to", "from"].map(|base| metadata(&format!("{base}/{directory}")));
        assert_eq!(made.permissions(), source.permissions(), "{directory}");
        assert_eq!(made.modified().unwrap(), source.modified().unwrap());
    }
}

#[test]
fn a_relative_symbolic_link_is_made_only_in_the_directory_of_its_source() {
    let scratch = Scratch::new();
    build(scratch.path());
    let at = |path: &str| scratch.at(path);
    let options = CopyOp::new().with(|options| options.as_links = Some(LinkKind::Symbolic));
    let dest = Dest::Exactly("new".into());
    let told = copy_between(scratch.path(), options.clone(), &["file"], &dest);
    let failure = Failure::refused(Refusal::RelativeSymlink, "new");
    assert_eq!(told, Told::complete(0, 0).with([failure]));

    let from = File::open(at("from")).unwrap();
    let again = File::open(at("from")).unwrap();
    let copy = options.in_dir(&from).dest_in_dir(&again);
    assert!(
        copy.run(paths(["file"]), &dest, &Person::default())
            .is_complete()
    );
    assert_eq!(fs::read_link(at("from/new")).unwrap(), Path::new("file"));
}

#[test]
fn a_base_that_is_not_a_directory_fails_each_operand() {
    let scratch = Scratch::new();
    let file = File::create(scratch.at("file")).unwrap();
    let copy = CopyOp::new().in_dir(&file).dest_in_dir(&file);
    let dest = kit::exactly("dest");
    let told = kit::told(|observer| copy.run(paths(["a", "b"]), &dest, observer));
    let failure = |path| Failure::failed(Operation::Stat, path, Errno::NOTDIR);
    assert_eq!(told, Told::complete(0, 0).with(["a", "b"].map(failure)));
}

#[test]
fn an_open_directory_is_emptied_and_counted() {
    let scratch = Scratch::new();
    build(scratch.path());
    let open = File::open(scratch.at("to")).unwrap();
    let [removal, copy] = [Arc::<Counts>::default(), Arc::<Counts>::default()];
    assert!(
        RemoveOp::new()
            .in_dir(&open)
            .count(paths(["into"]), &removal)
    );
    assert!(CopyOp::new().in_dir(&open).count(paths(["into"]), &copy));
    assert_eq!((removal.entries(), removal.bytes()), (6, 0));
    assert_eq!((copy.entries(), copy.bytes()), (6, 3 + 5 + 3));

    let emptying = RemoveOp::new().contents_only().in_dir(&open);
    let emptied = emptying.run(paths(["into"]), &Person::default());
    assert_eq!(emptied.entries, 5);
    assert_nothing_in(scratch.at("to/into"));
    let emptied = emptying.run(paths(["."]), &Person::default());
    assert_eq!(emptied.entries, 3);
    assert_nothing_in(scratch.at("to"));
}
