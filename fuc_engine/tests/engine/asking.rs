//! Questions to observers: their order, and the effects of the answers.

use std::fs;

use fuc_engine::{Ask, Backup, CopyOp, Observer, RemoveOp, Summary};
use testkit::tree::{Scratch, Tree, chain};

use crate::kit::{
    Limited as _, Person, Told, assert_nothing_in, counts, exactly, paths, remove_with,
};

fn always() -> RemoveOp<'static> {
    RemoveOp::new().with(|options| options.ask = Ask::Always)
}

#[test]
fn every_name_is_asked_about_with_its_type_before_it_goes() {
    let scratch = Scratch::new();
    let top = Tree::at(scratch.at("t"));
    top.plant("d/f=x d/e/ d/l->nowhere d/p<fifo> d/s<socket> d/z=");
    let person = Person::default();
    let removed = always().run(paths([top.path()]), &person);
    assert_eq!(counts(removed), (8, 0, 0));
    let mut asked = person.asked();
    asked[2..8].sort();
    let expected = [
        "descend Directory t",
        "descend Directory d",
        "remove Directory e",
        "remove EmptyFile z",
        "remove Fifo p",
        "remove File f",
        "remove Socket s",
        "remove Symlink l",
        "remove Directory d",
        "remove Directory t",
    ];
    assert_eq!(asked, expected);
    assert_nothing_in(&scratch);
}

#[test]
fn an_observer_that_does_not_answer_means_no() {
    let scratch = Scratch::new();
    Tree::at(&scratch).plant("t/f=");
    let top = scratch.at("t");
    assert_eq!(remove_with(always(), [&top]), Told::complete(0, 0));
    assert!(top.join("f").exists());
}

#[test]
fn a_deep_tree_is_asked_about_without_recursion() {
    let scratch = Scratch::in_memory();
    let top = scratch.at("t");
    chain(&top, 1_500);
    let person = Person::default();
    let removed = always().run(paths([top]), &person);
    assert!(removed.is_complete());
    // There are two questions for each directory except the last, which is empty.
    assert_eq!(person.asked().len() as u64, 2 * removed.entries - 1);
    assert_nothing_in(&scratch);
}

/// Makes files in `s`, and older ones in `d`.
fn overlapping(files: usize) -> Scratch {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for number in 0..files {
        tree.plant(format!("s/{number}=new d/{number}=old"));
    }
    scratch
}

fn copy_over(scratch: &Scratch, options: CopyOp<'_>, observer: &dyn Observer) -> Summary {
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    options
        .threads(4)
        .run(paths([source]), &exactly(dest), observer)
}

#[test]
fn dests_are_asked_about_in_the_order_of_the_listing_and_declined_ones_are_no_failures() {
    let scratch = overlapping(30);
    let listed = fs::read_dir(scratch.at("s")).unwrap();
    let listed = listed.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let expected: Vec<_> = listed.map(|name| format!("overwrite {name}")).collect();
    let person = Person::declining(["7", "13"]);
    let asking = CopyOp::new().with(|copy| copy.rules.ask = true);
    let summary = copy_over(&scratch, asking, &person);
    assert_eq!((summary.declined, summary.is_complete()), (2, true));
    assert_eq!(person.asked(), expected);
    let content = |name| fs::read_to_string(scratch.at(name)).unwrap();
    assert_eq!(["d/7", "d/13", "d/8"].map(content), ["old", "old", "new"]);
}

#[test]
fn several_threads_number_the_backups_of_one_directory() {
    let scratch = overlapping(1_000);
    let numbering = CopyOp::new().with(|copy| copy.rules.backup = Some(Backup::Numbered));
    for _ in 0..3 {
        let summary = copy_over(&scratch, numbering.clone(), &Person::default());
        assert_eq!(counts(summary), (1_000, 3_000, 0));
    }
    let content = |name| fs::read_to_string(scratch.at(name)).unwrap();
    assert_eq!(["d/999.~1~", "d/999.~3~"].map(content), ["old", "new"]);
    assert_eq!(fs::read_dir(scratch.at("d")).unwrap().count(), 4_000);
}
