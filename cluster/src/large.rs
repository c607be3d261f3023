//! Copies parts of large files for the ranks that have begun them; see [`crate::division`].
//!
//! A rank finds a file by its paths, and opens one component after the other below the operand. It copies nothing if the
//! source or the dest is not the file that the other rank has open.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, Sender};
use fuc_engine::{Cancel, CopyOp, Counts, Dereference, Sparse, Throttle};
use rustix::fs::{CWD, Mode, OFlags, SeekFrom, major, minor, openat, seek};
use rustix::io::Errno;

use crate::message::{Answer, Outgoing, Part};
use crate::pace::Pace;
use crate::sys;

/// Bytes that are read and written by one call.
const PIECE_BYTES: u64 = 1 << 20;

/// Copies parts on a rank.
pub(crate) struct PartCopier<'a> {
    pub(crate) options: &'a CopyOp<'static>,
    pub(crate) cancel: &'a Cancel,
    pub(crate) counts: &'a Counts,
    pub(crate) pace: Option<&'a Pace>,
}

impl PartCopier<'_> {
    /// Copies parts until there is a `None`. Returns how many bytes there were.
    pub(crate) fn serve(&self, parts: &Receiver<Option<Part>>, outgoing: &Sender<Outgoing>) -> u64 {
        let mut bytes = 0;
        while let Ok(Some(part)) = parts.recv() {
            let copied = self.copy(&part);
            let answer = Answer {
                file: part.file,
                range: part.range,
                is_copied: copied.is_ok(),
            };
            bytes += copied.unwrap_or(0);
            // The main thread listens until this one has ended.
            let _ = outgoing.send(Outgoing::Copied(part.owner, answer));
        }
        bytes
    }

    /// Copies a part. Holes stay holes. Returns how many bytes there were.
    fn copy(&self, part: &Part) -> io::Result<u64> {
        let copy = &part.copy;
        let followed = |follows| {
            if follows {
                OFlags::empty()
            } else {
                OFlags::NOFOLLOW
            }
        };
        let dereference = self.options.dereference;
        let on_the_way = followed(dereference == Dereference::Always);
        let is_link_followed = match dereference {
            Dereference::Operands => copy.names_below == 0,
            dereference => dereference == Dereference::Always,
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | followed(is_link_followed);
        let (source, found) = open(&copy.source, copy.names_below, on_the_way, flags)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW;
        let (dest, dest_found) = open(&copy.dest, copy.names_below, OFlags::NOFOLLOW, flags)?;
        if (found.len(), found.mtime()) != (copy.bytes, copy.modified)
            || [found.ino(), dest_found.ino()] != copy.inodes
        {
            return Err(Errno::STALE.into());
        }
        let may_have_holes =
            self.options.sparse != Sparse::Never && found.blocks() < found.len() / 512;
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let (mut at, mut copied) = (part.range.start, 0);
        while at < part.range.end {
            let rest = at..part.range.end;
            let data = match may_have_holes {
                true => next_data(&source, rest)?,
                false => rest,
            };
            at = data.start;
            while at < data.end {
                if self.cancel.is_cancelled() {
                    return Err(ErrorKind::Interrupted.into());
                }
                let bytes = PIECE_BYTES.min(data.end - at);
                let piece = &mut buffer[..bytes as usize];
                source.read_exact_at(piece, at)?;
                dest.write_all_at(piece, at)?;
                at += bytes;
                copied += bytes;
                self.counts.add_shared(0, bytes, 0);
                if let Some(pace) = self.pace {
                    pace.wait(0, bytes);
                }
            }
        }
        if self.options.durable {
            dest.sync_all()?;
        }
        // A server may report only now that it has not stored the content.
        sys::close(dest)?;
        Ok(copied)
    }
}

/// Opens a regular file, of whose path so many names at the end are below an operand.
fn open(
    path: &Path,
    names_below: usize,
    on_the_way: OFlags,
    flags: OFlags,
) -> io::Result<(File, Metadata)> {
    let names: Vec<&OsStr> = path.iter().collect();
    let (above, below) = names.split_at(names.len().saturating_sub(names_below.max(1)));
    let (name, below) = below.split_last().ok_or(Errno::NOENT)?;
    let above = Path::new(".").join(above.iter().collect::<PathBuf>());
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = openat(CWD, above, directory, Mode::empty())?;
    for name in below {
        dir = openat(dir, *name, directory | on_the_way, Mode::empty())?;
    }
    let file = File::from(openat(dir, *name, flags | OFlags::CLOEXEC, Mode::empty())?);
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found)),
        false => Err(Errno::STALE.into()),
    }
}

/// Returns the next data in a range of a file. It is empty if there is none.
fn next_data(file: &File, range: Range<u64>) -> io::Result<Range<u64>> {
    let start = match seek(file, SeekFrom::Data(range.start)) {
        Err(Errno::NXIO) => return Ok(range.end..range.end),
        // The filesystem does not say where data is.
        Err(_) => return Ok(range),
        Ok(start) => start.min(range.end),
    };
    let end = seek(file, SeekFrom::Hole(start)).unwrap_or(range.end);
    Ok(start..end.clamp(start, range.end))
}

/// Returns `true` if a file is on MooseFS.
pub(crate) fn is_on_moosefs(path: &Path) -> bool {
    let Ok(found) = fs::metadata(path) else {
        return false;
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let device = format!("{}:{}", major(found.dev()), minor(found.dev()));
    mounts.lines().any(|mount| is_moosefs(mount, &device))
}

/// Returns `true` if a line of the list of mounts is about MooseFS and this device.
fn is_moosefs(mount: &str, device: &str) -> bool {
    mount.split(' ').nth(2) == Some(device)
        && (mount.contains(" - fuse.mfs ") || mount.contains(" - fuse mfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_moosefs_are_known() {
        for (mount, is_known) in [
            (
                r"43 27 0:39 / /m/0 rw,nodev - fuse mfs\04310.0.0.1:9421 rw,user_id=0",
                true,
            ),
            (
                "43 27 0:39 / /m/0 rw,nodev - fuse.mfs mfsmaster:9421 rw,user_id=0",
                true,
            ),
            (
                "43 27 0:39 / /m/0 rw,nodev - fuse.juicefs JuiceFS:mfs rw,user_id=0",
                false,
            ),
            (
                "43 27 0:3 / /m/0:39 rw - fuse.mfs mfsmaster:9421 rw,user_id=0",
                false,
            ),
        ] {
            assert_eq!(is_moosefs(mount, "0:39"), is_known, "{mount}");
        }
    }
}
