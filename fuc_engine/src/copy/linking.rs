//! Links instead of copies, of all that is no directory.
//!
//! | what is at the dest | what becomes of it |
//! |---|---|
//! | nothing | the link is made |
//! | a hard link to the source, when one is wanted | it stays, and that is fine |
//! | anything else, the source a symbolic link or special and not followed | it is unlinked first |
//! | one of several names, and links are kept | the new link takes its name |
//! | anything else | it stays, and that is a failure; with force, or if somebody agreed to that, the new link takes its name |

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::LinkKind;
use super::existing::is_same;
use super::item::Item;
use super::special::Way;
use super::tree::Copying;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::operand;
use crate::sys::{self, CWD, Symlinks};
use crate::walk::Walker;

impl Copying<'_> {
    /// Makes a link to a source that is no directory.
    pub(super) fn link(
        &self,
        item: &Item<'_>,
        kind: LinkKind,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let target = match kind {
            LinkKind::Hard => None,
            LinkKind::Symbolic => Some(self.symlink_target(item)?),
        };
        let create = |name: &CStr| match &target {
            Some(target) => sys::create_symlink(target, item.dest_dir, name),
            None => {
                let source = (item.source_dir, item.source_name, item.symlinks);
                sys::create_hard_link(source, item.dest_dir, name)
            }
        };
        let created = match create(item.dest_name) {
            Err(Errno::EXIST) => match self.make_way_for_link(item, kind)? {
                Way::AlreadyThere => return Ok(()),
                Way::Free => create(item.dest_name),
                Way::Blocked if self.is_one_of_several(item) => {
                    replace(item, create).inspect(|()| self.tell_removed_dest(item))
                }
                Way::Blocked if self.options().force || self.rules.ask => replace(item, create),
                Way::Blocked => Err(Errno::EXIST),
            },
            outcome => outcome,
        };
        created.map_err(|errno| self.link_error(item, kind, errno))?;
        if kind == LinkKind::Symbolic {
            self.finish_link(item)?;
        }
        self.copied(item, 0, worker);
        Ok(())
    }

    fn link_error(&self, item: &Item<'_>, kind: LinkKind, errno: Errno) -> Error {
        if let Err(unseen) = item.stat_source() {
            return self.source_error(item, Operation::Stat, unseen);
        }
        let error = self.creation_error(item, kind.operation(), errno);
        error.with_other(self.item_path(item, Side::Source))
    }

    fn make_way_for_link(&self, item: &Item<'_>, kind: LinkKind) -> Result<Way, Error> {
        let there = item
            .stat_dest(Symlinks::NoFollow)
            .map_err(|errno| self.dest_error(item, Operation::Stat, errno))?;
        self.check_ground(item, kind.operation())?;
        let source = item
            .stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        let is_same_file = is_same(&source, &there);
        if kind == LinkKind::Hard && is_same_file {
            return Ok(Way::AlreadyThere);
        }
        if sys::file_type(&there) == FileType::Directory {
            return Err(self.refusal(item, Refusal::DirectoryByNonDirectory));
        }
        if item.symlinks == Symlinks::NoFollow && sys::file_type(&source) != FileType::RegularFile {
            return self.make_way(item, kind.operation());
        }
        if is_same_file {
            return Err(self.same_file(item));
        }
        Ok(Way::Blocked)
    }

    /// Whether links are kept and the dest is one: a copy would not go into all of its names
    /// either. As with cp, a link then takes its place.
    fn is_one_of_several(&self, item: &Item<'_>) -> bool {
        let options = self.options();
        let is_linked = || {
            item.stat_dest(Symlinks::NoFollow)
                .is_ok_and(|there| there.st_nlink > 1)
        };
        options.preserve.links && !options.attributes_only && is_linked()
    }

    /// The source's path, if a link that says so leads there.
    fn symlink_target(&self, item: &Item<'_>) -> Result<CString, Error> {
        // The kernel would make a link to anything.
        item.stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        let path = self.item_path(item, Side::Source);
        if path.is_relative() && !self.is_in_working_directory(item) {
            // What is in the way may be the greater obstacle. Nothing is unlinked for this.
            if let Ok(there) = item.stat_dest(Symlinks::NoFollow) {
                if sys::file_type(&there) == FileType::Directory {
                    return Err(self.refusal(item, Refusal::DirectoryByNonDirectory));
                }
                if item
                    .stat_source()
                    .is_ok_and(|source| is_same(&source, &there))
                {
                    return Err(self.same_file(item));
                }
            }
            let dest = self.item_path(item, Side::Dest);
            return Err(Error::refused(Refusal::RelativeSymlink, dest));
        }
        let path = CString::new(path.as_os_str().as_bytes());
        Ok(path.expect("BUG: a NUL in what was made of C strings"))
    }

    /// Whether the dest is in the working directory. Where that cannot be told, yes:
    /// then the link cannot be made either, and that has its own reason.
    fn is_in_working_directory(&self, item: &Item<'_>) -> bool {
        let there = match item.node {
            Some(_) => sys::stat(item.dest_dir, c".", Symlinks::Follow),
            None => {
                let directory = operand::directory_of(item.dest_name);
                sys::stat(item.dest_dir, &directory, Symlinks::Follow)
            }
        };
        let here = sys::stat(CWD, c".", Symlinks::Follow);
        match (there, here) {
            (Ok(there), Ok(here)) => is_same(&there, &here),
            _ => true,
        }
    }
}

impl LinkKind {
    fn operation(self) -> Operation {
        match self {
            Self::Hard => Operation::CreateHardLink,
            Self::Symbolic => Operation::CreateSymlink,
        }
    }
}

/// Creates the link under a name of its own and lets it take the dest's: so
/// what was there goes only when there is something in its place.
fn replace(item: &Item<'_>, create: impl Fn(&CStr) -> Result<(), Errno>) -> Result<(), Errno> {
    // No two of this process are alike, so none is another worker's.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    /// Who finds so many names taken is being mocked.
    const TRIES: u32 = 1000;
    let (directory, _) = match item.node {
        Some(_) => (&b""[..], item.dest_name.to_bytes()),
        None => operand::split(item.dest_name.to_bytes()),
    };
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".cpz-{}-{number}", std::process::id());
        let name = CString::new([directory, name.as_bytes()].concat())
            .expect("BUG: a NUL within a C string or a number");
        match create(&name) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(()) => {
                let renamed = sys::rename(item.dest_dir, &name, item.dest_name);
                // Still there if the renaming failed, or both were one file.
                let _ = sys::unlink(item.dest_dir, &name);
                return renamed;
            }
        }
    }
    Err(Errno::EXIST)
}
