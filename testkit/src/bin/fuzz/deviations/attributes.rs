//! Deviations in modes, owners, times, ACLs and extended attributes.

use testkit::snapshot::{Change, Kind};

use super::Deviation;
use crate::{
    case::{AclKind, Entry, Pair, User, What},
    fact::{Fact, Side},
    run::Status,
};

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Times of directories**, like their other attributes, are read and set when their copies",
        applies: |it| {
            let copies_upward = it.copies_upward() || !it.copies_of_dests().is_empty();
            (it.has_dots() || copies_upward) && it.differing_dirs() <= 2
        },
        // The source of such a directory is changed by the run, so it is a dest itself.
        explains: |it, fact| {
            fact.dir_change(&["mtime", "mode", "owner"]).is_some() && it.is_about(fact, &it.dests())
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "that is there already does not change the time of its directory (`cpz -aL d/. d/file e`)",
        applies: |it| {
            let links = it.may_preserve_links() && it.has_option('L', "dereference");
            (links || it.has_option('u', "update")) && it.gnu_only_touches_dirs()
        },
        explains: |_, fact| {
            let is_removal = |line: &str| line.starts_with("removed ");
            fact.output(Side::Gnu).is_some_and(is_removal) || fact.is_dir_changed_by_gnu()
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "If the destination has a default ACL, new directories follow that ACL. cp also",
        applies: |it| it.has_acl(AclKind::Default),
        explains: |_, fact| fact.dir_change(&["mode", "xattrs"]).is_some(),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve`**: an ACL that the dest has or inherits, and that the source lacks, is removed.",
        applies: |it| it.has_acl(AclKind::Access) || it.has_acl(AclKind::Default),
        explains: |it, fact| {
            let loses_acl = |change: &Change| {
                let has_acl = |fact: &Option<String>| {
                    fact.as_ref()
                        .is_some_and(|fact| fact.contains("system.posix_acl_"))
                };
                change.label == "xattrs" && has_acl(&change.first)
            };
            match fact {
                Fact::Tree(change) if change.label == "mode" => it.has_fact(|other| match other {
                    Fact::Tree(other) => other.path == change.path && loses_acl(other),
                    _ => false,
                }),
                Fact::Tree(change) => loses_acl(change),
                _ => false,
            }
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve`**: extended attributes are set even if the umask, or the mode of a dest",
        applies: |it| {
            let forbids_writing = |entry: &Entry| {
                let mode = entry.attributes.mode;
                matches!(entry.what, What::Dir) && mode.is_some_and(|mode| mode & 0o200 == 0)
            };
            it.case.user == User::Nobody
                && (it.case.umask & 0o200 != 0 || it.has_entry(forbids_writing))
        },
        explains: |_, fact| {
            let is_lost = |change: &Change| {
                let ours = change.second.as_deref().unwrap_or_default();
                change.first.is_none() && ours.starts_with("xattrs user.")
            };
            fact.change(&["xattrs"]).is_some_and(is_lost)
                || fact.is_error(Side::Gnu, "setting attribute")
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-s` with preserved attributes** makes a link without",
        applies: |it| it.has_option('s', "symbolic-link"),
        explains: |_, fact| {
            let is_of_source = |change: &Change| {
                let gnu = change.first.as_deref().unwrap_or_default();
                change.kinds.1 == Some(Kind::Symlink)
                    && change.second.is_none()
                    && gnu.starts_with("xattrs trusted.")
            };
            fact.change(&["xattrs"]).is_some_and(is_of_source)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve`**: a directory that is named by a symbolic link",
        applies: |it| {
            it.has_symlink() && (it.has_option('H', "") || it.has_option('L', "dereference"))
        },
        explains: |_, fact| {
            let is_user = |xattrs: &str| {
                xattrs.starts_with("xattrs user.") || xattrs.starts_with("xattrs trusted.")
            };
            let is_lost = |change: &Change| {
                change.first.is_none() && change.second.as_deref().is_some_and(is_user)
            };
            fact.dir_change(&["xattrs"]).is_some_and(is_lost)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "If an extended attribute cannot be read or set, cpz names the file",
        applies: |it| it.gnu_says(" attribute '") && it.gnu.status == it.ours.status,
        explains: |_, fact| {
            // An ACL is a part of the mode.
            let is_acl_of_ours = |change: &Change| {
                let ours = change.second.as_deref().unwrap_or_default();
                change.first.is_none() && ours.contains("posix_acl_access")
            };
            fact.is_error(Side::Gnu, " attribute '")
                || fact.is_error(Side::Ours, "setting attributes for ")
                || fact.dir_change(&["mode"]).is_some()
                || fact.dir_change(&["xattrs"]).is_some_and(is_acl_of_ours)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve=mode,ownership`** of a dest directory of another user",
        applies: |it| it.case.user == User::Nobody && it.gnu.status == Status::Exit(1),
        explains: |_, fact| fact.is_error(Side::Ours, "preserving permissions for "),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Errors**: a dest that is incomplete after an error gets a time of modification before",
        applies: |it| it.ours_says(": "),
        explains: |_, fact| {
            let is_old = |change: &Change| {
                let ours = change.second.as_deref().unwrap_or_default();
                change.first.as_deref() == Some("mtime fresh") && ours.starts_with("mtime 0.")
            };
            fact.change(&["mtime"]).is_some_and(is_old)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Devices, FIFOs and sockets** get no set-id and sticky bits if their owner is preserved",
        applies: |it| {
            it.has_entry(|entry| {
                let mode = entry.attributes.mode.unwrap_or_default();
                is_special(&entry.what) && mode & 0o7000 != 0
            })
        },
        explains: |_, fact| {
            let loses_bits = |change: &Change| {
                let (Some(gnu), Some(ours)) = (mode(&change.first), mode(&change.second)) else {
                    return false;
                };
                !matches!(change.kinds.0, Some(Kind::File | Kind::Directory))
                    && gnu & 0o777 == ours & 0o777
                    && ours & 0o7000 == 0
            };
            fact.change(&["mode"]).is_some_and(loses_bits)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--sparse`** also takes effect if blocks could be shared",
        applies: |it| it.case.has_long("sparse"),
        explains: |_, fact| fact.change(&["holes"]).is_some(),
    },
];

pub(super) fn is_special(what: &What) -> bool {
    matches!(
        what,
        What::Fifo | What::Socket | What::CharDevice(..) | What::BlockDevice(..)
    )
}

pub(super) fn mode(fact: &Option<String>) -> Option<u32> {
    let digits = fact.as_ref()?.strip_prefix("mode ")?;
    u32::from_str_radix(digits, 8).ok()
}
