//! Performs one job: its system calls, and nothing else.

use std::{ffi::CStr, mem::MaybeUninit};

use anyhow::{Result, ensure};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{self, AtFlags, CWD, FileType, Mode, OFlags, RawDir},
};

use super::plan::{Entry, Job, Kind, Verb};

/// The length passed to each call: the most bytes that one call copies, and more than any file here
/// has.
const ALL: usize = 0x7fff_f000;
const LISTING_BYTES: usize = 32 << 10;

pub(super) fn perform(job: &Job<'_>) -> Result<()> {
    let dir = job.dir;
    let entries = &dir.entries[job.entries.clone()];
    match job.verb {
        Verb::MakeDir => fs::mkdirat(CWD, &dir.dest, Mode::from_raw_mode(dir.mode | 0o700))?,
        Verb::RemoveDir => fs::unlinkat(CWD, &dir.source, AtFlags::REMOVEDIR)?,
        Verb::Remove => {
            let source = open_source(job)?;
            for entry in entries {
                fs::unlinkat(&source, &entry.name, AtFlags::empty())?;
            }
        }
        Verb::Copy => {
            let source = open_source(job)?;
            let dest = open_dir(&dir.dest)?;
            for entry in entries {
                copy(source.as_fd(), dest.as_fd(), entry)?;
            }
        }
    }
    Ok(())
}

/// Opens the directory of a job, and lists it if the job is its first one.
fn open_source(job: &Job<'_>) -> Result<OwnedFd> {
    let source = open_dir(&job.dir.source)?;
    if job.entries.start == 0 {
        list(source.as_fd())?;
    }
    Ok(source)
}

fn open_dir(path: &CStr) -> Result<OwnedFd> {
    Ok(fs::openat(
        CWD,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Lists a directory to its end, and ignores the names, which are known already.
fn list(dir: BorrowedFd<'_>) -> Result<()> {
    let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
    let mut names = RawDir::new(dir, &mut buffer);
    while let Some(name) = names.next() {
        name?;
    }
    Ok(())
}

fn copy(source: BorrowedFd<'_>, dest: BorrowedFd<'_>, entry: &Entry) -> Result<()> {
    match entry.kind {
        Kind::Empty => {
            let stat = fs::statat(source, &entry.name, AtFlags::SYMLINK_NOFOLLOW)?;
            fs::mknodat(
                dest,
                &entry.name,
                FileType::RegularFile,
                Mode::from_raw_mode(stat.st_mode & 0o777),
                0,
            )?;
        }
        Kind::Link => {
            let mut target = [MaybeUninit::uninit(); 4097];
            let (filled, rest) = fs::readlinkat_raw(source, &entry.name, &mut target[..4096])?;
            ensure!(!rest.is_empty(), "the target of a link is too long");
            let target = [&*filled, b"\0"].concat();
            fs::symlinkat(CStr::from_bytes_with_nul(&target)?, dest, &entry.name)?;
        }
        Kind::Data => copy_data(source, dest, &entry.name)?,
    }
    Ok(())
}

fn copy_data(source: BorrowedFd<'_>, dest: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    let input = fs::openat(
        source,
        name,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let stat = fs::fstat(&input)?;
    let fresh = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let output = fs::openat(dest, name, fresh, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    let mut left = u64::try_from(stat.st_size)?;
    while left > 0 {
        let copied = fs::copy_file_range(&input, None, &output, None, ALL)? as u64;
        ensure!(
            copied > 0,
            "{}: shorter than it said",
            name.to_string_lossy()
        );
        left = left.saturating_sub(copied);
    }
    Ok(())
}
