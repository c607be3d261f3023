//! The `.gitignore` file of a directory.
//!
//! As in git, a file that is a symbolic link does not count, nor does a line that can match nothing.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuc_engine::{EnteredDirectory, Verdict};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::lines;
use super::pattern::{self, Pattern, Subject};

/// The most bytes that are read of a file, as in git. A larger file cannot be used.
const MOST_BYTES: u64 = 100 << 20;

/// The patterns in one file.
#[derive(Debug)]
pub(super) struct Gitignore {
    patterns: Vec<Pattern>,
    /// The bytes by which a path below the operand is longer than the same path below the directory of the file.
    prefix_bytes: usize,
    /// The next file above this one.
    pub(super) above: Option<Arc<Self>>,
}

impl Gitignore {
    /// Reads the file of a directory. Returns `None` if there is none, or if it excludes nothing.
    pub(super) fn read(
        directory: &EnteredDirectory<'_>,
        above: Option<Arc<Self>>,
    ) -> io::Result<Option<Self>> {
        let mut file = match directory.open(".gitignore") {
            Ok(file) => file,
            Err(error) => match Errno::from_io_error(&error) {
                // ENXIO is a socket or a device.
                Some(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
                _ => return Err(error),
            },
        };
        // The standard library also asks for the time of birth, because of which some FUSE servers fail.
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        if stat.st_size as u64 > MOST_BYTES {
            return Err(Errno::FBIG.into());
        }
        let mut content = Vec::new();
        file.by_ref().take(MOST_BYTES).read_to_end(&mut content)?;
        let parsed = lines(&content).filter_map(pattern::in_line);
        let parsed = parsed.filter_map(|text| pattern::parse(text).ok());
        let patterns: Vec<_> = parsed.collect();
        let path = directory.path_below_operand();
        let prefix_bytes = match path.as_os_str().as_bytes() {
            [] => 0,
            path => path.len() + 1,
        };
        Ok((!patterns.is_empty()).then_some(Self {
            patterns,
            prefix_bytes,
            above,
        }))
    }

    /// Returns the verdict of this file. `path` returns the path below the operand.
    pub(super) fn decide<'p>(
        &self,
        subject: &Subject<'_>,
        path: impl Fn() -> &'p Vec<u8>,
    ) -> Option<Verdict> {
        let path = || &path()[self.prefix_bytes..];
        pattern::decide(&self.patterns, subject, path)
    }
}

/// Drops the files above in a loop. The derived drop would recurse once per level.
impl Drop for Gitignore {
    fn drop(&mut self) {
        let mut next = self.above.take();
        while let Some(above) = next {
            next = Arc::into_inner(above).and_then(|mut file| file.above.take());
        }
    }
}
