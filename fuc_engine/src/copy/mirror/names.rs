//! Finds the names in a dest directory that its source does not have.
//!
//! Names are compared with the listing of the source, byte by byte. A source that ignores case, or has names that it does
//! not list, would find other names, too.
//!
//! A dest may store a name in another form than it was given: in lower case, or decomposed. It finds the file by both, but
//! lists only the form that it has stored. So on filesystems that are not native, a file stays if a name of the source leads to
//! it that the dest does not list.

use std::ffi::{CStr, CString};
use std::hash::BuildHasher;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{BUFFER_BYTES, Mirror, directory_hash};
use crate::copy::collisions::is_node_native;
use crate::copy::facts::{FileId, FileTime, Symlinks};
use crate::copy::options::{LinkKind, Replace};
use crate::error::{Error, Operation};
use crate::filter::{Above, Candidate, Verdict};
use crate::hashing::{HashMap, HashSet, Seeded};
use crate::node::Side;
use crate::sync::lock;
use crate::sys::{self, At, Entries, Listed, Listing, Stat, Storage};
use crate::walk;

/// The time that a program may take to put a file into the place of another one.
///
/// Beside a program that renames a file away and creates it again, each 3 ms, 8 of 2,000 runs deleted its copy after one
/// look, and none of 1,000 after two (tmpfs).
const SETTLING: Duration = Duration::from_millis(2);

/// A name to delete.
pub(super) struct Extraneous {
    pub(super) name: CString,
    pub(super) kind: FileType,
}

/// The names in a source directory, from the first time that the dest has any: 8 bytes for each.
#[derive(Default)]
pub(super) struct SourceNames {
    /// Hashes of names, sorted. The lowest four bits are the type of the copy.
    hashes: Vec<u64>,
    looks: u8,
}

impl SourceNames {
    const KIND: u64 = 0xf;

    fn hash(name: &CStr, kind: FileType) -> u64 {
        let kind = u64::from(kind.as_raw_mode() >> 12) & Self::KIND;
        Seeded::default().hash_one(name) & !Self::KIND | kind
    }

    /// Returns the hashes of `name` with all its types.
    fn find(&self, name: &CStr) -> &[u64] {
        let hash = Self::hash(name, FileType::Unknown) | Self::KIND;
        let start = self.hashes.partition_point(|&it| it | Self::KIND < hash);
        let rest = &self.hashes[start..];
        &rest[..rest.partition_point(|&it| it | Self::KIND == hash)]
    }
}

/// The names of a source that its dest finds but does not list, by the files to which they lead.
pub(super) type OtherForms = HashMap<Found, CString>;

/// A file in a dest: its number, its size, and the time of its last change. Some filesystems give several files one number.
type Found = (FileId, i64, FileTime);

fn found(dest: &Stat) -> Found {
    (FileId::of(dest), dest.st_size, sys::changed(dest))
}

impl Mirror<'_, '_> {
    /// Returns the extraneous names among those that the dest lists. Notes the directories that stay.
    pub(super) fn extraneous(
        &self,
        listed: Entries<'_>,
        names: &mut SourceNames,
        other_forms: &mut Option<OtherForms>,
    ) -> Result<Vec<Extraneous>, Error> {
        let mut extraneous = Vec::new();
        for entry in listed {
            let kind = walk::kind_of(self.dest, entry, Symlinks::NoFollow);
            let entry = Listed::new(entry.name, kind);
            let other_form;
            let source_name = match self.is_in_source(entry, names)? {
                true => Some(entry.name),
                false => {
                    other_form = self.source_name(entry.name, other_forms)?;
                    other_form.as_deref()
                }
            };
            let is_deleted = match source_name {
                Some(name) => self.deletion.excluded && !self.is_taken(Listed::new(name, kind)),
                None => self.deletion.excluded || self.is_taken(entry),
            };
            if let Some(name) = source_name.filter(|_| kind == FileType::Directory) {
                lock(&self.ctx.deletions.listed).insert(directory_hash(self.node, name));
            }
            if is_deleted {
                let name = entry.name.to_owned();
                extraneous.push(Extraneous { name, kind });
            }
        }
        Ok(extraneous)
    }

    /// Returns the name of the source that the dest has stored as `stored`, a name that the source does not list.
    fn source_name(
        &self,
        stored: &CStr,
        other_forms: &mut Option<OtherForms>,
    ) -> Result<Option<CString>, Error> {
        if is_node_native(self.ctx, self.node, self.dest) {
            return Ok(None);
        }
        let known = match other_forms {
            Some(known) => known,
            None => other_forms.insert(self.find_other_forms()?),
        };
        let dest = sys::stat(self.dest, stored, Symlinks::NoFollow);
        // The dest may store two names of the source as one. Only one of them is copied to it.
        Ok(dest.ok().and_then(|dest| known.remove(&found(&dest))))
    }

    /// Finds the names of the source that the dest finds, with the type of their copies, but does not list.
    #[cold]
    fn find_other_forms(&self) -> Result<OtherForms, Error> {
        let mut buffer = Listing::with_capacity(BUFFER_BYTES);
        let listed = self.begin_listing(Side::Dest)?;
        let mut stored = HashSet::default();
        let hash = |name: &CStr| SourceNames::hash(name, FileType::Unknown);
        while buffer
            .fill(listed.as_fd())
            .map_err(|errno| self.unlisted(Side::Dest, errno))?
        {
            stored.extend(buffer.entries().map(|entry| hash(entry.name)));
        }
        let listed = self.begin_listing(Side::Source)?;
        let mut other_forms = OtherForms::default();
        while buffer
            .fill(listed.as_fd())
            .map_err(|errno| self.unlisted(Side::Source, errno))?
        {
            for entry in buffer.entries() {
                if stored.contains(&hash(entry.name)) {
                    continue;
                }
                let kind = walk::kind_of(self.source, entry, Symlinks::NoFollow);
                match sys::stat(self.dest, entry.name, Symlinks::NoFollow) {
                    Ok(dest) if sys::file_type(&dest) == self.copied_as(kind) => {
                        other_forms.insert(found(&dest), entry.name.to_owned());
                    }
                    _ => {}
                }
            }
        }
        Ok(other_forms)
    }

    /// Returns `true` if the source lists a name of the dest, and its copy is of the same type. Looks a second time before it
    /// returns `false`: a program that saves a file may rename the old one away before it creates the new one.
    fn is_in_source(&self, dest: Listed<'_>, names: &mut SourceNames) -> Result<bool, Error> {
        if names.looks == 0 {
            self.look(names)?;
        }
        let found = names.find(dest.name);
        if found.contains(&SourceNames::hash(dest.name, dest.kind())) {
            return Ok(true);
        }
        if !found.is_empty() {
            return self.is_of_same_type(dest);
        }
        if names.looks > 1 {
            return Ok(false);
        }
        if self.was_just_changed() {
            thread::sleep(SETTLING);
        }
        // If names cannot be looked at, the listing may lack some, too.
        match sys::stat(self.source, dest.name, Symlinks::NoFollow) {
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(self.unseen(dest.name, errno)),
        }
        self.look(names)?;
        self.is_in_source(dest, names)
    }

    /// Adds the names that the source lists now.
    fn look(&self, names: &mut SourceNames) -> Result<(), Error> {
        let listed = self.begin_listing(Side::Source)?;
        let mut buffer = Listing::with_capacity(BUFFER_BYTES);
        let mut added = Vec::new();
        while buffer
            .fill(listed.as_fd())
            .map_err(|errno| self.unlisted(Side::Source, errno))?
        {
            let hash =
                |entry: Listed<'_>| SourceNames::hash(entry.name, self.copied_as(entry.kind()));
            let is_new = |hash: &u64| names.hashes.binary_search(hash).is_err();
            added.extend(buffer.entries().map(hash).filter(is_new));
        }
        names.hashes.append(&mut added);
        names.hashes.sort_unstable();
        names.looks += 1;
        Ok(())
    }

    /// Returns the type of the copy of a source.
    fn copied_as(&self, source: FileType) -> FileType {
        let policy = &self.ctx.policy;
        match (source, policy.options.as_links) {
            (FileType::Directory | FileType::Unknown, _) => source,
            (_, Some(LinkKind::Symbolic)) => FileType::Symlink,
            (FileType::RegularFile | FileType::Symlink, _) | (_, Some(LinkKind::Hard)) => source,
            _ if policy.reads_special_content() => FileType::RegularFile,
            _ => source,
        }
    }

    /// Returns `true` if a dest whose source is listed with another type may stay. The listings may be wrong.
    fn is_of_same_type(&self, dest: Listed<'_>) -> Result<bool, Error> {
        if self.ctx.policy.keeps_existing() {
            return Ok(true);
        }
        let kind = |dir| {
            let stat = sys::stat(dir, dest.name, Symlinks::NoFollow);
            stat.map(|stat| sys::file_type(&stat))
        };
        match (kind(self.source), kind(self.dest)) {
            // The dest keeps its name until the new file is complete.
            (Ok(source), Ok(dest)) if self.is_replaced_later([source, dest]) => Ok(true),
            (Ok(source), Ok(dest)) => Ok(self.copied_as(source) == dest),
            (Err(errno), _) if errno != Errno::NOENT => Err(self.unseen(dest.name, errno)),
            // One of them was removed, or the copy reports why the dest cannot be looked at.
            _ => Ok(true),
        }
    }

    /// Returns `true` if a copy replaces a dest of another type by a rename, whatever their times are.
    fn is_replaced_later(&self, kinds: [FileType; 2]) -> bool {
        let rules = &self.ctx.policy.options.rules;
        rules.atomic && rules.replace != Replace::Older && !kinds.contains(&FileType::Directory)
    }

    fn unseen(&self, source: &CStr, errno: Errno) -> Error {
        Error::failed(Operation::Stat, self.path(Side::Source, source), errno)
    }

    /// Returns `true` if the source directory may have been changed within the last second. The clock of a server may differ.
    fn was_just_changed(&self) -> bool {
        let now = SystemTime::UNIX_EPOCH.elapsed();
        let now = now.map_or(0, |since| since.as_secs() as i64);
        let source = sys::stat_open(self.source);
        source.is_ok_and(|source| sys::modified(&source).seconds.abs_diff(now) <= 1)
            || Storage::of(self.source) == Storage::Server
    }

    /// Returns `true` if the filter takes an entry of the dest.
    fn is_taken(&self, dest: Listed<'_>) -> bool {
        let Some(filter) = self.ctx.settings.filter_of(self.node) else {
            return true;
        };
        let at = At {
            dir: self.dest,
            name: dest.name,
            symlinks: Symlinks::NoFollow,
        };
        let open = || sys::open_path(at);
        let verdict = filter.verdict(&Candidate {
            dir: self.dest,
            name: dest.name,
            kind: dest.kind(),
            above: Above {
                operand: &self.ctx.operands.dest_path(self.node.place.operand),
                directory: &self.node.place,
            },
            open: &|| self.ctx.descriptors.making_room(open),
        });
        verdict == Verdict::Take
    }
}
