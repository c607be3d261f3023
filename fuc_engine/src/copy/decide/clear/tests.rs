//! Tests of the decisions about a dest in the way: tables of sources, dests and rules.

use super::*;

const PLAIN: ClearRules = ClearRules {
    treatment: DestTreatment::WrittenTo,
    symlinks: Symlinks::NoFollow,
    links_at_dest: Symlinks::Follow,
    keeps_content: false,
    separates_links: false,
    force: false,
    asks: false,
    may_be_other_copy: false,
};
const FOLLOWING: ClearRules = ClearRules {
    symlinks: Symlinks::Follow,
    ..PLAIN
};
const KEEPING: ClearRules = ClearRules {
    keeps_content: true,
    ..PLAIN
};
const SEPARATING: ClearRules = ClearRules {
    separates_links: true,
    ..PLAIN
};
const FORCING: ClearRules = ClearRules {
    force: true,
    ..PLAIN
};
const ASKING: ClearRules = ClearRules {
    asks: true,
    ..PLAIN
};

const IN_NEW_DIRECTORY: ClearRules = ClearRules {
    links_at_dest: Symlinks::NoFollow,
    ..PLAIN
};

const HARD: Making = Making::Link(LinkKind::Hard);
const SYMBOLIC: Making = Making::Link(LinkKind::Symbolic);
const DIRECTORY: Clear = Clear::Refuse(Refusal::DirectoryByNonDirectory);
const SAME: Clear = Clear::Refuse(Refusal::SameFile);

fn file(inode: u64) -> Facts {
    Facts::example(FileType::RegularFile, inode)
}

fn link(inode: u64) -> Facts {
    Facts::example(FileType::Symlink, inode)
}

fn decided(making: Making, rules: ClearRules, source: &Facts, dest: &Facts) -> Clear {
    let no = &|| false;
    let lookups = Lookups {
        are_one_entry: no,
        one_leads_to_other: no,
        dest_leads_to_directory: no,
    };
    clear_whatever_the_source(making, rules, false, dest)
        .unwrap_or_else(|| clear(making, rules, source, dest, &lookups))
}

#[test]
fn a_dest_that_was_vacated_stays_unless_it_is_the_copy_to_link_to() {
    let copy = Making::LinkToCopy(file(5).id);
    for (making, dest, decision) in [
        (Making::File, file(2), Clear::Keep),
        (Making::Symlink, file(2), Clear::Keep),
        (HARD, file(2), Clear::Keep),
        (copy, file(2), Clear::Keep),
        (copy, file(5), Clear::AlreadyThere),
    ] {
        let decided = clear_whatever_the_source(making, PLAIN, true, &dest);
        assert_eq!(decided, Some(decision), "{making:?}");
    }
}

#[test]
fn a_directory_is_never_replaced() {
    let directory = Facts::example(FileType::Directory, 9);
    let copy = Making::LinkToCopy(file(5).id);
    for making in [Making::File, Making::Symlink, HARD, SYMBOLIC, copy] {
        for source in [file(1), link(1)] {
            let row = (making, source.kind);
            assert_eq!(
                decided(making, PLAIN, &source, &directory),
                DIRECTORY,
                "{row:?}"
            );
        }
    }
}

#[test]
fn a_directory_stays_if_dests_are_backed_up() {
    let renaming = ClearRules {
        treatment: DestTreatment::Renamed,
        ..PLAIN
    };
    let forcing = ClearRules {
        force: true,
        ..renaming
    };
    let directory = Facts::example(FileType::Directory, 9);
    let copy = Making::LinkToCopy(file(5).id);
    for (making, rules, decision) in [
        (Making::File, renaming, Clear::Write(Symlinks::Follow)),
        (Making::Special, forcing, Clear::Keep),
        (Making::Symlink, renaming, Clear::Keep),
        (Making::Symlink, forcing, Clear::KeepDirectory),
        (HARD, renaming, Clear::Keep),
        (SYMBOLIC, forcing, Clear::Replace(RemovalEvent::Silent)),
        (copy, renaming, Clear::KeepDirectory),
        (copy, forcing, Clear::KeepDirectory),
    ] {
        let row = (making, rules.force);
        let decided = decided(making, rules, &file(1), &directory);
        assert_eq!(decided, decision, "{row:?}");
    }
}

#[test]
fn the_source_itself_is_never_destroyed() {
    let copy = Making::LinkToCopy(file(5).id);
    for (making, source, decision) in [
        (Making::File, file(1), SAME),
        (Making::Symlink, Facts::example(FileType::Fifo, 1), SAME),
        (Making::Symlink, link(1), Clear::AlreadyThere),
        (HARD, file(1), Clear::AlreadyThere),
        (HARD, link(1), Clear::AlreadyThere),
        (SYMBOLIC, file(1), SAME),
        (SYMBOLIC, link(1), Clear::AlreadyThere),
        (copy, file(1), SAME),
    ] {
        let row = (making, source.kind);
        assert_eq!(
            decided(making, PLAIN, &source, &source),
            decision,
            "{row:?}"
        );
    }
}

#[test]
fn the_same_entry_is_not_a_second_name_of_a_link() {
    let lookups = Lookups {
        are_one_entry: &|| true,
        one_leads_to_other: &|| false,
        dest_leads_to_directory: &|| false,
    };
    let decision = clear(Making::Symlink, PLAIN, &link(1), &link(1), &lookups);
    assert_eq!(decision, SAME);
}

#[test]
fn a_file_at_the_other_end_of_a_link_is_not_unlinked() {
    let lookups = Lookups {
        are_one_entry: &|| false,
        one_leads_to_other: &|| true,
        dest_leads_to_directory: &|| false,
    };
    let fifo = Facts::example(FileType::Fifo, 1);
    for (making, source, dest, decision) in [
        (Making::Symlink, link(1), file(2), SAME),
        (HARD, link(1), file(2), Clear::AlreadyThere),
        (HARD, fifo, link(2), Clear::Unlink),
        (SYMBOLIC, link(1), file(2), SAME),
    ] {
        let row = (making, source.kind);
        let decided = clear(making, PLAIN, &source, &dest, &lookups);
        assert_eq!(decided, decision, "{row:?}");
    }
}

#[test]
fn a_link_to_a_directory_is_not_replaced_by_a_hard_link_to_a_copy() {
    let lookups = Lookups {
        are_one_entry: &|| false,
        one_leads_to_other: &|| false,
        dest_leads_to_directory: &|| true,
    };
    let copy = Making::LinkToCopy(file(5).id);
    let decision = clear(copy, PLAIN, &file(1), &link(2), &lookups);
    assert_eq!(decision, DIRECTORY);
}

#[test]
fn a_directory_at_the_end_of_the_link_to_copy_is_the_same_file() {
    let lookups = Lookups {
        are_one_entry: &|| false,
        one_leads_to_other: &|| true,
        dest_leads_to_directory: &|| false,
    };
    let directory = Facts::example(FileType::Directory, 2);
    for making in [Making::Symlink, SYMBOLIC] {
        let early = clear_whatever_the_source(making, PLAIN, false, &directory);
        assert_eq!(early, None);
        let decision = clear(making, PLAIN, &link(1), &directory, &lookups);
        assert_eq!(decision, SAME);
    }
}

#[test]
fn a_link_in_a_new_directory_is_refused_and_a_file_written_to() {
    let decide = |dest| decided(Making::File, IN_NEW_DIRECTORY, &file(1), &dest);
    assert_eq!(
        decide(link(2)),
        Clear::Refuse(Refusal::ThroughJustCreatedLink)
    );
    assert_eq!(decide(file(2)), Clear::Write(Symlinks::NoFollow));
}

#[test]
fn another_file_is_treated_as_the_rules_say() {
    let several = Facts {
        links: 2,
        ..file(2)
    };
    let copy = Making::LinkToCopy(file(5).id);
    for (making, rules, source, dest, decision) in [
        (
            Making::File,
            PLAIN,
            file(1),
            several,
            Clear::Write(Symlinks::Follow),
        ),
        (Making::File, SEPARATING, file(1), several, Clear::Unlink),
        (
            Making::File,
            SEPARATING,
            file(1),
            file(2),
            Clear::Write(Symlinks::Follow),
        ),
        (Making::Symlink, PLAIN, link(1), file(2), Clear::Unlink),
        (Making::Symlink, FOLLOWING, link(1), file(2), Clear::Keep),
        (Making::Symlink, KEEPING, link(1), file(2), Clear::Keep),
        (
            Making::Symlink,
            ClearRules {
                force: true,
                ..KEEPING
            },
            link(1),
            file(2),
            Clear::Unlink,
        ),
        (
            Making::Symlink,
            ClearRules {
                separates_links: true,
                ..FOLLOWING
            },
            file(1),
            several,
            Clear::Unlink,
        ),
        (HARD, PLAIN, file(1), file(2), Clear::Keep),
        (
            HARD,
            ASKING,
            file(1),
            file(2),
            Clear::Replace(RemovalEvent::Silent),
        ),
        (SYMBOLIC, ASKING, file(1), file(2), Clear::Keep),
        (
            HARD,
            FORCING,
            file(1),
            file(2),
            Clear::Replace(RemovalEvent::Silent),
        ),
        (
            HARD,
            SEPARATING,
            file(1),
            several,
            Clear::Replace(RemovalEvent::Reported),
        ),
        (HARD, PLAIN, link(1), file(2), Clear::Unlink),
        (SYMBOLIC, PLAIN, file(1), file(2), Clear::Keep),
        (SYMBOLIC, FOLLOWING, link(1), file(2), Clear::Keep),
        (copy, PLAIN, file(1), file(5), Clear::AlreadyThere),
        (copy, PLAIN, file(1), file(2), Clear::Unlink),
        (copy, FOLLOWING, file(1), file(2), Clear::Unlink),
    ] {
        let row = (making, rules, source.kind);
        assert_eq!(decided(making, rules, &source, &dest), decision, "{row:?}");
    }
}
