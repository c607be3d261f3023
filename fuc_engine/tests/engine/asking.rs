//! Questions to observers, and the effects of their answers.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use fuc_engine::RemoveOp;
use fuc_engine::gnu::Kind;
use fuc_engine::{Ask, Error, Observer, Operation, Question, Refusal};
use rustix::io::Errno;
use testkit::probe::{Fs, LoopMount};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree};

use crate::kit::{Counts, Failure, counts, paths, threads};

/// Declines the names in `declined`, and agrees to all others.
#[derive(Default)]
struct Person {
    declined: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
    failures: Mutex<Vec<Failure>>,
}

impl Person {
    fn declining(names: impl Into<Vec<&'static str>>) -> Self {
        Self {
            declined: names.into(),
            ..Self::default()
        }
    }

    fn remove(&self, options: RemoveOp<'static>, path: &Path) -> Counts {
        counts(options.run(paths([path]), self))
    }

    /// Returns the questions in order, each as its kind and a name.
    fn asked(self) -> Vec<String> {
        self.asked.into_inner().expect("no thread panicked")
    }
}

impl Observer for Person {
    fn failed(&self, error: Error) {
        let failure = Failure::of(&error);
        self.failures
            .lock()
            .expect("no thread panicked")
            .push(failure);
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        let (what, doomed) = match question {
            Question::Remove(doomed) => ("remove", doomed),
            Question::Descend(doomed) => ("descend", doomed),
            Question::RemoveInaccessible(doomed) => ("try", doomed),
            other => panic!("a new question: {other:?}"),
        };
        let name = doomed.path.file_name().expect("the operand has a name");
        let name = name.to_str().expect("names are UTF-8 here");
        let asked = format!("{what} {:?} {name}", doomed.kind);
        self.asked.lock().expect("no thread panicked").push(asked);
        !self.declined.contains(&name)
    }
}

fn always() -> RemoveOp<'static> {
    RemoveOp::new().with(|options| options.ask = Ask::Always)
}

fn names_in(dir: impl AsRef<Path>) -> usize {
    Snapshot::of(dir.as_ref(), Attributes::NAMES).len()
}

#[test]
fn every_name_is_asked_about_before_it_goes() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("d/f", "x").dir("d/e");
    let person = Person::default();
    assert_eq!(person.remove(always(), top.path()), (4, 0, 0));
    let mut asked = person.asked();
    assert_eq!(asked[..2], ["descend Directory t", "descend Directory d"]);
    asked[2..4].sort();
    assert_eq!(asked[2..4], ["remove Directory e", "remove File f"]);
    assert_eq!(asked[4..], ["remove Directory d", "remove Directory t"]);
    assert_eq!(names_in(&scratch), 1);
}

#[test]
fn an_observer_that_does_not_answer_means_no() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("f", "");
    let failures = Mutex::new(Vec::new());
    let summary = always().run(paths([top.path()]), &failures);
    assert_eq!(counts(summary), (0, 0, 0));
    assert_eq!(names_in(top.path()), 2);
}

#[test]
fn a_directory_that_is_not_entered_keeps_its_ancestors_without_a_word() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("a/b/f", "").file("g", "");
    let person = Person::declining(["b"]);
    assert_eq!(person.remove(always(), top.path()), (1, 0, 0));
    assert!(person.failures.lock().unwrap().is_empty());
    assert_eq!(names_in(top.path()), 4);
}

#[test]
fn agreeing_to_remove_the_directory_of_a_declined_file_fails() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("f", "");
    let person = Person::declining(["f"]);
    assert_eq!(person.remove(always(), top.path()), (0, 0, 1));
    let expected = Failure::failed(Operation::Remove, top.path(), Errno::NOTEMPTY);
    assert_eq!(*person.failures.lock().unwrap(), [expected]);
}

#[test]
fn kinds_are_told_apart() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.symlink("l", "nowhere")
        .fifo("p")
        .socket("s")
        .file("z", "");
    let person = Person::default();
    assert_eq!(person.remove(always(), top.path()), (5, 0, 0));
    let asked = person.asked();
    for (kind, name) in [
        (Kind::Symlink, "l"),
        (Kind::Fifo, "p"),
        (Kind::Socket, "s"),
        (Kind::EmptyFile, "z"),
    ] {
        let question = format!("remove {kind:?} {name}");
        assert!(asked.contains(&question), "{question}: {asked:?}");
    }
}

#[test]
fn a_deep_tree_is_asked_about_without_recursion() {
    let scratch = Scratch::in_memory();
    let top = scratch.path().join("t");
    testkit::tree::chain(&top, 3000);
    let person = Person::default();
    let (removed, _, failures) = person.remove(always(), &top);
    assert_eq!(failures, 0);
    // There are two questions for each directory except the last, which is empty.
    assert_eq!(person.asked().len() as u64, 2 * removed - 1);
    assert_eq!(names_in(&scratch), 1);
}

#[test]
fn writable_files_are_removed_without_a_question() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("a/f", "").symlink("l", "a");
    let person = Person::default();
    let options = RemoveOp::new().with(|options| {
        options.threads = threads(4);
        options.ask = Ask::IfWriteProtected;
    });
    assert_eq!(person.remove(options, top.path()), (4, 0, 0));
    assert_eq!(person.asked(), [""; 0]);
}

#[test]
fn another_filesystem_is_left_alone() {
    let mount = testkit::or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    Tree::at(mount.path()).file("kept", "");
    // Mount the same filesystem again inside a tree.
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("f", "").dir("m");
    let inner = top.path().join("m");
    let run = |command: &str, args: &[&Path]| {
        let status = Command::new(command).args(args).status();
        assert!(status.is_ok_and(|status| status.success()), "{command}");
    };
    run("mount", &[Path::new("--bind"), mount.path(), &inner]);
    let person = Person::default();
    let options = RemoveOp::new().with(|options| options.one_file_system = true);
    let told = person.remove(options, top.path());
    let left = names_in(&inner);
    run("umount", &[&inner]);
    assert_eq!(told, (1, 0, 1));
    let expected = Failure::refused(Refusal::OtherFilesystem, inner);
    assert_eq!(*person.failures.lock().unwrap(), [expected]);
    assert_eq!(left, 2);
}

#[test]
fn an_operand_on_another_device_than_its_parent_is_refused_if_asked_for() {
    let mount = testkit::or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    Tree::at(mount.path()).file("kept", "");
    let person = Person::default();
    let options = RemoveOp::new().with(|options| options.preserve_mount_points = true);
    assert_eq!(person.remove(options, mount.path()), (0, 0, 1));
    let expected = Failure::refused(Refusal::MountPoint, mount.path());
    assert_eq!(*person.failures.lock().unwrap(), [expected]);
    assert_eq!(names_in(mount.path()), 2);
}

#[test]
fn an_empty_directory_goes_without_recursion_if_asked_for() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.dir("e").file("full/f", "");
    let options = RemoveOp::new().with(|options| {
        options.recursive = false;
        options.empty_directories = true;
    });
    let person = Person::default();
    let run = |name| person.remove(options.clone(), &top.path().join(name));
    assert_eq!(run("e"), (1, 0, 0));
    assert_eq!(run("full"), (0, 0, 1));
    let full = top.path().join("full");
    let expected = Failure::failed(Operation::Remove, full, Errno::NOTEMPTY);
    assert_eq!(*person.failures.lock().unwrap(), [expected]);
}
