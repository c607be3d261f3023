//! Finds the names in a dest directory that its source does not have.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{BUFFER_BYTES, Mirror};
use crate::copy::collisions::{folded, has_other_spelling, is_node_native};
use crate::copy::facts::{FileId, Symlinks};
use crate::error::{Error, Operation};
use crate::filter::{Above, Candidate, Verdict};
use crate::hashing::HashSet;
use crate::node::Side;
use crate::paths;
use crate::sys::{self, At, Listed, Listing, Storage};
use crate::walk;

/// The time that a program may take to put a file into the place of another one.
///
/// Beside a program that renames a file away and creates it again, each 3 ms, 8 of 2,000 runs deleted its copy after one
/// look, and none of 1,000 after two (tmpfs).
const SETTLING: Duration = Duration::from_millis(2);

/// A name that is found in a dest, but not listed there, with the id of what it leads to.
type Hidden = (FileId, CString);

impl Mirror<'_, '_> {
    /// Returns the extraneous names among the next ones of a listing. Returns `None` at its end, or if it is unclear which
    /// names are copies.
    pub(super) fn look_through(
        &self,
        buffer: &mut Listing,
        listed: BorrowedFd<'_>,
        aliases: &mut Option<HashSet<CString>>,
    ) -> Result<Option<Vec<CString>>, Errno> {
        if !buffer.fill(listed)? || self.ctx.report.must_stop() {
            return Ok(None);
        }
        let is_extraneous = |entry: &Listed<'_>| self.is_extraneous(*entry);
        let mut extraneous: Vec<_> = buffer.entries().filter(is_extraneous).collect();
        if !extraneous.is_empty() {
            // A program that saves a file may rename the old one away before it creates the new one.
            if self.was_just_changed() {
                thread::sleep(SETTLING);
            }
            extraneous.retain(is_extraneous);
        }
        let names = extraneous.into_iter().map(|entry| entry.name.to_owned());
        self.without_copies(names.collect(), aliases)
    }

    /// Returns `true` if the source directory may have been changed within the last second. The clock of a server may differ.
    fn was_just_changed(&self) -> bool {
        let now = SystemTime::UNIX_EPOCH.elapsed();
        let now = now.map_or(0, |since| since.as_secs() as i64);
        let source = sys::stat_open(self.source);
        source.is_ok_and(|source| sys::modified(&source).seconds.abs_diff(now) <= 1)
            || Storage::of(self.source) == Storage::Server
    }

    /// Leaves out the names of copies. `aliases` holds those of this directory once they are known. Returns `None` if they
    /// cannot be found out, which is reported.
    pub(super) fn without_copies(
        &self,
        mut names: Vec<CString>,
        aliases: &mut Option<HashSet<CString>>,
    ) -> Result<Option<Vec<CString>>, Errno> {
        let is_native = is_node_native(self.ctx, self.node, self.dest);
        let may_be_copy = |name: &CString| !is_native || has_other_spelling(self.dest, name);
        if aliases.is_none() && names.iter().any(may_be_copy) {
            let found = match self.has_twin()? {
                true => None,
                false => self.aliases()?,
            };
            if found.is_none() {
                self.refuse();
                return Ok(None);
            }
            *aliases = found;
        }
        names.retain(|name| !aliases.as_ref().is_some_and(|found| found.contains(name)));
        Ok(Some(names))
    }

    /// Returns the names by which the dest lists copies, as far as their sources have other names. Returns `None` if that is
    /// unclear.
    ///
    /// Not even inode numbers show which names are one: some filesystems make a number for each spelling.
    fn aliases(&self) -> Result<Option<HashSet<CString>>, Errno> {
        let (mut hidden, listed) = self.hidden([self.source, self.dest])?;
        if self.deletion.excluded {
            // Excluded entries were not copied.
            hidden.retain(|(_, name)| {
                let entry = Listed::new(name, FileType::Unknown);
                self.is_taken(name, walk::kind_of(self.source, entry, Symlinks::NoFollow))
            });
        }
        let mut aliases = HashSet::default();
        if hidden.is_empty() {
            return Ok(Some(aliases));
        }
        let ids: Vec<_> = listed
            .iter()
            .map(|name| (paths::id_of(self.dest, name), name))
            .collect();
        for (id, name) in hidden {
            let mut alike: Vec<_> = ids
                .iter()
                .filter(|(listed, _)| *listed == Some(id))
                .collect();
            if alike.is_empty() {
                alike = ids.iter().collect();
            }
            if alike.len() > 1 {
                alike.retain(|(_, listed)| folded(listed) == folded(&name));
            }
            let [(_, alias)] = alike[..] else {
                return Ok(None);
            };
            aliases.insert(CString::clone(alias));
        }
        Ok(Some(aliases))
    }

    /// Returns the names in a source directory that are hidden in the dest, and those that the dest lists.
    fn hidden(
        &self,
        [source, dest]: [BorrowedFd<'_>; 2],
    ) -> Result<(Vec<Hidden>, HashSet<CString>), Errno> {
        let listed = self.names(dest)?;
        let hidden = |name: CString| match listed.contains(&name) {
            true => None,
            false => Some((paths::id_of(dest, &name)?, name)),
        };
        let mut hidden: Vec<_> = self.names(source)?.into_iter().filter_map(hidden).collect();
        if hidden.is_empty() {
            return Ok((hidden, listed));
        }
        // Another worker may have copied some since.
        let listed = self.names(dest)?;
        hidden.retain(|(_, name)| !listed.contains(name));
        Ok((hidden, listed))
    }

    /// Returns `true` if another source directory beside this one may have the same dest. One of two such names is not
    /// listed in the dest.
    fn has_twin(&self) -> Result<bool, Errno> {
        let Some(parent) = &self.node.place.parent else {
            return Ok(false);
        };
        let pin = |side| self.ctx.descriptors.pin(parent, side, self.ctx);
        let (source, dest) = (pin(Side::Source)?, pin(Side::Dest)?);
        let itself = CString::from(&*self.node.place.name);
        let (mut others, _) = self.hidden([source.as_fd(), dest.as_fd()])?;
        if others.iter().any(|(_, name)| *name == itself) {
            let names = self.names(source.as_fd())?.into_iter();
            let found = names.filter_map(|name| Some((paths::id_of(dest.as_fd(), &name)?, name)));
            others = found.collect();
        }
        let (id, kept) = (paths::id_of(dest.as_fd(), &itself), folded(&itself));
        let is_twin = |(other, name): &Hidden| {
            *name != itself && (Some(*other) == id || !kept.is_empty() && folded(name) == kept)
        };
        Ok(others.iter().any(is_twin))
    }

    fn names(&self, dir: BorrowedFd<'_>) -> Result<HashSet<CString>, Errno> {
        let listed = self.list(dir)?;
        let mut buffer = Listing::with_capacity(BUFFER_BYTES);
        let mut names = HashSet::default();
        while buffer.fill(listed.as_fd())? {
            names.extend(buffer.entries().map(|entry| entry.name.to_owned()));
        }
        Ok(names)
    }

    /// Lists the first names of the source.
    fn begin_listing(&self) -> Result<bool, Errno> {
        let listed = self.list(self.source)?;
        Listing::with_capacity(BUFFER_BYTES).fill(listed.as_fd())
    }

    fn is_extraneous(&self, entry: Listed<'_>) -> bool {
        // If another process has removed the source directory, all names are missing for that reason. Then it cannot be
        // listed either. Some FUSE servers show no links for any directory.
        let has_links = || sys::stat_open(self.source).is_ok_and(|source| source.st_nlink > 0);
        let is_there = || has_links() || self.begin_listing().is_ok();
        let is_copied = match sys::stat(self.source, entry.name, Symlinks::NoFollow) {
            Ok(stat) => {
                let source = Listed::new(entry.name, sys::file_type(&stat));
                let symlinks = self.ctx.policy.symlinks_of_entries;
                self.is_taken(entry.name, walk::kind_of(self.source, source, symlinks))
            }
            Err(Errno::NOENT) if is_there() => false,
            Err(errno) => {
                let path = self.path(Side::Source, entry.name);
                let error = Error::failed(Operation::Stat, path, errno);
                self.ctx.fail(self.node.place.operand, error);
                // The directory may be missing in that of its parent, too.
                if let Some(parent) = &self.node.place.parent {
                    parent.state.note_incomplete();
                }
                return false;
            }
        };
        let is_taken = || {
            let kind = walk::kind_of(self.dest, entry, Symlinks::NoFollow);
            self.is_taken(entry.name, kind)
        };
        !is_copied && (self.deletion.excluded || is_taken())
    }

    /// Returns `true` if the filter takes an entry of the dest.
    pub(super) fn is_taken(&self, name: &CStr, kind: FileType) -> bool {
        let Some(filter) = self.ctx.settings.filter_of(self.node) else {
            return true;
        };
        let at = At {
            dir: self.dest,
            name,
            symlinks: Symlinks::NoFollow,
        };
        let open = || sys::open_path(at);
        let verdict = filter.verdict(&Candidate {
            name,
            kind,
            above: Above {
                operand: &self.ctx.operands.dest_path(self.node.place.operand),
                directory: &self.node.place,
            },
            open: &|| self.ctx.descriptors.making_room(open),
        });
        verdict == Verdict::Take
    }
}
