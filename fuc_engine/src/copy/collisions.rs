//! Two sources that would get one dest: two names that the filesystem of the dests takes for one, or two operands.
//!
//! Such a filesystem ignores case, or normalises or shortens names. Without care, two sources would be mixed
//! in one file, or one of them would be lost.
//!
//! - **In a directory that this run has made**, whatever exists already is the copy of another name, or belongs to
//!   another process. It is replaced only if it cannot be the former; see [`may_be_other_copy`].
//! - **In an older directory**, a file may be replaced, as by cp. Here the [`Writers`](super::writers::Writers) make
//!   sure that no two workers of this process write it at once, and that directories that become one are filled one after
//!   the other.
//! - **An operand** may name a source or a dest that an earlier operand has named; see [`note_source`].

use std::ffi::{CStr, CString};
use std::hash::BuildHasher;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::{Context, Failure};
use super::decide::mode::Origin;
use super::entry::Entry;
use super::facts::{CopyNode, FileId, Symlinks};
use super::operand::UsedDest;
use super::options::Backup;
use super::writers::{SharedDest, Writing, Written};
use crate::error::{Error, Refusal};
use crate::hashing::Seeded;
use crate::node::{Dir, Side};
use crate::paths;
use crate::sync::lock;
use crate::sys::{self, Stat};

/// Returns `true` if a dest that exists may be the copy of another name. Then it is not replaced, and the copy fails.
///
/// This run has made the directory of such a dest. On a native filesystem, another spelling of its name leads to it,
/// too. On any other, it may have names that cannot be foreseen. An operand that is backed up may replace an
/// earlier one.
pub(super) fn may_be_other_copy(entry: &Entry<'_>) -> bool {
    entry.dest_directory_origin() == Origin::Created
        && (!entry.is_operand() || entry.backup_rule().is_none())
        && (!entry.has_native_dest() || has_other_spelling(entry.dest.dir, entry.dest.name))
}

/// Lets no other worker write to a dest whose name a filesystem may take for this one, in a directory that existed.
/// Native filesystems need no such care, because their inode numbers show what is one file.
pub(super) fn reserve_name<'c>(entry: &Entry<'c>) -> Option<Writing<'c>> {
    let ctx = entry.ctx;
    let node = entry.node?;
    if node.state.origin() == Origin::Created || ctx.is_node_native(node, entry.dest.dir) {
        return None;
    }
    let directory = node.dir.slot(Side::Dest).identity()?.file();
    let hash = Seeded::default().hash_one((directory, folded(entry.dest.name)));
    Some(ctx.writers.begin_writing(Written::Name(hash)))
}

/// Returns what is left of a name on every filesystem: ASCII letters without their case, digits, and ideographs, of a part
/// that no filesystem in use cuts off. Letters that a mark follows are left out, because they may be one character.
pub(super) fn folded(name: &CStr) -> String {
    const LONGEST: usize = 64;
    let name = name.to_string_lossy();
    let mut chars = name.chars().peekable();
    let mut kept = String::new();
    while let Some(c) = chars.next() {
        let has_mark = chars
            .peek()
            .is_some_and(|next| ('\u{300}'..='\u{36f}').contains(next));
        match c {
            'a'..='z' | 'A'..='Z' if has_mark => {}
            '0'..='9' | 'a'..='z' | 'A'..='Z' => kept.push(c.to_ascii_lowercase()),
            '\u{4e00}'..='\u{9fff}' => kept.push(c),
            _ => {}
        }
    }
    kept.chars().take(LONGEST).collect()
}

/// Lets no other worker write to a file that this worker has opened.
pub(super) fn begin_writing<'c>(ctx: &'c Context<'_>, dest: &Stat) -> Writing<'c> {
    ctx.writers.begin_writing(Written::File(FileId::of(dest)))
}

/// Lets no other worker write to a file that this worker has created, and removes content that one wrote before.
pub(super) fn begin_writing_new<'c>(
    ctx: &'c Context<'_>,
    dest: BorrowedFd<'_>,
) -> Result<Writing<'c>, Errno> {
    let writing = begin_writing(ctx, &sys::stat_open(dest)?);
    if sys::stat_open(dest)?.st_size > 0 {
        sys::set_size(dest, 0)?;
    }
    Ok(writing)
}

/// Returns `node` if its entries can be copied now. If those of another directory beside it are being copied to the same
/// dest, [`end_filling`] returns it later. So the two are merged one after the other, as by cp.
///
/// The filesystem may show one identity for several dests. Then the node waits without a need, but not for a directory
/// above it.
pub(super) fn begin_filling(ctx: &Context<'_>, node: CopyNode) -> Option<CopyNode> {
    let Some(dest) = shared_dest(ctx, &node) else {
        return Some(node);
    };
    // On a native filesystem, two names for one directory are so rare that nothing is remembered for them.
    let stays = node.state.origin() == Origin::Existing
        && ctx
            .descriptors
            .pin(&node, Side::Dest, ctx)
            .is_ok_and(|dest| !ctx.is_node_native(&node, dest.as_fd()));
    ctx.writers.begin_directory(dest, node, stays)
}

/// Forgets the dests in a directory that nothing is copied to any more.
pub(super) fn forget_dests_in(ctx: &Context<'_>, node: &CopyNode) {
    if shares_dests(ctx, node) {
        ctx.writers.forget_in(node);
    }
}

/// Notes that a directory is complete. Returns one that has waited for it.
pub(super) fn end_filling(ctx: &Context<'_>, node: &CopyNode) -> Option<CopyNode> {
    ctx.writers.end_directory(shared_dest(ctx, node)?, node)
}

/// Returns the dest of a directory if it is in one that existed, so that another directory may lead there.
fn shared_dest(ctx: &Context<'_>, node: &CopyNode) -> Option<SharedDest> {
    let parent = node.place.parent.as_ref()?;
    let dest = node.dir.slot(Side::Dest).identity()?;
    shares_dests(ctx, parent).then(|| SharedDest {
        parent: parent.address(),
        dest: dest.file(),
    })
}

/// Returns `true` if several directories in `parent` may be copied to one dest.
fn shares_dests(ctx: &Context<'_>, parent: &CopyNode) -> bool {
    // A link may lead to the dest of any directory.
    let may_be_link = ctx.policy.options.rules.follow_links_to_directories;
    let is_alone = ctx.settings.is_in_order || !ctx.changes.are_visible();
    !may_be_link && !is_alone && parent.state.origin() == Origin::Existing
}

/// Returns `true` if a name in another case leads to the same file.
pub(super) fn has_other_spelling(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    let itself = paths::id_of(dir, name);
    let is_same = |other: &CString| {
        **other != *name && itself.is_some() && paths::id_of(dir, other) == itself
    };
    other_spellings(name).iter().any(is_same)
}

/// Returns a name with lower and upper case exchanged: in ASCII, and in Unicode.
fn other_spellings(name: &CStr) -> [CString; 2] {
    let ascii = name.to_bytes().iter().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' => byte ^ 0x20,
        _ => *byte,
    });
    let ascii: Vec<u8> = ascii.collect();
    let exchanged = |c: char| -> String {
        match c.is_uppercase() {
            true => c.to_lowercase().collect(),
            false => c.to_uppercase().collect(),
        }
    };
    let unicode = match name.to_str() {
        Ok(name) => name.chars().map(exchanged).collect::<String>().into_bytes(),
        Err(_) => ascii.clone(),
    };
    [ascii, unicode].map(paths::c_string)
}

/// Returns what the operand uses if `source` is copied to its dest. Returns `None` if no other operand may have the same dest.
fn used_by(ctx: &Context<'_>, operand: u32, source: Option<FileId>) -> Option<UsedDest> {
    let may_collide = ctx.target.is_some() && ctx.operands.may_share_dest(operand);
    may_collide.then(|| UsedDest {
        dest: ctx.operands.dest_name(operand).into(),
        source,
    })
}

/// Notes that the dest of an operand was made, or that `source` was copied there.
pub(super) fn note_used(ctx: &Context<'_>, operand: u32, source: Option<FileId>) {
    if let Some(used) = used_by(ctx, operand, source) {
        lock(&ctx.operands.used).entry(used).or_insert(operand);
    }
}

/// Returns the first operand that has used the dest of this one, or has copied `source` there.
fn first_user(entry: &Entry<'_>, source: Option<FileId>) -> Option<u32> {
    let used = used_by(entry.ctx, entry.operand, source)?;
    lock(&entry.ctx.operands.used).get(&used).copied()
}

/// Notes the source of an operand. Returns the warning if an earlier operand was the same source: the operand is skipped then.
pub(super) fn note_source(entry: &Entry<'_>, source: &Stat) -> Result<(), Error> {
    let is_directory = sys::is_directory(source);
    let id = Some(FileId::of(source));
    // With backups, a second copy of a file backs up the first one.
    let is_backed_up = !is_directory && entry.backup_rule().is_some();
    // An operand that has waited for earlier ones is begun again.
    let was_used = first_user(entry, id).is_some_and(|first| first != entry.operand);
    // A directory may be named through a link, too.
    let is_repeated = was_used && (is_directory || was_named_before(entry));
    if is_repeated && !is_backed_up {
        let refusal = match is_directory {
            true => Refusal::DirectoryNamedTwice,
            false => Refusal::FileNamedTwice,
        };
        return Err(Error::refused(refusal, entry.path(Side::Source)));
    }
    if !is_directory {
        note_used(entry.ctx, entry.operand, id);
    }
    Ok(())
}

/// Returns `true` if an earlier operand has made the dest of this one, and that is not renamed to a numbered backup.
pub(super) fn has_made_dest(entry: &Entry<'_>) -> bool {
    entry.is_operand()
        && entry.backup_rule() != Some(Backup::Numbered)
        && first_user(entry, None).is_some()
}

/// Fails if a directory would replace the dest that an earlier operand has made. Without backups, a directory replaces nothing;
/// a numbered backup loses nothing.
pub(super) fn check_directory_dest(entry: &Entry<'_>) -> Result<(), Failure> {
    let is_replaced = entry.backup_rule().is_some() && has_made_dest(entry);
    let kind = || entry.dest_facts(Symlinks::NoFollow).map(|facts| facts.kind);
    match is_replaced && kind() != Some(FileType::Directory) {
        true => Err(entry.refused(Refusal::JustCreated)),
        false => Ok(()),
    }
}

/// Returns `true` if an earlier operand is the same name in the same directory, and not only
/// another name of the same file. As in cp, a link to that directory counts as another directory.
fn was_named_before(entry: &Entry<'_>) -> bool {
    fn name(source: &CStr) -> &[u8] {
        paths::split(source.to_bytes()).1
    }
    let directory =
        |source: &CStr| paths::id_of(entry.ctx.bases.source, &paths::directory_itself_of(source));
    let this = entry.source.name;
    let mut earlier = entry.ctx.operands.sources().take(entry.operand as usize);
    directory(this).is_some_and(|found| {
        earlier.any(|other| name(other) == name(this) && directory(other) == Some(found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_be_one_are_folded_to_one() {
        for (name, other) in [
            (c"Data.TXT", c"dATA.txt"),
            (c"caf\xc3\xa9 1", c"cafe\xcc\x81 1"),
            (c"a. ", c"A"),
            (c"a:b", c"a_b"),
        ] {
            assert_eq!(folded(name), folded(other), "{name:?}");
        }
        assert_ne!(folded(c"a1"), folded(c"a2"));
        assert_ne!(folded(c"\xe4\xb8\x80"), folded(c"\xe4\xba\x8c"));
    }

    #[test]
    fn another_spelling_has_the_other_case() {
        for (name, ascii, unicode) in [
            (c"aB1", c"Ab1", c"Ab1"),
            (c"\xc3\x89x", c"\xc3\x89X", c"\xc3\xa9X"),
            (c"\xffx", c"\xffX", c"\xffX"),
            (c"12", c"12", c"12"),
        ] {
            assert_eq!(
                other_spellings(name),
                [ascii.to_owned(), unicode.to_owned()]
            );
        }
    }
}
