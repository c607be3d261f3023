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
const MADE: [(&str, Making); 6] = [
    ("file", Making::File),
    ("symlink", Making::Symlink),
    ("special", Making::Special),
    ("hard", HARD),
    ("symbolic", SYMBOLIC),
    ("link-to-copy", Making::LinkToCopy),
];
const DECISIONS: [(&str, Settled); 17] = [
    ("write", Settled::Make(Way::Write(Symlinks::Follow))),
    (
        "write-no-link",
        Settled::Make(Way::Write(Symlinks::NoFollow)),
    ),
    (
        "replace",
        Settled::Make(Way::Replace(RemovalEvent::Reported)),
    ),
    (
        "replace-silently",
        Settled::Make(Way::Replace(RemovalEvent::Silent)),
    ),
    ("exists", Settled::Make(Way::Stay(Errno::EXIST))),
    ("is-directory", Settled::Make(Way::Stay(Errno::ISDIR))),
    ("no-access", Settled::Make(Way::Stay(Errno::ACCESS))),
    ("unlink", Settled::Unlink),
    ("back-up", Settled::BackUp),
    ("keep", Settled::Keep),
    ("keep-as-copy", Settled::KeepAsCopy),
    ("already-there", Settled::AlreadyThere),
    ("same-file", Settled::Refuse(Refusal::SameFile)),
    ("not-replacing", Settled::Refuse(Refusal::NotReplacing)),
    (
        "directory",
        Settled::Refuse(Refusal::DirectoryByNonDirectory),
    ),
    ("just-created", Settled::Refuse(Refusal::JustCreated)),
    (
        "just-created-link",
        Settled::Refuse(Refusal::ThroughJustCreatedLink),
    ),
];

/// Cases of each row of the table in [`super`]. A line has options, rules and answers, then what is made from which source
/// (a file of nine bytes and time 2 if none is named), the dest, and the decision.
const ROWS: &str = "
    # 1: what may be the copy of another name stays, and is not a directory
    new replace-none other-copy: file|link-to-copy over file, file|symlink over link = exists
    new replace-none: file over directory = keep
    # 3: a rule that replaces nothing comes before the other reasons
    ask replace-none same-file: file over directory = keep
    ask replace-none-and-fail same-file: file over directory = not-replacing
    # 4: a source is not destroyed
    same-file: any over file = same-file
    older same-file: any over file = same-file
    changed same-file: any over file = same-file
    # 5: a dest that is as new is kept as the copy
    older: file over 9@1 = write
    older: file over 9@2, file over 0@2 = keep-as-copy
    older keep-times stands: file over 9@1 = keep-as-copy
    older keep-times stands-not: file over 9@1 = write
    older keep-times: file over 0@2 = write
    older keep-times: file over 0@3, file over link@2 = keep-as-copy
    changed keep-times no-doubt: file over 9@2 = keep-as-copy
    changed keep-times doubt: file over 9@2 = write
    changed keep-times stands-not: file over 9@1 = write
    # 6: the user is asked before a directory is refused
    ask no: file over directory = keep
    ask yes: file over directory = directory
    # 7: another name of a link needs no copy
    remove unlinked already-there: symlink from link over link = already-there
    # 8: a directory is never replaced, and stays if dests are backed up
    force: any over directory = directory
    force linked-over: any over directory = directory
    force unlinked: any over directory = directory
    renamed: file over directory = write
    renamed: file from fifo over directory = directory
    renamed: symlink from link over directory, hard over directory = exists
    renamed: link-to-copy over directory = is-directory
    renamed force: special from fifo over directory = exists
    renamed force: symlink from link over directory = is-directory
    renamed force: symbolic over directory = replace-silently
    # 9: a dest of an earlier operand is refused
    made: file over file = just-created
    made behind-link: file over file = just-created-link
    made renamed behind-link: file over file = just-created
    # 10: a dest becomes a backup
    renamed remove: any over file = back-up
    # 11: a link to the first copy replaces a dest
    attributes follow: link-to-copy over file|link|fifo = replace
    attributes follow linked-over: link-to-copy over file|link|fifo = replace
    # 12: a dest is unlinked, or replaced when the copy is complete
    remove unlinked not-source: file over file = unlink
    remove unlinked may-be-source: file over file = replace-silently
    remove unlinked: file over fifo = unlink
    remove unlinked: link-to-copy over fifo = replace
    atomic unlinked may-write: file over file = replace-silently
    atomic unlinked may-not-write: file over file = no-access
    atomic unlinked: file over fifo, symlink|link-to-copy over file = replace-silently
    atomic unlinked force: file over file = replace-silently
    # 13: a file is written
    : file over file|fifo|two-names = write
    keep-links: file over two-names = unlink
    keep-links: file over file = write
    : file from fifo over file = unlink
    follow: file from fifo over file = write
    attributes: file from fifo over file = write
    linked-over: file over file = write-no-link
    linked-over: file over link = unlink
    new no-other-copy: file over file = write-no-link
    new no-other-copy: file over link = just-created-link
    # 14: a dest is unlinked for a link or a special file
    : symlink from link over file, special from fifo over file = unlink
    follow: special from fifo over file = exists
    follow keep-links: special from fifo over two-names = unlink
    attributes: symlink from link over file = exists
    attributes force: symlink from link over file = unlink
    attributes force: special from fifo over file = exists
    # 15: a link instead of a copy replaces a dest only if it is told to
    : hard|symbolic over file = exists
    ask yes: hard over file = replace-silently
    ask yes: symbolic over file = exists
    force: hard over file = replace-silently
    force: symbolic from fifo over file = unlink
    keep-links: hard over two-names = replace
    : hard from link over file, symbolic from fifo over file = unlink
";

/// Returns options, rules and answers that a line names.
fn case<'a>(words: &str, options: &'a mut CopyOp<'static>) -> (Rules<'a>, Answers, bool) {
    let (mut answers, mut is_behind_link) = (ANSWERS, false);
    let (mut treatment, mut directory) = (DestTreatment::WrittenTo, Origin::Existing);
    let (mut symlinks, mut is_made) = (Symlinks::NoFollow, false);
    for word in words.split_whitespace() {
        match word {
            "replace-none" => options.rules.replace = Replace::None,
            "replace-none-and-fail" => options.rules.replace = Replace::NoneAndFail,
            "older" => options.rules.replace = Replace::Older,
            "changed" => options.rules.replace = Replace::Changed,
            "ask" => options.rules.ask = true,
            "remove" => options.rules.remove_first = true,
            "atomic" => options.rules.atomic = true,
            "force" => options.force = true,
            "attributes" => options.attributes_only = true,
            "keep-links" => options.preserve.links = true,
            "keep-times" => options.preserve.timestamps = true,
            "linked-over" => treatment = DestTreatment::LinkedOver,
            "unlinked" => treatment = DestTreatment::Unlinked,
            "renamed" => treatment = DestTreatment::Renamed,
            "new" => directory = Origin::Created,
            "follow" => symlinks = Symlinks::Follow,
            "made" => is_made = true,
            "behind-link" => is_behind_link = true,
            "same-file" => answers.sameness = SameFile,
            "already-there" => answers.sameness = AlreadyThere,
            "other-copy" | "no-other-copy" => {
                answers.may_be_other_copy = Some(word == "other-copy");
            }
            "stands" | "stands-not" => answers.time_stands_for_source = Some(word == "stands"),
            "doubt" | "no-doubt" => answers.is_in_doubt = Some(word == "doubt"),
            "yes" | "no" => answers.agrees = Some(word == "yes"),
            "may-be-source" | "not-source" => answers.may_be_source = Some(word == "may-be-source"),
            "may-write" | "may-not-write" => answers.may_write = Some(word == "may-write"),
            _ => panic!("what is {word}?"),
        }
    }
    let rules = Rules {
        options,
        treatment,
        symlinks,
        directory,
        is_made,
        creates_through_links: false,
    };
    (rules, answers, is_behind_link)
}

/// Returns the facts of a file of this kind, or of this size and time.
fn facts(word: &str, inode: u64) -> Facts {
    let kind = match word {
        "fifo" => FileType::Fifo,
        "directory" => FileType::Directory,
        word if word.starts_with("link") => FileType::Symlink,
        _ => FileType::RegularFile,
    };
    let mut facts = Facts::example(kind, inode);
    if word == "two-names" {
        facts.links = 2;
    }
    if let Some((bytes, seconds)) = word.split_once('@') {
        facts.bytes = bytes.parse().unwrap_or_default();
        facts.modified = FileTime {
            seconds: seconds.parse().expect("a time"),
            nanoseconds: 0,
        };
    }
    facts
}

#[test]
fn each_row_of_the_table_decides() {
    let rows = ROWS.lines().map(str::trim);
    for line in rows.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (words, rest) = line.split_once(':').expect("a case");
        let (cases, decision) = rest.split_once(" = ").expect("a decision");
        let decision = DECISIONS.iter().find(|(name, _)| *name == decision);
        let (_, decision) = decision.expect("a decision");
        let mut options = CopyOp::new();
        let (rules, answers, is_behind_link) = case(words, &mut options);
        for case in cases.split(',') {
            let (made, dests) = case.split_once(" over ").expect("a dest");
            let (made, source) = made.split_once(" from ").unwrap_or((made, "9@2"));
            let is_made =
                |name: &str| made.trim() == "any" || made.split('|').any(|it| it.trim() == name);
            let made: Vec<_> = MADE.iter().filter(|(name, _)| is_made(name)).collect();
            assert!(!made.is_empty(), "{line}");
            for (name, making) in made {
                for dest in dests.split('|') {
                    let pair = Pair {
                        source: facts(source, 1),
                        dest: facts(dest.trim(), 9),
                        is_behind_link,
                        lookups: &answers,
                    };
                    assert_eq!(
                        settle(rules, *making, &pair),
                        *decision,
                        "{line}: {name}, {dest}"
                    );
                }
            }
        }
    }
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

#[test]
fn a_dest_is_created_if_nothing_is_there() {
    let options = CopyOp::new();
    for (_, making) in MADE {
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
    let (plain, force) = (
        CopyOp::new(),
        CopyOp::new().with(|options| options.force = true),
    );
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
fn row_2_nothing_is_written_through_a_link_to_nothing_unless_the_options_say_so() {
    let options = CopyOp::new().with(|options| options.rules.replace = Replace::None);
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
