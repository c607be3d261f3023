use super::Sameness::{AlreadyThere, Distinct, SameFile};
use super::*;
use crate::copy::facts::FileTime;

/// The answers of the lookups. It is a bug to ask for one that is `None`.
struct Answers {
    may_be_other_copy: Option<bool>,
    sameness: Sameness,
    time_stands_for_source: Option<bool>,
    is_in_doubt: Option<bool>,
    targets_are_equal: Option<bool>,
    agrees: Option<bool>,
    may_be_source: Option<bool>,
    may_write: Option<bool>,
}

const ANSWERS: Answers = Answers {
    may_be_other_copy: None,
    sameness: Distinct,
    time_stands_for_source: None,
    is_in_doubt: None,
    targets_are_equal: None,
    agrees: None,
    may_be_source: None,
    may_write: None,
};

impl Lookups for Answers {
    fn may_be_other_copy(&self) -> bool {
        self.may_be_other_copy.expect("BUG: asked about spellings")
    }
    fn sameness(&self) -> Sameness {
        self.sameness
    }
    fn time_stands_for_source(&self) -> bool {
        self.time_stands_for_source.expect("BUG: asked about times")
    }
    fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.expect("BUG: asked about content")
    }
    fn targets_are_equal(&self) -> bool {
        self.targets_are_equal.expect("BUG: asked about targets")
    }
    fn ask(&self) -> bool {
        self.agrees.expect("BUG: asked without being told to")
    }
    fn may_be_source(&self) -> bool {
        self.may_be_source.expect("BUG: asked about the source")
    }
    fn may_write(&self) -> bool {
        self.may_write.expect("BUG: asked about permissions")
    }
}

const HARD: Making = Making::Link(LinkKind::Hard);
const SYMBOLIC: Making = Making::Link(LinkKind::Symbolic);
const MADE: [Making; 6] = [
    Making::File,
    Making::Symlink,
    Making::Special,
    HARD,
    SYMBOLIC,
    Making::LinkToCopy,
];
const WRITE: Settled = Settled::Make(Way::Write(Symlinks::Follow));
const REPLACE: Settled = Settled::Make(Way::Replace(RemovalEvent::Reported));
const REPLACE_SILENTLY: Settled = Settled::Make(Way::Replace(RemovalEvent::Silent));
const UNLINK: Settled = Settled::Unlink;
const EXISTS: Settled = Settled::Make(Way::Stay(Errno::EXIST));
const IS_DIRECTORY: Settled = Settled::Make(Way::Stay(Errno::ISDIR));
const DIRECTORY: Settled = Settled::Refuse(Refusal::DirectoryByNonDirectory);

fn options(change: impl FnOnce(&mut CopyOp<'static>)) -> CopyOp<'static> {
    CopyOp::new().with(change)
}

fn rules<'a>(options: &'a CopyOp<'a>) -> Rules<'a> {
    Rules {
        options,
        treatment: DestTreatment::WrittenTo,
        symlinks: Symlinks::NoFollow,
        directory: Origin::Existing,
        is_made: false,
        creates_through_links: false,
    }
}

fn example(kind: FileType) -> Facts {
    Facts::example(kind, 9)
}

fn source(kind: FileType) -> Facts {
    Facts::example(kind, 1)
}

fn with_names(links: u64) -> Facts {
    Facts {
        links,
        ..example(FileType::RegularFile)
    }
}

fn modified_at(seconds: i64) -> Facts {
    let modified = FileTime {
        seconds,
        nanoseconds: 0,
    };
    Facts {
        modified,
        ..example(FileType::RegularFile)
    }
}

fn pair(source: Facts, dest: Facts, answers: &Answers) -> Pair<'_> {
    Pair {
        source,
        dest,
        is_behind_link: false,
        lookups: answers,
    }
}

/// Settles without a question.
fn settled(rules: Rules<'_>, making: Making, source: Facts, dest: Facts) -> Settled {
    settle(rules, making, &pair(source, dest, &ANSWERS))
}

use FileType::{Directory, Fifo, RegularFile, Symlink};

#[test]
fn a_dest_is_created_if_nothing_is_there() {
    let options = options(|_| ());
    for making in MADE {
        let settle = |is_made| {
            let rules = Rules {
                is_made,
                ..rules(&options)
            };
            settle_vacant(rules, making, Vacant::Nothing)
        };
        assert_eq!(settle(false), Ok(Way::Create));
        assert_eq!(settle(true), Err(Refusal::JustCreated));
    }
}

#[test]
fn what_cannot_be_seen_is_replaced_by_links_to_copies_and_forced_links() {
    let [plain, force] = [false, true].map(|force| options(|options| options.force = force));
    let replace = Way::Replace(RemovalEvent::Silent);
    for (making, options, has_slash, way) in [
        (Making::LinkToCopy, &plain, false, replace),
        (Making::Symlink, &force, true, replace),
        (HARD, &force, true, replace),
        (HARD, &force, false, Way::Create),
        (HARD, &plain, true, Way::Create),
        (Making::File, &force, true, Way::Create),
        (Making::Special, &force, true, Way::Create),
    ] {
        let settled = settle_vacant(rules(options), making, Vacant::Hidden { has_slash });
        assert_eq!(settled, Ok(way), "{making:?} {has_slash}");
    }
}

#[test]
fn row_1_what_may_be_the_copy_of_another_name_stays() {
    let stays = Settled::Make(Way::Stay(Errno::EXIST));
    let options = options(|options| options.rules.replace = Replace::None);
    let rules = Rules {
        directory: Origin::Created,
        ..rules(&options)
    };
    let answers = Answers {
        may_be_other_copy: Some(true),
        ..ANSWERS
    };
    for (making, dest, decision) in [
        (Making::File, RegularFile, stays),
        (Making::File, Symlink, stays),
        (Making::Symlink, Symlink, stays),
        (Making::LinkToCopy, RegularFile, stays),
        (Making::File, Directory, Settled::Keep),
    ] {
        let seen = &pair(source(RegularFile), example(dest), &answers);
        assert_eq!(settle(rules, making, seen), decision, "{making:?} {dest:?}");
    }
}

#[test]
fn row_2_nothing_is_written_through_a_link_to_nothing_unless_the_options_say_so() {
    let options = options(|options| options.rules.replace = Replace::None);
    let through = Rules {
        creates_through_links: true,
        ..rules(&options)
    };
    let made = Rules {
        is_made: true,
        ..through
    };
    let replace = Way::Replace(RemovalEvent::Reported);
    let (write, just_made) = (
        Way::Write(Symlinks::Follow),
        Refusal::ThroughJustCreatedLink,
    );
    for (dest, rules, making, decision) in [
        (
            Vacant::Dangling,
            rules(&options),
            Making::File,
            Ok(Way::StayLink),
        ),
        (
            Vacant::Dangling,
            through,
            Making::File,
            Ok(Way::CreateThrough),
        ),
        (Vacant::Dangling, made, Making::File, Err(just_made)),
        (Vacant::Dangling, through, Making::LinkToCopy, Ok(replace)),
        (Vacant::Loop, through, Making::File, Ok(write)),
        (Vacant::Loop, made, Making::File, Err(just_made)),
        (Vacant::Loop, through, Making::LinkToCopy, Ok(replace)),
    ] {
        let settled = settle_vacant(rules, making, dest);
        assert_eq!(settled, decision, "{dest:?} {making:?}");
    }
}

#[test]
fn row_3_a_rule_that_replaces_nothing_comes_before_the_other_reasons() {
    for (replace, decision) in [
        (Replace::None, Settled::Keep),
        (Replace::NoneAndFail, Settled::Refuse(Refusal::NotReplacing)),
    ] {
        let options = options(|options| {
            options.rules.replace = replace;
            options.rules.ask = true;
        });
        let answers = Answers {
            sameness: SameFile,
            ..ANSWERS
        };
        let seen = &pair(source(RegularFile), example(Directory), &answers);
        assert_eq!(settle(rules(&options), Making::File, seen), decision);
    }
}

#[test]
fn row_4_a_source_is_not_destroyed() {
    let answers = Answers {
        sameness: SameFile,
        ..ANSWERS
    };
    for replace in [Replace::All, Replace::Older, Replace::Changed] {
        let options = options(|options| options.rules.replace = replace);
        for making in MADE {
            let seen = &pair(source(RegularFile), example(RegularFile), &answers);
            let decision = Settled::Refuse(Refusal::SameFile);
            assert_eq!(settle(rules(&options), making, seen), decision);
        }
    }
}

#[test]
fn row_5_a_dest_that_is_as_new_is_kept_as_the_copy() {
    let source = Facts {
        bytes: 9,
        ..modified_at(2)
    };
    let at = |seconds| Facts {
        bytes: 9,
        ..modified_at(seconds)
    };
    let (emptied, link) = (
        modified_at(2),
        Facts {
            kind: Symlink,
            ..modified_at(2)
        },
    );
    let (older, changed) = (Replace::Older, Replace::Changed);
    for (replace, copies_times, dest, stands_for_source, in_doubt, decision) in [
        (older, false, at(1), None, None, WRITE),
        (older, false, at(2), None, None, Settled::KeepAsCopy),
        (older, true, at(1), Some(true), None, Settled::KeepAsCopy),
        (older, true, at(1), Some(false), None, WRITE),
        (older, true, emptied, None, None, WRITE),
        (older, false, emptied, None, None, Settled::KeepAsCopy),
        (older, true, modified_at(3), None, None, Settled::KeepAsCopy),
        (older, true, link, None, None, Settled::KeepAsCopy),
        (changed, true, at(2), None, Some(false), Settled::KeepAsCopy),
        (changed, true, at(2), None, Some(true), WRITE),
        (changed, true, at(1), Some(false), None, WRITE),
    ] {
        let options = options(|options| {
            options.rules.replace = replace;
            options.preserve.timestamps = copies_times;
        });
        let answers = Answers {
            time_stands_for_source: stands_for_source,
            is_in_doubt: in_doubt,
            ..ANSWERS
        };
        let settled = settle(rules(&options), Making::File, &pair(source, dest, &answers));
        assert_eq!(settled, decision, "{replace:?} {copies_times} {dest:?}");
    }
}

#[test]
fn row_6_the_user_is_asked_before_a_directory_is_refused() {
    let options = options(|options| options.rules.ask = true);
    for (agrees, decision) in [(false, Settled::Keep), (true, DIRECTORY)] {
        let answers = Answers {
            agrees: Some(agrees),
            ..ANSWERS
        };
        let seen = &pair(source(RegularFile), example(Directory), &answers);
        assert_eq!(settle(rules(&options), Making::File, seen), decision);
    }
}

#[test]
fn row_7_another_name_of_a_link_needs_no_copy() {
    let options = options(|options| options.rules.remove_first = true);
    let rules = Rules {
        treatment: DestTreatment::Unlinked,
        ..rules(&options)
    };
    let answers = Answers {
        sameness: AlreadyThere,
        ..ANSWERS
    };
    let seen = &pair(source(Symlink), source(Symlink), &answers);
    assert_eq!(settle(rules, Making::Symlink, seen), Settled::AlreadyThere);
}

#[test]
fn row_8_a_directory_is_never_replaced() {
    let options = options(|options| options.force = true);
    for treatment in [
        DestTreatment::WrittenTo,
        DestTreatment::LinkedOver,
        DestTreatment::Unlinked,
    ] {
        let rules = Rules {
            treatment,
            ..rules(&options)
        };
        for making in MADE {
            let settled = settled(rules, making, source(RegularFile), example(Directory));
            assert_eq!(settled, DIRECTORY, "{making:?}");
        }
    }
}

#[test]
fn row_8_a_directory_stays_if_dests_are_backed_up() {
    let [plain, force] = [false, true].map(|force| options(|options| options.force = force));
    for (making, options, kind, decision) in [
        (Making::File, &plain, RegularFile, WRITE),
        (Making::File, &plain, Fifo, DIRECTORY),
        (Making::Special, &force, Fifo, EXISTS),
        (Making::Symlink, &plain, Symlink, EXISTS),
        (Making::Symlink, &force, Symlink, IS_DIRECTORY),
        (HARD, &plain, RegularFile, EXISTS),
        (SYMBOLIC, &force, RegularFile, REPLACE_SILENTLY),
        (Making::LinkToCopy, &plain, RegularFile, IS_DIRECTORY),
    ] {
        let rules = Rules {
            treatment: DestTreatment::Renamed,
            ..rules(options)
        };
        let settled = settled(rules, making, source(kind), example(Directory));
        assert_eq!(settled, decision, "{making:?} {kind:?}");
    }
}

#[test]
fn row_9_a_dest_of_an_earlier_operand_is_refused() {
    let options = options(|_| ());
    for (treatment, is_behind_link, refusal) in [
        (DestTreatment::WrittenTo, false, Refusal::JustCreated),
        (
            DestTreatment::WrittenTo,
            true,
            Refusal::ThroughJustCreatedLink,
        ),
        (DestTreatment::Renamed, true, Refusal::JustCreated),
    ] {
        let rules = Rules {
            treatment,
            is_made: true,
            ..rules(&options)
        };
        let seen = &Pair {
            source: source(RegularFile),
            dest: example(RegularFile),
            is_behind_link,
            lookups: &ANSWERS,
        };
        let settled = settle(rules, Making::File, seen);
        assert_eq!(settled, Settled::Refuse(refusal), "{treatment:?}");
    }
}

#[test]
fn row_10_a_dest_becomes_a_backup() {
    let options = options(|options| options.rules.remove_first = true);
    let rules = Rules {
        treatment: DestTreatment::Renamed,
        ..rules(&options)
    };
    for making in MADE {
        let settled = settled(rules, making, source(RegularFile), example(RegularFile));
        assert_eq!(settled, Settled::BackUp, "{making:?}");
    }
}

#[test]
fn row_11_a_link_to_the_first_copy_replaces_a_dest() {
    let options = options(|options| options.attributes_only = true);
    for treatment in [DestTreatment::WrittenTo, DestTreatment::LinkedOver] {
        let rules = Rules {
            treatment,
            symlinks: Symlinks::Follow,
            ..rules(&options)
        };
        for dest in [RegularFile, Symlink, Fifo] {
            let settled = settled(
                rules,
                Making::LinkToCopy,
                source(RegularFile),
                example(dest),
            );
            assert_eq!(settled, REPLACE, "{treatment:?} {dest:?}");
        }
    }
}

#[test]
fn row_12_a_dest_is_unlinked_or_replaced_when_the_copy_is_complete() {
    let remove = &options(|options| options.rules.remove_first = true);
    let atomic = &options(|options| options.rules.atomic = true);
    let force = &options(|options| {
        options.rules.atomic = true;
        options.force = true;
    });
    let (file, link, silent) = (Making::File, Making::LinkToCopy, REPLACE_SILENTLY);
    let forbidden = Settled::Make(Way::Stay(Errno::ACCESS));
    for (options, making, dest, may_be_source, may_write, decision) in [
        (remove, file, RegularFile, Some(false), None, UNLINK),
        (remove, file, RegularFile, Some(true), None, silent),
        (remove, file, Fifo, None, None, UNLINK),
        (remove, link, Fifo, None, None, REPLACE),
        (atomic, file, RegularFile, None, Some(true), silent),
        (atomic, file, RegularFile, None, Some(false), forbidden),
        (atomic, file, Fifo, None, None, silent),
        (atomic, Making::Symlink, RegularFile, None, None, silent),
        (atomic, link, RegularFile, None, None, silent),
        (force, file, RegularFile, None, None, silent),
    ] {
        let rules = Rules {
            treatment: DestTreatment::Unlinked,
            ..rules(options)
        };
        let answers = Answers {
            may_be_source,
            may_write,
            ..ANSWERS
        };
        let pair = &pair(source(RegularFile), example(dest), &answers);
        let settled = settle(rules, making, pair);
        assert_eq!(settled, decision, "{making:?} {dest:?} {may_be_source:?}");
    }
}

#[test]
fn row_13_a_file_is_written() {
    let [plain, links] = [false, true].map(|links| options(|o| o.preserve.links = links));
    let attributes = options(|options| options.attributes_only = true);
    let [old, links, attributes] = [&plain, &links, &attributes].map(rules);
    let (mut mirror, mut new, mut following) = (old, old, old);
    mirror.treatment = DestTreatment::LinkedOver;
    new.directory = Origin::Created;
    following.symlinks = Symlinks::Follow;
    let not_through = Settled::Make(Way::Write(Symlinks::NoFollow));
    let planted = Settled::Refuse(Refusal::ThroughJustCreatedLink);
    let (one, two) = (with_names(1), with_names(2));
    for (row, rules, kind, dest, decision) in [
        ("file", old, RegularFile, one, WRITE),
        ("FIFO", old, RegularFile, example(Fifo), WRITE),
        ("several names", old, RegularFile, two, WRITE),
        ("links are kept", links, RegularFile, two, UNLINK),
        ("one name", links, RegularFile, one, WRITE),
        ("content of a FIFO", old, Fifo, one, UNLINK),
        ("through links", following, Fifo, one, WRITE),
        ("attributes of a FIFO", attributes, Fifo, one, WRITE),
        ("mirror", mirror, RegularFile, one, not_through),
        (
            "mirror, link",
            mirror,
            RegularFile,
            example(Symlink),
            UNLINK,
        ),
        ("new", new, RegularFile, one, not_through),
        ("planted", new, RegularFile, example(Symlink), planted),
    ] {
        let answers = Answers {
            may_be_other_copy: (rules.directory == Origin::Created).then_some(false),
            ..ANSWERS
        };
        let pair = &pair(source(kind), dest, &answers);
        assert_eq!(settle(rules, Making::File, pair), decision, "{row}");
    }
}

#[test]
fn row_14_a_dest_is_unlinked_for_a_link_or_a_special_file() {
    let plain = options(|_| ());
    let links = options(|options| options.preserve.links = true);
    let attributes = options(|options| options.attributes_only = true);
    let force = options(|options| {
        options.attributes_only = true;
        options.force = true;
    });
    let following = |options| Rules {
        symlinks: Symlinks::Follow,
        ..rules(options)
    };
    let (link, fifo) = (Making::Symlink, Making::Special);
    for (row, rules, making, kind, names, decision) in [
        ("link", rules(&plain), link, Symlink, 1, UNLINK),
        ("FIFO", rules(&plain), fifo, Fifo, 1, UNLINK),
        ("followed", following(&plain), fifo, Fifo, 1, EXISTS),
        ("other names", following(&links), fifo, Fifo, 2, UNLINK),
        ("attributes", rules(&attributes), link, Symlink, 1, EXISTS),
        ("forced", rules(&force), link, Symlink, 1, UNLINK),
        ("forced FIFO", rules(&force), fifo, Fifo, 1, EXISTS),
    ] {
        let settled = settled(rules, making, source(kind), with_names(names));
        assert_eq!(settled, decision, "{row}");
    }
}

#[test]
fn row_15_a_link_instead_of_a_copy_replaces_a_dest_only_if_it_is_told_to() {
    let plain = &options(|_| ());
    let ask = &options(|options| options.rules.ask = true);
    let force = &options(|options| options.force = true);
    let links = &options(|options| options.preserve.links = true);
    let agreed = Answers {
        agrees: Some(true),
        ..ANSWERS
    };
    for (row, options, making, kind, names, decision) in [
        ("hard", plain, HARD, RegularFile, 1, EXISTS),
        ("symbolic", plain, SYMBOLIC, RegularFile, 1, EXISTS),
        ("asked", ask, HARD, RegularFile, 1, REPLACE_SILENTLY),
        ("asked, symbolic", ask, SYMBOLIC, RegularFile, 1, EXISTS),
        ("forced", force, HARD, RegularFile, 1, REPLACE_SILENTLY),
        ("forced, symbolic", force, SYMBOLIC, Fifo, 1, UNLINK),
        ("other names", links, HARD, RegularFile, 2, REPLACE),
        ("link to a link", plain, HARD, Symlink, 1, UNLINK),
        ("link to a FIFO", plain, SYMBOLIC, Fifo, 1, UNLINK),
    ] {
        let pair = &pair(source(kind), with_names(names), &agreed);
        let settled = settle(rules(options), making, pair);
        assert_eq!(settled, decision, "{row}");
    }
}

const CASES: [(Symlinks, DestTreatment); 4] = [
    (Symlinks::Follow, DestTreatment::Renamed),
    (Symlinks::NoFollow, DestTreatment::Renamed),
    (Symlinks::NoFollow, DestTreatment::Unlinked),
    (Symlinks::NoFollow, DestTreatment::WrittenTo),
];

fn file(inode: u64, links: u64) -> Facts {
    Facts {
        links,
        ..Facts::example(FileType::RegularFile, inode)
    }
}

fn plain(itself: Facts) -> NamedFile {
    NamedFile {
        itself,
        target: Some(itself),
    }
}

fn link(inode: u64, target: Facts) -> NamedFile {
    NamedFile {
        itself: Facts::example(FileType::Symlink, inode),
        target: Some(target),
    }
}

/// Decides about two different entries in each of the cases.
fn decided(source: NamedFile, dest: NamedFile) -> [Sameness; 4] {
    decided_if_one_entry(false, source, dest)
}

fn decided_if_one_entry(is_one_entry: bool, source: NamedFile, dest: NamedFile) -> [Sameness; 4] {
    CASES.map(|(symlinks, treatment)| {
        let names = NamedFiles {
            source,
            dest,
            symlinks,
            treatment,
        };
        names.sameness(|| is_one_entry)
    })
}

#[test]
fn a_hard_link_may_be_removed_but_not_written_to() {
    assert_eq!(
        decided(plain(file(1, 2)), plain(file(1, 2))),
        [Distinct, Distinct, Distinct, SameFile]
    );
}

#[test]
fn an_entry_is_never_its_own_copy() {
    let name = plain(file(1, 2));
    assert_eq!(decided_if_one_entry(true, name, name), [SameFile; 4]);
}

#[test]
fn a_link_to_the_source_may_be_removed_but_not_written_through() {
    assert_eq!(
        decided(plain(file(1, 1)), link(2, file(1, 1))),
        [Distinct, Distinct, Distinct, SameFile]
    );
}

#[test]
fn the_target_of_a_source_link_stays_unless_the_link_is_copied_and_the_target_renamed() {
    assert_eq!(
        decided(link(2, file(1, 1)), plain(file(1, 1))),
        [SameFile, Distinct, SameFile, SameFile]
    );
}

#[test]
fn two_links_are_distinct_wherever_they_lead() {
    let (source, dest) = (link(2, file(1, 1)), link(3, file(1, 1)));
    assert_eq!(decided(source, dest)[1..], [Distinct; 3]);
}

#[test]
fn two_names_of_one_link_need_no_copy() {
    let (source, dest) = (link(2, file(1, 1)), link(2, file(1, 1)));
    assert_eq!(
        decided(source, dest)[1..],
        [Distinct, AlreadyThere, AlreadyThere]
    );
}

/// Settles the dest of a directory, and panics if a fact is looked up that is `None`.
fn settled_directory(
    dest: Occupant,
    backs_up: bool,
    may_be_other_copy: Option<bool>,
    is_led_to_source: Option<bool>,
) -> SettledDirectory {
    let other = || may_be_other_copy.expect("BUG: asked about spellings");
    let led = || is_led_to_source.expect("BUG: asked about the target");
    settle_directory(dest, backs_up, other, led)
}

#[test]
fn a_directory_is_created_where_nothing_is() {
    for backs_up in [false, true] {
        let vacant = |dest| settled_directory(dest, backs_up, None, None);
        assert_eq!(vacant(Occupant::Nothing), SettledDirectory::Create);
        let exists = SettledDirectory::Stay(Errno::EXIST);
        assert_eq!(vacant(Occupant::Hidden), exists);
    }
}

#[test]
fn a_directory_fills_another_one_unless_that_may_be_the_copy_of_another_name() {
    for backs_up in [false, true] {
        let of = |other| settled_directory(Occupant::Directory, backs_up, Some(other), None);
        assert_eq!(of(false), SettledDirectory::Fill);
        assert_eq!(of(true), SettledDirectory::Stay(Errno::EXIST));
    }
}

#[test]
fn a_directory_replaces_another_file_only_by_a_backup() {
    let of = |backs_up, other, led| settled_directory(Occupant::Other, backs_up, other, led);
    let refused = SettledDirectory::Refuse;
    let no_directory = Refusal::NonDirectoryByDirectory;
    assert_eq!(of(true, Some(false), None), SettledDirectory::BackUp);
    assert_eq!(of(true, Some(true), Some(false)), refused(no_directory));
    assert_eq!(of(true, Some(true), Some(true)), refused(Refusal::SameFile));
    assert_eq!(of(false, None, Some(false)), refused(no_directory));
    assert_eq!(of(false, None, Some(true)), refused(Refusal::SameFile));
}
