//! The deliberate differences from GNU. Each row names the line of the README that documents it.

use crate::{
    case::{AclKind, Called, Case, Entry, Owner, PRESUME_TERMINAL, PWD, Pair, User, What, Word},
    difference::{Difference, Lines},
    run::{Observed, Status},
};

/// A deliberate difference.
pub(crate) struct Deviation {
    pair: Pair,
    /// The README, relative to the root of the repository.
    pub(crate) readme: &'static str,
    /// A text in one line of the README.
    pub(crate) line: &'static str,
    /// Returns `true` if this deviation explains the whole difference.
    explains: fn(&Comparison<'_>) -> bool,
}

/// A case, what both commands did, and how that differs.
pub(crate) struct Comparison<'a> {
    pub(crate) case: &'a Case,
    pub(crate) gnu: &'a Observed,
    pub(crate) ours: &'a Observed,
    pub(crate) difference: &'a Difference,
}

impl Comparison<'_> {
    fn gnu_says(&self, text: &str) -> bool {
        says(self.gnu, text)
    }

    fn ours_says(&self, text: &str) -> bool {
        says(self.ours, text)
    }

    /// Returns `true` if nothing differs but messages, times and modes. GNU may announce more copies, which then
    /// fail.
    fn is_of_messages_times_and_modes(&self) -> bool {
        let kinds = self.difference.kinds();
        let is_meant = |kind: &String| {
            kind.starts_with("stderr ")
                || kind == "stdout - N -> N"
                || ["tree ~ mtime", "tree ~ mode", "tree ~ mode,mtime"].contains(&&**kind)
        };
        kinds.iter().all(is_meant)
    }

    /// Returns `true` if both commands print the same, or GNU's more.
    fn ours_says_no_more(&self) -> bool {
        self.difference.stderr.only_ours.is_empty()
    }

    fn one_says(&self, text: &str) -> bool {
        self.gnu_says(text) || self.ours_says(text)
    }

    /// Returns `true` if the command line has this long option, perhaps shortened, or this short one.
    fn has_option(&self, short: char, long: &str) -> bool {
        let is_bundle = |text: &[u8]| {
            text.starts_with(b"-") && !text.starts_with(b"--") && text.contains(&(short as u8))
        };
        let has_short = |word: &Word| match word {
            Word::Text(text) => is_bundle(text.as_bytes()),
            Word::Bundle(flags) => flags.contains(&short),
            Word::ShortWith(flag, ..) => *flag == short,
            Word::Long { .. } | Word::LongWith { .. } => false,
            // A name can look like options.
            Word::Operand(operand) => is_bundle(&operand.render(&self.case.names)),
        };
        self.case.has_long(long) || self.case.words.iter().any(has_short)
    }

    fn has_backup(&self) -> bool {
        self.has_option('b', "backup") || self.has_option('S', "suffix")
    }

    /// Returns `true` if a dest is a directory above an operand, as far as the paths show that.
    fn copies_upward(&self) -> bool {
        let arguments = self.case.symbolic_arguments();
        let is_above = |dest: &Vec<u8>| {
            let end = dest.iter().rposition(|&byte| byte != b'/');
            let dest = &dest[..end.map_or(0, |end| end + 1)];
            let is_below = |argument: &Vec<u8>| {
                argument
                    .strip_prefix(dest)
                    .is_some_and(|rest| rest.starts_with(b"/") && rest.len() > 1)
            };
            dest == b"." || dest == PWD.as_bytes() || arguments.iter().any(is_below)
        };
        self.case.dests().iter().any(is_above)
    }

    fn has_parents(&self) -> bool {
        self.case.has_long("parents") || self.case.has_long("path")
    }

    fn has_entry(&self, is_meant: impl Fn(&Entry) -> bool) -> bool {
        self.case.entries.iter().any(is_meant)
    }

    fn has_acl(&self, kind: AclKind) -> bool {
        self.has_entry(|entry| {
            entry
                .attributes
                .acl
                .as_ref()
                .is_some_and(|acl| acl.kind == kind)
        })
    }

    /// Returns `true` if only trees differ, and only in facts that begin with one of these words.
    fn differs_only_in(&self, facts: &[&str]) -> bool {
        let is_meant = |kind: &str| {
            let changed = kind.strip_prefix("tree ~ ");
            changed.is_some_and(|labels| labels.split(',').all(|label| facts.contains(&label)))
        };
        self.difference.kinds().iter().all(|kind| is_meant(kind))
    }

    /// Returns `true` if trees differ, and each difference is described by a line of this kind.
    fn tree_lines_all(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let lines = &self.difference.tree;
        !lines.is_empty() && lines.iter().all(|line| is_meant(line))
    }

    /// Returns `true` if GNU removes something that ours keeps, and then makes it again. So the directory differs in
    /// its time.
    fn gnu_links_again(&self) -> bool {
        let Difference {
            status,
            stdout,
            stderr,
            tree,
        } = self.difference;
        let is_of_time =
            |line: &String| line.contains(": mtime fresh != mtime 1") && !line.contains(';');
        status.is_none()
            && !stdout.order
            && stdout.only_ours.is_empty()
            && stdout
                .only_gnu
                .iter()
                .all(|line| line.starts_with("removed "))
            && *stderr == Lines::default()
            && tree.iter().all(is_of_time)
    }

    /// Returns `true` if ours copies more than GNU, and nothing else differs. Ours may also report files that it
    /// cannot read or clone, because GNU does not try to copy them.
    fn ours_only_copies_more(&self) -> bool {
        let Difference {
            status,
            stdout,
            stderr,
            tree,
        } = self.difference;
        let is_failed_try = |line: &String| {
            let tries = [
                "cannot open",
                "cannot access",
                "cannot stat",
                "failed to clone",
            ];
            tries.iter().any(|failed| line.contains(failed))
        };
        // A directory can replace another dest, which is backed up.
        let is_copy = |line: &String| line.starts_with("+ ") || line.contains(" != Directory");
        // GNU looks for what it is copying.
        let is_not_found = |line: &String| {
            let is_look = line.contains("cannot access") || line.contains("cannot stat");
            is_look && line.ends_with("No such file or directory")
        };
        let is_status_expected = match status {
            None => true,
            Some(statuses) => {
                *statuses == (Status::Exit(0), Status::Exit(1)) && !stderr.only_ours.is_empty()
            }
        };
        let differs_in_order = stdout.order || stderr.order;
        let copies_more = !tree.is_empty() || !stderr.only_ours.is_empty();
        copies_more
            && !differs_in_order
            && is_status_expected
            && stdout.only_gnu.is_empty()
            && stderr.only_gnu.iter().all(is_not_found)
            && stderr.only_ours.iter().all(is_failed_try)
            && tree.iter().all(is_copy)
    }

    /// Returns `true` if GNU prints its help or its version, and nothing else differs.
    fn is_own_text(&self) -> bool {
        let is_text = self.gnu.stdout.starts_with(b"Usage: ") || self.gnu_says("(GNU coreutils)");
        is_text && self.difference.is_of_stdout()
    }
}

fn says(observed: &Observed, text: &str) -> bool {
    let stdout = String::from_utf8_lossy(&observed.stdout);
    let stderr = String::from_utf8_lossy(&observed.stderr);
    stdout.contains(text) || stderr.contains(text)
}

/// Returns the mode in GNU's tree and that in ours from a line about an entry whose mode alone differs.
fn modes(line: &str) -> Option<(u32, u32)> {
    let (_, modes) = line.split_once(": mode ")?;
    let (gnu, ours) = modes.split_once(" != mode ")?;
    let mode = |digits| u32::from_str_radix(digits, 8).ok();
    Some((mode(gnu)?, mode(ours)?))
}

/// Returns the deviation that explains the difference.
pub(crate) fn explanation(comparison: &Comparison<'_>) -> Option<&'static Deviation> {
    let explains = |it: &Comparison<'_>| {
        let mut rows = DEVIATIONS.iter();
        rows.find(|row| row.pair == it.case.pair && (row.explains)(it))
    };
    explains(comparison).or_else(|| {
        // Lines of --debug always have the same explanation.
        let rest = comparison.difference.without_stdout_about(OFFLOAD)?;
        explains(&Comparison {
            difference: &rest,
            ..*comparison
        })
    })
}

/// The beginning of a line of `--debug`.
const OFFLOAD: &str = "copy offload: ";

static DEVIATIONS: &[Deviation] = &[
    Deviation {
        pair: Pair::Rm,
        readme: "rmz/README.md",
        line: "`--help`, `--version` | as rm, with our own text",
        explains: |it| it.is_own_text(),
    },
    Deviation {
        pair: Pair::Rm,
        readme: "rmz/README.md",
        line: "Except under the name `rm`, rmz prompts for write-protected files only with `-i` or `-I`.",
        explains: |it| {
            it.case.called == Called::Own
                && it.case.has_long(PRESUME_TERMINAL)
                // GNU looks at each name before it may ask, and reports an error of that.
                && (it.gnu_says("write-protected")
                    || it.difference.stderr.are_all_about("cannot remove"))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "`--help`, `--version` | as cp, with our own text",
        explains: |it| it.is_own_text(),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "If a directory is copied into itself, the refused part is left out, and the",
        explains: |it| {
            it.one_says("cannot copy a directory, ")
                || it.case.has_argument(".")
                    && it.difference.is_of_stderr()
                    && it
                        .difference
                        .stderr
                        .are_all_about("preserving permissions for")
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "`cpz a a/b dest` copies `a/b` twice, as `dest/a/b` and as `dest/b`. cp leaves",
        explains: |it| it.gnu_says("will not create hard link"),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Times of directories**, like their other attributes, are read and set when their copies",
        explains: |it| {
            let goes_in =
                it.case.has_argument_ending_in("/.") || it.case.has_argument_ending_in("..");
            let links = it.has_option('a', "archive")
                || it.has_option('d', "")
                || it.case.has_long("preserve");
            (goes_in || it.copies_upward())
                && it.differs_only_in(&["mtime", "mode", "owner"])
                && it.difference.tree.len() <= 2
                || links && it.has_option('L', "dereference") && it.gnu_links_again()
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "If the destination has a default ACL, new directories follow that ACL. cp also",
        explains: |it| {
            it.has_acl(AclKind::Default) && it.differs_only_in(&["mode", "xattrs", "nothing"])
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "An empty file is created without opening its source. A file that only an ACL",
        explains: |it| {
            it.case.user == User::Nobody
                && it.has_acl(AclKind::Access)
                && it.gnu_says("Permission denied")
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--debug`** describes what cpz did. It does not try to share blocks before it copies data,",
        explains: |it| it.difference.is_of_stdout() && it.difference.stdout.are_all_about(OFFLOAD),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--keep-directory-symlink`** is honoured as the manual of cp says.",
        explains: |it| {
            it.case.has_long("keep-directory-symlink")
                && (it.gnu_says("cannot overwrite non-directory")
                    || it.difference.is_of_stderr()
                        && it.ours_says("cannot overwrite non-directory"))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve`**: an ACL that the dest has or inherits, and that the source lacks, is removed.",
        explains: |it| {
            (it.has_acl(AclKind::Access) || it.has_acl(AclKind::Default))
                && it.differs_only_in(&["mode", "xattrs", "nothing"])
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve`**: extended attributes are set even if the umask, or the mode of a dest",
        explains: |it| {
            let forbids_writing = |entry: &Entry| {
                let mode = entry.attributes.mode;
                matches!(entry.what, What::Dir) && mode.is_some_and(|mode| mode & 0o200 == 0)
            };
            let is_lost = |line: &str| line.contains(": nothing != xattrs user.");
            let is_error = |line: &String| line.contains("setting attribute");
            let stderr = &it.difference.stderr;
            it.case.user == User::Nobody
                && (it.case.umask & 0o200 != 0 || it.has_entry(forbids_writing))
                && it.tree_lines_all(is_lost)
                && stderr.only_ours.is_empty()
                && !stderr.order
                && stderr.only_gnu.iter().all(is_error)
                && (it.difference.status.is_none() || !stderr.only_gnu.is_empty())
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "If an extended attribute cannot be read or set, cpz names the file",
        explains: |it| {
            let Lines {
                only_gnu,
                only_ours,
                ..
            } = &it.difference.stderr;
            it.difference.status.is_none()
                && !only_gnu.is_empty()
                && only_gnu.iter().all(|line| line.contains(" attribute '"))
                && only_ours
                    .iter()
                    .all(|line| line.contains("setting attributes for "))
                && (it.difference.tree.is_empty()
                    || it.tree_lines_all(|line| modes(line).is_some()))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**The sticky bit** of a new directory marks that its mode is temporary",
        explains: |it| {
            let sets_mode = it.case.has_long("no-preserve") || it.case.has_long("preserve");
            let is_taken_for_unfinished = |gnu: u32, ours: u32| {
                gnu & 0o1722 == 0o1700 && ours & 0o1000 == 0 && (ours & 0o700 != 0o700 || sets_mode)
            };
            it.differs_only_in(&["mode"])
                && it.tree_lines_all(|line| {
                    modes(line).is_some_and(|(gnu, ours)| is_taken_for_unfinished(gnu, ours))
                })
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**An empty dest** (`cpz a ''`) does not exist, as POSIX says, so the copy fails.",
        explains: |it| {
            it.case.dests().iter().any(Vec::is_empty)
                && (it.ours_says("'': No such file or directory")
                    || it.ours_says("cannot create hard link '' ")
                    || it.ours_says("cannot create symbolic link '' "))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-s` with preserved links** (`ln -s f d/l; cpz -rsL --preserve=links",
        explains: |it| {
            let is_hard_link =
                |line: &str| line.contains(" != Symlink") || line.ends_with(" != nothing");
            let kinds = it.difference.kinds();
            it.has_option('s', "symbolic-link")
                && kinds.iter().all(|kind| kind.starts_with("tree ~ "))
                && it.tree_lines_all(is_hard_link)
                && it
                    .difference
                    .tree
                    .iter()
                    .any(|line| line.contains("; = ") || line.contains(": = "))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-s` of a link or a special file** (`cpz -sP link dir`) does not remove the dest",
        explains: |it| {
            it.has_option('s', "symbolic-link")
                && it.one_says("can make relative symbolic links only in current directory")
                && it.difference.status.is_none()
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Errors**: a dest that is incomplete after an error gets a time of modification before",
        explains: |it| {
            let is_old = |line: &String| line.contains("mtime fresh != mtime 0.");
            it.differs_only_in(&["mtime"]) && it.difference.tree.iter().all(is_old)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-u`** compares nanoseconds, looks at each file once, and opens no unchanged file.",
        explains: |it| {
            let stderr = &it.difference.stderr;
            let is_failed_link = stderr.are_all_about("cannot create hard link")
                && (it.difference.is_of_stderr()
                    || stderr.only_ours.is_empty() && it.difference.tree.is_empty());
            it.has_option('u', "update")
                && (it.differs_only_in(&["=", "nothing", "mtime"])
                    || is_failed_link
                    || it.gnu_links_again())
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--sparse`** also takes effect if blocks could be shared",
        explains: |it| it.case.has_long("sparse") && it.differs_only_in(&["has", "nothing"]),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** sets the modes of the parent directories when everything is copied.",
        explains: |it| {
            let Lines {
                only_gnu,
                only_ours,
                ..
            } = &it.difference.stderr;
            // Ours gets to the source, and fails there.
            let fails_later = only_ours.len() <= only_gnu.len()
                && only_gnu
                    .iter()
                    .all(|line| line.contains("Permission denied"))
                && it.tree_lines_all(|line| line.starts_with("+ "));
            it.has_parents()
                && (it.differs_only_in(&["mode", "mtime", "owner", "xattrs", "nothing"])
                    || it.gnu_says("Permission denied") && it.ours_says_no_more()
                    || fails_later)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** treats each operand by itself. In cp 9.10, an operand can",
        explains: |it| {
            // cp takes `x/a` and `./x/a` for different paths, but not always.
            let is_just_created = it.difference.stderr.only_ours.is_empty()
                && it
                    .difference
                    .stderr
                    .are_all_about("will not overwrite just-created")
                && it.tree_lines_all(|line| line.starts_with("+ "));
            // cp takes the dest of a later operand for a new one, and does not look through it.
            let is_not_seen = it.difference.stderr.only_ours.is_empty()
                && it
                    .difference
                    .stderr
                    .are_all_about("not writing through dangling symlink");
            it.has_parents()
                && (it.gnu_says("specified more than once")
                    || is_just_created
                    || is_not_seen
                    || it.gnu_says("File exists")
                    || it.gnu_says("cannot create directory")
                    || it.is_of_messages_times_and_modes())
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** refuses a symbolic link in place of a parent directory, unless it belongs to",
        explains: |it| {
            let is_of_other_user = |entry: &Entry| {
                matches!(entry.what, What::Symlink(_))
                    && matches!(entry.attributes.owner, Owner::Ids(user, _) if user != 0)
            };
            let refusals = &it.difference.stderr.only_ours;
            it.has_parents()
                && it.has_entry(is_of_other_user)
                && !refusals.is_empty()
                && refusals
                    .iter()
                    .all(|line| line.contains("exists but is not a directory"))
                && it
                    .difference
                    .tree
                    .iter()
                    .all(|line| line.starts_with("- ") || line.contains("mtime"))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "`cpz a . dest` copies `a` twice, to the same place. cp copies it once, and warns.",
        explains: |it| {
            let stderr = &it.difference.stderr;
            let is_warning = |line: &String| line.contains("warning: source directory");
            // The same error is reported as often as the copy is tried.
            let is_refused = |line: &String| line.ends_with("Permission denied");
            let stdout = &it.difference.stdout;
            // `-p` may remove an ACL.
            let is_repeated = |line: &str| line.contains(": mtime ") || line.contains(": xattrs ");
            it.difference.status.is_none()
                && !(stdout.order || stderr.order)
                && stdout.only_gnu.is_empty()
                && stdout.only_ours.iter().all(|line| line.contains(" -> "))
                && stderr.only_gnu.iter().all(is_warning)
                && stderr
                    .only_ours
                    .iter()
                    .all(|line| is_warning(line) || !stderr.only_gnu.is_empty() && is_refused(line))
                && (it.difference.tree.is_empty()
                    || !stderr.only_gnu.is_empty() && it.tree_lines_all(is_repeated))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`POSIXLY_CORRECT`**: cpz writes through a dangling dest symlink only if it is the dest of",
        explains: |it| {
            let is_set = it
                .case
                .variables
                .iter()
                .any(|(name, _)| *name == "POSIXLY_CORRECT");
            is_set && it.one_says("dangling symlink")
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Paths that the run changes**: if the run replaces or backs up a link that leads to its own source",
        explains: |it| {
            let only_ours = &it.difference.stderr.only_ours;
            let follows = it.case.has_argument_ending_in("/")
                || it.has_option('H', "")
                || it.has_option('L', "dereference")
                || it.has_option('l', "link");
            let copies_more = it.has_backup()
                && follows
                && it.has_entry(|entry| matches!(entry.what, What::Symlink(_)))
                && it.ours_only_copies_more();
            copies_more
                || it.gnu_says("preserving permissions for") && it.ours_says_no_more()
                || it.has_backup() && it.gnu_says("cannot un-backup")
                || it.has_backup()
                    && it.difference.is_of_stderr()
                    && only_ours.iter().any(|line| line.contains("cannot stat"))
                || it.gnu_says("No such file or directory")
                    && it.gnu_says("cannot create hard link")
                    && it.has_entry(|entry| matches!(entry.what, What::Symlink(_)))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Two reasons**: if a copy fails for two reasons, cpz can report the other one",
        explains: |it| {
            let is_about_link = |kind: &String| kind.contains("cannot create symbolic link N");
            let kinds = it.difference.kinds();
            let is_other_link = it.gnu_says("cannot create symbolic link")
                && (it.has_option('f', "force") || it.case.has_argument_ending_in("/"))
                && kinds
                    .iter()
                    .all(|kind| is_about_link(kind) || kind == "tree ~ mtime");
            // cp tries to remove a directory, or a link to itself, that is named with a slash.
            let Lines {
                only_gnu,
                only_ours,
                ..
            } = &it.difference.stderr;
            let is_failed_removal =
                |line: &String| line.contains("cannot remove ") && line.contains("/': ");
            let is_first_reason = |line: &String| {
                line.contains("cannot create regular file ")
                    || line.ends_with("Too many levels of symbolic links")
            };
            let is_removal = it.has_option('f', "force")
                && it.difference.is_of_stderr()
                && !only_gnu.is_empty()
                && only_gnu.iter().all(is_failed_removal)
                && only_ours.iter().all(is_first_reason);
            is_other_link || is_removal
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-S x/`** is ignored, as every suffix with a slash.",
        explains: |it| it.gnu_says("cannot backup") && it.gnu_says("Not a directory"),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--backup` with `DIR/.`** or `DIR/..` (`cpz -rb a/. file`) backs up the file",
        explains: |it| {
            let is_backup = |kind: &String| {
                kind.starts_with("tree + ")
                    || kind == "tree ~ nothing"
                    || kind.contains("removed N")
            };
            // cp removes nothing if the directory is unreadable, and fails.
            let errors = &it.difference.stderr.only_gnu;
            let is_kept = !errors.is_empty()
                && errors.iter().all(|line| {
                    line.contains("cannot create directory ") && line.ends_with("File exists")
                });
            it.has_backup()
                && ["/.", "/./", "/..", "/../"]
                    .iter()
                    .any(|end| it.case.has_argument_ending_in(end))
                && (is_kept || it.difference.kinds().iter().all(is_backup))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "If the dest is a directory, it does not open the FIFO.",
        explains: |it| {
            let waits = it.gnu.status == Status::Hung || it.gnu_says("No such device or address");
            waits && it.ours_says("cannot overwrite directory ")
                // cp has removed the dest of a source that it cannot open.
                || it.has_entry(|entry| matches!(entry.what, What::Fifo | What::Socket))
                    && it.gnu_says("cannot open")
                    && it.difference.kinds().iter().all(|kind| {
                        kind.starts_with("tree + ") || kind == "tree ~ mtime"
                    })
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Devices, FIFOs and sockets** get no set-id and sticky bits if their owner is preserved",
        explains: |it| {
            let is_special = |entry: &Entry| {
                let bits = entry.attributes.mode.unwrap_or_default() & 0o7000;
                let is_special = matches!(
                    entry.what,
                    What::Fifo | What::Socket | What::CharDevice(..) | What::BlockDevice(..)
                );
                is_special && bits != 0
            };
            it.differs_only_in(&["mode"]) && it.has_entry(is_special)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Links in another dest** (`ln -s sub d/x; cpz -r sub x d`)",
        explains: |it| {
            let lines = &it.difference.stderr.only_ours;
            it.difference.is_of_stderr() && lines.iter().any(|line| line.contains("dangling"))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**The same file** by two paths (`ln -s . c; cpz -P c/b .`) is always an error",
        explains: |it| {
            let is_refusal = |line: &String| {
                line.contains("are the same file") || line.contains("specified more than once")
            };
            let refusals = &it.difference.stderr.only_ours;
            let kinds = it.difference.kinds();
            !refusals.is_empty()
                && refusals.iter().all(is_refusal)
                // cp has made a backup, and has taken it back.
                && kinds.iter().all(|kind| !kind.starts_with("tree") || kind == "tree ~ mtime")
                && it.difference.stdout == Lines::default()
        },
    },
];

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn each_deviation_is_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for Deviation { readme, line, .. } in DEVIATIONS {
            let text = fs::read_to_string(root.join(readme)).unwrap();
            assert!(
                text.lines().any(|l| l.contains(line)),
                "{readme} has no line with: {line}"
            );
        }
    }
}
