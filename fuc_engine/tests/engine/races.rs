//! Trees that another process changes during the run. The engine touches and reads nothing outside of
//! them, never hangs, and reports what stays behind.
//!
//! Here the change comes from the run's own observer, at a known moment, so that every race takes place.
//! In [`storms`](crate::storms) another thread changes the tree at random moments.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use fuc_engine::{Cause, CopyOp, Dereference, Event, Operation, Preserve, Refusal, RemoveOp};
use rustix::io::Errno;
use testkit::{
    or_skip,
    probe::{Numbering, Skip, is_root, supports_acls},
    served,
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, comb, remove_for_sure, wide},
};

use crate::child::{self, Child};
use crate::kit::{
    Failure, Limited as _, Meddler, Told, all_but_atime, assert_unchanged, can_exchange, copy_with,
    entries_of, exactly, exchange, failed, places, remove_with,
};

/// The content of files outside of the trees.
const MARKER: &str = "this is outside";
pub(crate) const DIRS: usize = 40;

/// A place for races: trees are built beside a directory that nothing may touch.
pub(crate) struct Arena {
    scratch: Scratch,
    before: Snapshot,
}

impl Arena {
    pub(crate) fn new() -> Result<Self, Skip> {
        let scratch = Scratch::in_memory();
        can_exchange(&scratch)?;
        let outside = Tree::at(scratch.at("outside"));
        for number in 0..DIRS {
            outside
                .file(format!("{number}/file"), MARKER)
                .file(format!("marked{number}"), MARKER);
        }
        let before = Snapshot::of(outside.path(), all_but_atime());
        Ok(Self { scratch, before })
    }

    /// Returns an arena, the path of a source that [`build`] has made in it, and the path of a dest.
    pub(crate) fn with_source() -> Result<(Self, PathBuf, PathBuf), Skip> {
        let arena = Self::new()?;
        let [root, dest] = ["s", "d"].map(|name| arena.at(name));
        build(&root);
        Ok((arena, root, dest))
    }

    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.at(name)
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.at("outside")
    }

    #[track_caller]
    pub(crate) fn assert_outside_is_untouched(&self) {
        assert_unchanged(&self.before, self.outside(), all_but_atime());
    }

    /// Exchanges the directory `number` in `root` with a link to the outside. The directory is
    /// `moved/number` then.
    fn swap_for_link(&self, root: &Path, number: usize) {
        let name = number.to_string();
        let moved = Tree::at(self.at("moved"));
        moved.symlink(&name, self.outside());
        exchange(root.join(&name), moved.path().join(&name)).expect("both exist");
    }
}

/// Makes directories in `root`, each with a file and a sub-directory, and a file beside them.
pub(crate) fn build(root: &Path) {
    let tree = Tree::at(root);
    for number in 0..DIRS {
        tree.plant(format!("{number}/file=inside {number}/sub/file=inside"));
    }
    tree.plant("beside=inside");
}

/// The number of entries that [`build`] makes.
pub(crate) const BUILT: usize = 1 + DIRS * 4 + 1;

/// Asserts that no file in `tree` has the content of those outside. Links do not count.
#[track_caller]
pub(crate) fn assert_nothing_from_outside(tree: &Path) {
    let mut dirs = vec![tree.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                let content = fs::read(entry.path()).unwrap();
                assert_ne!(content, MARKER.as_bytes(), "{:?}", entry.path());
            }
        }
    }
}

/// The number of a directory right below `root`.
fn number_of(root: &Path, dir: &Path) -> Option<usize> {
    dir.strip_prefix(root).ok()?.to_str()?.parse().ok()
}

fn is_copy_of(event: Event<'_>, path: &Path) -> bool {
    matches!(event, Event::Copied { source, .. } if source == path)
}

fn one_removing_thread() -> RemoveOp<'static> {
    RemoveOp::new().threads(1)
}

fn one_copying_thread() -> CopyOp<'static> {
    CopyOp::new().threads(1)
}

/// Returns options that also give a copy the ACLs of its source, and no others.
fn one_archiving_thread() -> CopyOp<'static> {
    one_copying_thread().with(|options| options.preserve = Preserve::all())
}

/// Makes a source at `s`, and a dest directory at `d` of another user, which [`add_default_acl`] lets act.
fn build_for_another_owner(scratch: &Scratch) -> Result<[PathBuf; 2], Skip> {
    if !is_root() || !supports_acls(scratch.path()) {
        return Err(Skip(
            "another owner takes root, and its ACL takes setfacl".into(),
        ));
    }
    let [root, dest] = ["s", "d"].map(|name| scratch.at(name));
    build(&root);
    Tree::at(&dest)
        .plant("1/ 1")
        .owner(ANOTHER_USER, ANOTHER_USER);
    Tree::at(&dest).select("").owner(ANOTHER_USER, ANOTHER_USER);
    Ok([root, dest])
}

const ANOTHER_USER: u32 = 65_534;

/// Does what the owner of a directory may do at any time.
fn add_default_acl(dir: &Path) {
    let acl = format!("d:u:{ANOTHER_USER}:rwx,d:m::rwx");
    Tree::at(dir).select("").acl(&acl);
}

#[test]
fn an_acl_that_the_owner_of_an_older_dest_adds_during_the_run_gives_it_no_copy() {
    let removing = || one_archiving_thread().with(|options| options.rules.remove_first = true);
    let attributes = Attributes::XATTRS | Attributes::MODE | Attributes::OWNER;
    for options in [one_archiving_thread(), removing()] {
        let scratch = Scratch::in_memory();
        let [root, dest] = or_skip!(build_for_another_owner(&scratch));
        let (acted, copied) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let told = Meddler::new(|event| {
            if matches!(event, Event::Copied { .. }) && copied.fetch_add(1, Ordering::Relaxed) == 0
            {
                for dir in [&dest, &dest.join("1")] {
                    add_default_acl(dir);
                    acted.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
        .copy(options, &root, &dest);
        assert_eq!(told.failures, []);
        assert_eq!(acted.into_inner(), 2);
        assert!(copied.into_inner() > DIRS);
        assert_same_tree(&root, &dest, attributes);
    }
}

#[test]
fn an_acl_that_the_owner_of_the_target_adds_between_operands_gives_it_no_copy() {
    let scratch = Scratch::in_memory();
    let [root, target] = or_skip!(build_for_another_owner(&scratch));
    let names = ["beside", "second", "third"];
    Tree::at(&root).plant("second= third=");
    let operands: Vec<_> = names.map(|name| root.join(name)).into();
    let copied = AtomicUsize::new(0);
    let told = Meddler::new(|event| {
        if matches!(event, Event::Copied { .. }) && copied.fetch_add(1, Ordering::Relaxed) == 0 {
            add_default_acl(&target);
        }
    })
    .copy_into(one_archiving_thread(), &operands, &target);
    assert_eq!((told.failures, copied.into_inner()), (vec![], 3));
    for name in names {
        assert_same_tree(root.join(name), target.join(name), Attributes::XATTRS);
    }
}

#[test]
fn links_that_replace_listed_directories_are_removed_themselves() {
    let arena = or_skip!(Arena::new());
    let root = arena.at("t");
    build(&root);
    let told = Meddler::new(|event| {
        if event == Event::Removed(&root.join("beside")) {
            (0..DIRS).for_each(|number| arena.swap_for_link(&root, number));
        }
    })
    .remove(one_removing_thread(), &root);
    assert_eq!(told, Told::complete(1 + DIRS + 1, 0));
    arena.assert_outside_is_untouched();
    assert_eq!(entries_of(arena.at("moved")), 1 + DIRS * 4);
}

#[test]
fn links_that_replace_entered_directories_stay_and_are_reported() {
    let arena = or_skip!(Arena::new());
    let root = arena.at("t");
    build(&root);
    let told = Meddler::new(|event| {
        if let Event::Removed(file) = event
            && let Some(number) = file.parent().and_then(|dir| number_of(&root, dir))
        {
            arena.swap_for_link(&root, number);
        }
    })
    .remove(one_removing_thread(), &root);
    assert_eq!(told.failures.len(), DIRS);
    for failure in told.failures {
        let not_a_directory = failed(Operation::Remove, Errno::NOTDIR);
        assert_eq!(failure.cause, not_a_directory);
        assert!(number_of(&root, &failure.path).is_some());
    }
    arena.assert_outside_is_untouched();
    // The entries of the moved directories were removed nevertheless.
    assert_eq!(entries_of(arena.at("moved")), 1 + DIRS);
}

#[test]
fn a_source_directory_that_is_removed_while_it_is_open_is_empty() {
    let (_scratch, root, dest) = places();
    Tree::at(&root).plant("sub/ other/");
    let told = Meddler::new(|event| {
        if is_copy_of(event, &root.join("sub")) {
            fs::remove_dir(root.join("sub")).expect("it is empty");
        }
        if is_copy_of(event, &root.join("other")) {
            fs::remove_dir(root.join("other")).expect("it is empty");
            fs::create_dir(root.join("other")).unwrap();
        }
    })
    .copy(one_copying_thread(), &root, &dest);
    assert_eq!(told, Told::complete(3, 0));
    assert!(!root.join("sub").exists());
    assert!(dest.join("sub").is_dir() && dest.join("other").is_dir());
}

#[test]
fn links_that_replace_listed_source_directories_are_copied_themselves() {
    let (arena, root, dest) = or_skip!(Arena::with_source());
    let told = Meddler::new(|event| {
        if is_copy_of(event, &root.join("beside")) {
            (0..DIRS).for_each(|number| arena.swap_for_link(&root, number));
        }
    })
    .copy(one_copying_thread(), &root, &dest);
    assert_eq!(told, Told::complete(1 + DIRS + 1, 6));
    for number in 0..DIRS {
        let link = |root: &Path| fs::read_link(root.join(number.to_string())).unwrap();
        assert_eq!(link(&dest), link(&root));
    }
    arena.assert_outside_is_untouched();
}

#[test]
fn links_that_replace_new_dest_directories_are_not_written_through() {
    let (arena, root, dest) = or_skip!(Arena::with_source());
    let told = Meddler::new(|event| {
        if let Event::Copied { dest: dir, .. } = event
            && let Some(number) = number_of(&dest, dir)
        {
            arena.swap_for_link(&dest, number);
        }
    })
    .copy(one_copying_thread(), &root, &dest);
    assert_eq!(told, Told::complete(BUILT, 6 * (2 * DIRS as u64 + 1)));
    arena.assert_outside_is_untouched();
    // The copies are in the directories that were moved away.
    assert_eq!(entries_of(arena.at("moved")), 1 + DIRS * 4);
}

#[test]
fn links_that_are_planted_in_new_dest_directories_are_not_written_through() {
    let (arena, root, dest) = or_skip!(Arena::with_source());
    let force = CopyOp::new().with(|options| options.force = true);
    let archive = CopyOp::new().with(|options| options.preserve = Preserve::all());
    for options in [CopyOp::new(), force, archive] {
        let told = Meddler::new(|event| {
            if let Event::Copied { dest: dir, .. } = event
                && let Some(number) = number_of(&dest, dir)
            {
                let target = arena.outside().join(format!("marked{number}"));
                symlink(target, dir.join("file")).expect("the directory is new");
            }
        })
        .copy(options, &root, &dest);
        let refused = |number: usize| {
            let file = format!("{number}/file");
            Failure::refused(Refusal::ThroughJustCreatedLink, dest.join(&file)).and(root.join(file))
        };
        let mut failures: Vec<_> = (0..DIRS).map(refused).collect();
        failures.sort_by(|a, b| a.path.cmp(&b.path));
        let copied = Told::complete(BUILT - DIRS, 6 * (DIRS as u64 + 1));
        assert_eq!(told.sorted(), copied.with(failures));
        arena.assert_outside_is_untouched();
        remove_for_sure(&dest).expect("it was made by this test");
    }
}

/// Copies `s/a/b/f` and `s/a/b/g` with their parents into `d`, of which `s` exists. At each
/// event, calls `meddle` with `d/s`.
fn copy_with_parents(arena: &Arena, meddle: impl Fn(Event<'_>, &Path) + Sync) -> Told {
    let (tree, target) = (Tree::at(arena.scratch.path()), arena.at("d"));
    tree.plant("s/a/b/f=f s/a/b/g=g");
    let source = arena.at("s");
    let dest = target.join(source.strip_prefix("/").expect("it is absolute"));
    Tree::at(&dest);
    let options = one_copying_thread().with(|options| options.parents = true);
    let observer = Meddler::new(|event| meddle(event, &dest));
    let sources = [source.join("a/b/f"), source.join("a/b/g")];
    observer.copy_into(options, &sources, &target)
}

#[test]
fn links_that_replace_new_parents_are_not_followed() {
    let arena = or_skip!(Arena::new());
    Tree::at(arena.at("elsewhere"))
        .file("b/f", MARKER)
        .file("b/g", MARKER);
    let is_swapped = AtomicUsize::new(0);
    let told = copy_with_parents(&arena, |event, dest| {
        if let Event::MadeParent { dest: made, .. } = event
            && made == dest.join("a/b")
        {
            is_swapped.fetch_add(1, Ordering::Relaxed);
            fs::rename(dest.join("a"), arena.at("moved")).expect("it was just made");
            symlink(arena.at("elsewhere"), dest.join("a")).expect("it was moved away");
        }
    });
    assert_eq!(is_swapped.into_inner(), 1);
    // The first file is in the directory that was made, and the second one is refused.
    assert_eq!(fs::read_to_string(arena.at("moved/b/f")).unwrap(), "f");
    for name in ["b/f", "b/g"] {
        let content = fs::read_to_string(arena.at("elsewhere").join(name)).unwrap();
        assert_eq!(content, MARKER, "{name}");
    }
    assert_eq!(told.causes(), [Cause::Refused(Refusal::ParentNotDirectory)]);
}

#[test]
fn another_directory_in_place_of_a_new_parent_gets_no_copy() {
    let arena = or_skip!(Arena::new());
    Tree::at(arena.at("own")).file("b/g", MARKER);
    let is_exchanged = AtomicUsize::new(0);
    let told = copy_with_parents(&arena, |event, dest| {
        if matches!(event, Event::Copied { dest: copy, .. } if copy == dest.join("a/b/f")) {
            is_exchanged.fetch_add(1, Ordering::Relaxed);
            exchange(dest.join("a"), arena.at("own")).expect("both exist");
        }
    });
    assert_eq!(is_exchanged.into_inner(), 1);
    assert_eq!(fs::read_to_string(arena.at("own/b/f")).unwrap(), "f");
    let dest = arena.at("d").join(arena.at("s").strip_prefix("/").unwrap());
    assert_eq!(fs::read_to_string(dest.join("a/b/g")).unwrap(), MARKER);
    let exists = failed(Operation::MakeParent, Errno::EXIST);
    assert_eq!(told.causes(), [exists]);
}

#[test]
fn links_that_are_planted_in_new_parents_are_not_written_through() {
    let arena = or_skip!(Arena::new());
    let told = copy_with_parents(&arena, |event, dest| {
        if let Event::MadeParent { dest: made, .. } = event
            && made == dest.join("a/b")
        {
            for name in ["f", "g"] {
                symlink(arena.outside().join("marked0"), made.join(name)).expect("it is new");
            }
        }
    });
    assert_eq!(
        told.causes(),
        [Cause::Refused(Refusal::ThroughJustCreatedLink); 2]
    );
    arena.assert_outside_is_untouched();
}

#[test]
fn links_that_replace_old_dest_directories_are_refused() {
    let (arena, root, dest) = or_skip!(Arena::with_source());
    build(&dest);
    let told = Meddler::new(|event| {
        if is_copy_of(event, &root.join("beside")) {
            (0..DIRS).for_each(|number| arena.swap_for_link(&dest, number));
        }
    })
    .copy(one_copying_thread(), &root, &dest);
    let refused = Cause::Refused(Refusal::NonDirectoryByDirectory);
    assert_eq!(told.causes(), [refused; DIRS]);
    arena.assert_outside_is_untouched();
}

/// Files become FIFOs, FIFOs and files become links, and links become files.
#[test]
fn entries_that_change_their_type_neither_block_a_copy_nor_lead_it_outside() {
    let arena = or_skip!(Arena::new());
    let [root, dest] = ["s", "d"].map(|name| arena.at(name));
    let (old, new) = (Tree::at(&root), Tree::at(arena.at("new")));
    for number in 0..DIRS {
        let [file, secret, pipe, link] =
            ["file", "secret", "pipe", "link"].map(|kind| format!("{kind}{number}"));
        let marked = arena.outside().join(format!("marked{number}"));
        old.file(&file, "inside")
            .file(&secret, "inside")
            .fifo(&pipe)
            .symlink(&link, &marked);
        new.fifo(&file)
            .symlink(&secret, &marked)
            .symlink(&pipe, &marked)
            .file(&link, "inside");
    }
    let names = fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name());
    let pairs: Vec<_> = names
        .map(|name| (root.join(&name), new.path().join(name)))
        .collect();
    // Run the copy in a process of its own, because a copy that waited for a FIFO would hang.
    let copy = child::copy(&root, &dest).threads(1);
    let copy = copy.within(Duration::from_secs(10));
    let report = copy.exchanging(&root, pairs).run();
    assert_eq!(report.exchanges, 4 * DIRS as u64);
    arena.assert_outside_is_untouched();
    assert_nothing_from_outside(&dest);
    let (source, dest) = [&root, &dest]
        .map(|tree| Snapshot::of(tree, Attributes::NAMES))
        .into();
    for number in 0..DIRS {
        let link = format!("link{number}");
        let failure = format!("ReadLink 22 {:?}", root.join(&link));
        assert!(dest.kind(link).is_some() || report.failures.contains(&failure));
    }
    let is_copied = |name: &String| source.kind(name) == dest.kind(name);
    let kinds = ["file", "secret", "pipe"];
    let names = kinds.map(|kind| (0..DIRS).map(move |number| format!("{kind}{number}")));
    let copied = names.into_iter().flatten().filter(is_copied).count();
    // One of these entries may have been copied first, before the exchange.
    assert!(copied >= 3 * DIRS - 1, "{copied} are what they became");
}

/// Runs an operation on a tree with more levels than there are descriptors. At its deepest level, exchanges a
/// directory in the middle with `elsewhere/d`, so that `..` below the middle leads to `elsewhere`.
///
/// The other names in `elsewhere` are those that the operation expects in the parent of the middle.
fn moved_while(operation: impl Fn(&Path) -> Child) -> Result<(), Skip> {
    let arena = Arena::new()?;
    let [root, elsewhere] = ["t", "elsewhere"].map(|name| arena.at(name));
    comb(&root, 60, 1);
    let tree = Tree::at(&elsewhere);
    tree.dir("d").file("a/f0", MARKER).file("z/f0", MARKER);
    let siblings = ["a", "z"].map(|name| elsewhere.join(name));
    let before = siblings
        .each_ref()
        .map(|dir| Snapshot::of(dir, all_but_atime()));
    let below = |levels| -> PathBuf {
        let names = std::iter::repeat_n(Path::new("d"), levels);
        [root.as_path()].into_iter().chain(names).collect()
    };
    let pair = (below(30), elsewhere.join("d"));
    let operation = operation(&root).threads(1).nofile_limit(20);
    let report = operation.exchanging(&below(59), [pair]).run();
    assert_eq!(report.exchanges, 1);
    for (before, dir) in before.iter().zip(&siblings) {
        assert_unchanged(before, dir, all_but_atime());
    }
    Ok(())
}

#[test]
fn the_way_up_from_a_directory_moved_elsewhere_is_not_taken_by_a_removal() {
    or_skip!(moved_while(|root| child::remove(root)));
}

#[test]
fn the_way_up_from_a_directory_moved_elsewhere_is_not_taken_by_a_copy() {
    let scratch = Scratch::in_memory();
    let dest = scratch.at("d");
    or_skip!(moved_while(|root| child::copy(root, &dest)));
    assert_nothing_from_outside(&dest);
}

#[test]
fn a_file_that_appears_in_a_directory_is_removed_with_it() {
    let scratch = Scratch::in_memory();
    let root = scratch.at("t");
    wide(&root, 200);
    let removed = AtomicUsize::new(0);
    let told = Meddler::new(|event| {
        if let Event::Removed(_) = event
            && removed.fetch_add(1, Ordering::Relaxed) == 199
        {
            fs::write(root.join("late"), "").unwrap();
        }
    })
    .remove(one_removing_thread(), &root);
    assert_eq!(told, Told::complete(1 + 200 + 1, 0));
}

#[test]
fn a_directory_that_is_filled_again_and_again_is_reported_once() {
    let scratch = Scratch::in_memory();
    let root = scratch.at("t");
    let busy = root.join("busy");
    wide(&busy, 200);
    build(&root);
    let removed = AtomicUsize::new(0);
    let told = Meddler::new(|event| {
        if let Event::Removed(file) = event
            && file.starts_with(&busy)
        {
            // Each removal after the last file makes one more file. Their number is bounded, in case one listing
            // shows them all.
            let number = removed.fetch_add(1, Ordering::Relaxed);
            if (199..10_000).contains(&number) {
                fs::write(busy.join(number.to_string()), "").unwrap();
            }
        }
    })
    .remove(one_removing_thread(), &root);
    let failure = Failure::failed(Operation::Remove, &busy, Errno::NOTEMPTY);
    assert_eq!(told.failures, [failure]);
    assert_eq!(entries_of(&root), 3);
}

/// Removes a tree; when the first entry is gone, another removal takes all the others.
fn removed_during_a_removal(ignore_missing: bool) -> [Told; 2] {
    let scratch = Scratch::in_memory();
    let root = scratch.at("t");
    build(&root);
    let options = || one_removing_thread().with(|options| options.ignore_missing = ignore_missing);
    let other = OnceLock::new();
    let told = Meddler::new(|_| {
        other.get_or_init(|| remove_with(options(), [&root]));
    })
    .remove(options(), &root);
    assert!(!root.exists());
    [told, other.into_inner().expect("there was an event")]
}

#[test]
fn missing_names_that_are_ignored_may_be_missing_because_of_another_removal() {
    let told = removed_during_a_removal(true);
    assert_eq!(told, [Told::complete(1, 0), Told::complete(BUILT - 1, 0)]);
}

#[test]
fn names_that_another_removal_has_taken_are_reported_as_missing() {
    let [told, other] = removed_during_a_removal(false);
    assert_eq!(other, Told::complete(BUILT - 1, 0));
    assert_eq!(told.counts, (1, 0, told.failures.len() as u64));
    assert!(!told.failures.is_empty());
    let missing = failed(Operation::Remove, Errno::NOENT);
    assert!(told.causes().iter().all(|&it| it == missing), "{told:?}");
}

#[test]
fn a_copy_to_a_dest_that_another_copy_fills_is_complete() {
    let (_scratch, root, dest) = places();
    build(&root);
    let other = OnceLock::new();
    let bytes = 6 * (2 * DIRS as u64 + 1);
    let told = Meddler::new(|_| {
        other.get_or_init(|| copy_with(one_copying_thread(), [&root], &exactly(&dest)));
    })
    .copy(one_copying_thread(), &root, &dest);
    assert_eq!(other.into_inner(), Some(Told::complete(BUILT - 1, bytes)));
    // This copy overwrites what the other one has made, and enters its directories.
    assert_eq!(told, Told::complete(1 + 2 * DIRS + 1, bytes));
    assert_same_tree(&root, &dest, Attributes::MODE);
}

#[test]
fn other_names_are_never_links_to_an_entry_that_replaced_the_first_copy() {
    fn by_a_link(outside: &Path, copy: &Path) {
        symlink(outside, copy).unwrap();
    }
    fn by_a_file(outside: &Path, copy: &Path) {
        fs::hard_link(outside, copy).unwrap();
    }
    let ways = [by_a_link, by_a_file].into_iter();
    for (replaced, dereference) in
        ways.flat_map(|way| [(way, Dereference::Never), (way, Dereference::Always)])
    {
        let arena = or_skip!(Arena::new());
        let [root, dest] = ["s", "d"].map(|name| arena.at(name));
        let tree = Tree::at(&root);
        tree.plant("one=inside two==one");
        let first = OnceLock::new();
        let options = one_copying_thread().with(|options| {
            options.dereference = dereference;
            options.preserve.links = true;
        });
        let told = Meddler::new(|event| {
            if let Event::Copied { dest: copy, .. } = event
                && copy != dest
                && first.set(copy.to_owned()).is_ok()
            {
                fs::remove_file(copy).unwrap();
                replaced(&arena.outside().join("marked0"), copy);
            }
        })
        .copy(options, &root, &dest);
        let first = first.into_inner().expect("a copy was made");
        let other = ["one", "two"].map(|name| dest.join(name));
        let other = other.into_iter().find(|name| *name != first).unwrap();
        assert!(fs::symlink_metadata(&other).is_err());
        let failure = Failure {
            cause: failed(Operation::CreateHardLink, Errno::STALE),
            path: other,
            other: Some(first),
        };
        assert_eq!(told.failures, [failure]);
        arena.assert_outside_is_untouched();
    }
}

#[test]
fn other_names_of_a_source_that_changes_during_the_copy_stay_links() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("touched", |file| {
            fs::File::open(file)
                .unwrap()
                .set_modified(UNIX_EPOCH)
                .unwrap();
        }),
        ("made writable", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o606)).unwrap();
        }),
        ("appended to", |file| {
            let mut file = fs::File::options().append(true).open(file).unwrap();
            file.write_all(b"more").unwrap();
        }),
        ("linked", |file| {
            let root = file.parent().and_then(Path::parent).unwrap();
            for directory in ["0", "1", "2"] {
                fs::hard_link(file, root.join(directory).join("new")).unwrap();
            }
        }),
    ];
    let mount = served!();
    let scratch = Scratch::in_memory();
    for (what, change) in changes {
        for place in [scratch.path(), mount.path()] {
            let root = place.join(what);
            let dest = scratch.at("d");
            let tree = Tree::at(&root);
            tree.plant("0/file=content 1/file==0/file 2/file==0/file");
            let first = OnceLock::new();
            let options = one_archiving_thread();
            let told = Meddler::new(|event| {
                if let Event::Copied { source, .. } = event
                    && source.ends_with("file")
                    && first.set(()).is_ok()
                {
                    change(source);
                }
            })
            .copy(options, &root, &dest);
            assert!(first.get().is_some());
            assert_eq!(told.failures, [], "{what}");
            let names = ["0/file", "1/file", "2/file", "0/new", "1/new", "2/new"];
            let copies = names
                .iter()
                .filter_map(|name| fs::metadata(dest.join(name)).ok());
            let copies: Vec<_> = copies.map(|copy| (copy.ino(), copy.nlink())).collect();
            assert_eq!(
                copies,
                vec![(copies[0].0, copies.len() as u64); copies.len()],
                "{what}"
            );
            remove_for_sure(&dest).unwrap();
        }
    }
}

#[test]
fn a_directory_that_is_never_emptied_because_entries_are_added_is_a_failure() {
    let scratch = Scratch::in_memory();
    let top = scratch.at("t");
    Tree::at(&top).dir("0");
    let added = AtomicUsize::new(0);
    // The directory was listed to its end before its subdirectory is removed.
    let meddler = Meddler::new(|event| {
        if let Event::RemovedDirectory(_) = event {
            let number = added.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(number < 100, "the run does not end");
            fs::create_dir(top.join(number.to_string())).unwrap();
        }
    });
    let told = meddler.remove(one_removing_thread().contents_only(), &top);
    let not_empty = Failure::failed(Operation::Remove, &top, Errno::NOTEMPTY);
    assert_eq!(told.failures, [not_empty]);
    assert_eq!(told.counts.0, added.into_inner() as u64);
    assert_eq!(fs::read_dir(&top).unwrap().count(), 1);
}

#[test]
fn a_replaced_first_copy_is_noticed_even_if_inode_numbers_show_nothing() {
    for numbering in [Numbering::Lasting, Numbering::Forgetful] {
        let mount = served!(numbering);
        let scratch = Scratch::in_memory();
        let [root, dest] = [scratch.at("s"), mount.at("d")];
        let tree = Tree::at(&root);
        tree.plant("1=inside");
        for name in ["2", "3", "4"] {
            tree.hardlink("1", name);
        }
        let (copied, first) = (AtomicUsize::new(0), OnceLock::new());
        let options = one_copying_thread().with(|options| options.preserve.links = true);
        // The first link is good, and the next one would be to another file.
        let told = Meddler::new(|event| {
            if let Event::Copied { dest: copy, .. } = event
                && copy != dest
            {
                let first: &PathBuf = first.get_or_init(|| copy.to_owned());
                if copied.fetch_add(1, Ordering::Relaxed) == 1 {
                    fs::remove_file(first).unwrap();
                    fs::write(first, "another file").unwrap();
                }
            }
        })
        .copy(options, &root, &dest);
        let first = first.into_inner().expect("a copy was made");
        assert_eq!(told.failures.len(), 2, "{told:?}");
        for failure in told.failures {
            let stale = failed(Operation::CreateHardLink, Errno::STALE);
            assert_eq!(failure.cause, stale);
            assert_eq!(failure.other.as_ref(), Some(&first));
            assert!(!failure.path.exists());
        }
        let linked = fs::read_dir(mount.stored_at("d")).unwrap();
        let contents = linked.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        let mut contents: Vec<String> = contents.collect();
        contents.sort();
        assert_eq!(contents, ["another file", "inside"]);
    }
}
