//! The choices of a caller about a copy: data, and nothing that acts on it.

use std::ffi::{CString, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::remove::Content;
use crate::setup::{BaseDir, Execution, Setup, setup_methods};
use crate::sys::{CWD, PrivateTables};

/// The place that copies go to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum Dest {
    /// Into this existing directory, each source under its own last component.
    Into(#[cfg_attr(feature = "serde", serde(with = "crate::paths::bytes"))] PathBuf),
    /// To exactly this path. A source directory is merged into an existing directory.
    Exactly(#[cfg_attr(feature = "serde", serde(with = "crate::paths::bytes"))] PathBuf),
}

/// Selects the symbolic links that are followed. The others are copied as links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Dereference {
    /// Follow no link.
    Never,
    /// Follow only links that are a source themselves.
    Operands,
    /// Follow all links. A link to a directory that contains the link is
    /// [refused](crate::Refusal::CyclicSymlink).
    Always,
}

/// The kind of link that is made instead of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum LinkKind {
    /// A hard link to the source.
    Hard,
    /// A symbolic link that contains the path of the source. A relative path is
    /// [refused](crate::Refusal::RelativeSymlink), unless the link is in the directory in which the source is
    /// looked up.
    Symbolic,
}

/// Says whether a copy shares blocks with its source until one of them is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Reflink {
    /// Share blocks if the filesystem can and [`Sparse::Auto`] leaves it the choice.
    Auto,
    /// Share blocks, or fail. After a failure, a dest that this run created is unlinked.
    Always,
    /// Do not share blocks.
    Never,
}

/// Selects the holes of a copy: blocks that read as zeros and take no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Sparse {
    /// The copy has the holes of its source.
    Auto,
    /// Each block of zeros in the source becomes a hole.
    Always,
    /// The copy has no holes.
    Never,
}

/// Copies any number of sources. Its fields are the options. The [`Default`] copies whole directories, as `cp -r` does.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::sync::Mutex;
/// use fuc_engine::{CopyOp, Dest, Preserve};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let source = dir.path().join("source");
/// std::fs::create_dir_all(source.join("sub"))?;
/// std::fs::write(source.join("sub/file"), "content")?;
///
/// let failures = Mutex::new(Vec::new());
/// let dest = Dest::Exactly(dir.path().join("dest"));
/// let copy = CopyOp::new().with(|copy| {
///     copy.preserve = Preserve::all();
///     copy.threads = NonZeroUsize::new(4);
/// });
/// let summary = copy.run([source], &dest, &failures);
/// assert!(summary.is_complete());
/// assert_eq!((summary.entries, summary.bytes), (3, 7));
/// assert_eq!(std::fs::read(dir.path().join("dest/sub/file"))?, b"content");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
pub struct CopyOp<'a> {
    /// Copy directories with their entries, and FIFOs, sockets and devices as special files.
    /// Otherwise a directory is [refused](crate::Refusal::NotRecursive), and the content of
    /// a special file is read.
    pub recursive: bool,
    /// Selects the symbolic links that are followed.
    pub dereference: Dereference,
    /// Skip the entries of a directory that is on another filesystem than its parent. The
    /// directory itself is still made.
    pub one_file_system: bool,
    /// Read the content of FIFOs and devices even if `recursive` is set. Reading a FIFO waits
    /// for its writer.
    pub copy_contents: bool,
    /// Make links to everything except directories, instead of copies.
    pub as_links: Option<LinkKind>,
    /// Says whether a copy shares the blocks of its source.
    pub reflink: Reflink,
    /// Selects the holes of a copy.
    pub sparse: Sparse,
    /// Unlink a dest file that cannot be opened for writing, and create it anew.
    pub force: bool,
    /// The rules for dests that exist.
    pub rules: DestRules,
    /// Deletes names in the dests of directories that their sources do not have. `None`: nothing is deleted.
    pub delete: Option<Deletion>,
    /// In [`Dest::Into`], append the whole path of each source, not only its last component.
    /// Missing directories on that path are made like those of the source. A symbolic link in
    /// place of an existing one is followed if it belongs to root or to the effective user, or if
    /// the [rules](DestRules::follow_links_to_directories) say so.
    pub parents: bool,
    /// Selects the attributes that a copy gets from its source. None by default.
    pub preserve: Preserve,
    /// The SELinux context of all copies, instead of that of the source. A file gets it
    /// before its content, a directory afterwards. A dest that cannot have it is a failure.
    pub context: Option<CString>,
    /// Open and close each new file, so that processes that watch its directory learn that it is complete
    /// (`IN_CLOSE_WRITE` of inotify). Otherwise, in directories that the run makes, some empty files are made by
    /// one call, which tells only that a file was created.
    // Only `cpz` needs it.
    #[doc(hidden)]
    pub closes_empty_files: bool,
    /// An older copy of the sources, in the place of the dest: below [`Dest::Into`] or [`Dest::Exactly`], a path is the same in
    /// both. A regular file that would be created is instead linked to the one in the older copy, if that is regular and has
    /// the size and the time of modification of the source, and the owner, mode, ACLs and extended attributes that a new copy
    /// would get. It is looked up as a dest is, and links below it are not followed.
    ///
    /// This needs copies with the modes, owners and times of their sources; without [these](Preserve), nothing is linked. The older copy does
    /// not change: dests with several names and symbolic links are replaced, and if it is the directory of the dest, the run is
    /// refused. If it cannot be opened, or is on another filesystem than the dest, that is a
    /// [warning](crate::Observer::warned), and everything is copied.
    #[cfg_attr(feature = "serde", serde(with = "crate::paths::optional_bytes"))]
    pub link_dest: Option<PathBuf>,
    /// Copy no content: an existing dest file keeps its own, and a new one is empty.
    pub attributes_only: bool,
    /// Write everything to the disk before the run returns: the content and the attributes of copies,
    /// and the directories that contain them. If the run has no failure, the copy survives a power cut.
    /// Before Linux 5.8, errors of the disk may be missed.
    pub durable: bool,
    /// Drop what was read and written from the page cache as the copy goes on, so that it does not push out what other
    /// programs need. At most two pieces of 8 MiB of each file under way wait to be written. The progress then tells what
    /// has reached the disk. Files that were in the cache before are dropped, too.
    // Only `cpz` needs it.
    #[doc(hidden)]
    pub drops_cache: bool,
    /// Read each copied regular file and its source again, past the page cache if the kernel permits
    /// that, and compare them. A difference is a failure ([`Refusal::Different`](crate::Refusal::Different)).
    /// With [`Replace::Changed`], dests that are kept are compared, too.
    pub verify: bool,
    /// Let events say [how content was copied](crate::gnu::CopyMethod). For that, each file is copied by the calls that
    /// cp makes: the run tries to share blocks first, and opens empty files, too.
    pub reports_methods: bool,
    /// Maximum number of threads, including the caller's own. `None`: as many as the process
    /// has cores to run on, or up to 128 while they wait for a disk or a server, as long as each
    /// doubling makes the copy faster. There are fewer if more do not pay, if a thread cannot be
    /// started, or if a limit is low: on open descriptors (12 for each thread) or on address space
    /// (128 MiB for each thread). A small tree never starts one.
    pub threads: Option<NonZeroUsize>,
    /// Says whether anything is copied. A dry run counts the sizes of the files whose content would be
    /// copied, and reads no content.
    ///
    /// [`Execution`] lists what a dry run cannot know.
    pub execution: Execution,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) setup: Setup<'a>,
    /// The directory in which a dest that is a relative path is looked up.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) dest_dir: BaseDir<'a>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) tables: Option<PrivateTables>,
}

setup_methods!(CopyOp);

impl Default for CopyOp<'_> {
    fn default() -> Self {
        Self {
            recursive: true,
            dereference: Dereference::Never,
            one_file_system: false,
            copy_contents: false,
            as_links: None,
            reflink: Reflink::Auto,
            sparse: Sparse::Auto,
            force: false,
            rules: DestRules::default(),
            delete: None,
            parents: false,
            preserve: Preserve::default(),
            context: None,
            closes_empty_files: false,
            link_dest: None,
            attributes_only: false,
            durable: false,
            drops_cache: false,
            verify: false,
            reports_methods: false,
            threads: None,
            execution: Execution::Real,
            setup: Setup::default(),
            dest_dir: BaseDir::Borrowed(CWD),
            tables: None,
        }
    }
}

impl CopyOp<'_> {
    /// Returns `true` if a regular file can be copied before anything is known about its source and its dest.
    pub(super) fn copies_plainly(&self) -> bool {
        // Each field is named, so that an option about sources cannot be forgotten here.
        let Self {
            recursive: _,
            dereference: _,
            one_file_system: _,
            copy_contents: _,
            as_links,
            reflink: _,
            sparse: _,
            force: _,
            rules,
            delete: _,
            parents: _,
            preserve: _,
            context: _,
            closes_empty_files: _,
            link_dest,
            attributes_only: _,
            durable: _,
            drops_cache: _,
            verify: _,
            reports_methods: _,
            threads: _,
            execution: _,
            setup: _,
            dest_dir: _,
            tables: _,
        } = self;
        rules.are_plain() && as_links.is_none() && link_dest.is_none()
    }

    /// Returns `true` if the kernel may move content by itself, which may share blocks and
    /// keeps holes and zeros as they are.
    pub(super) fn lets_kernel_copy(&self) -> bool {
        self.reflink != Reflink::Never && self.sparse == Sparse::Auto
    }

    /// Returns `true` if a copy may share the blocks of its source, and have its holes.
    pub(super) fn may_share_blocks(&self) -> bool {
        self.reflink != Reflink::Never && self.sparse != Sparse::Never
    }

    /// Returns which bytes a look-ahead counts.
    pub(super) fn counted_content(&self) -> Content {
        if self.attributes_only || self.as_links.is_some() {
            Content::Ignored
        } else if self.preserve.links {
            Content::OfInodes
        } else {
            Content::OfNames
        }
    }
}

/// Selects what a copy deletes, to make the dest of each directory a mirror of its source.
///
/// When a directory is entered, and before anything in it is copied, the names in its dest that the source does not have
/// are removed, with everything below them. So are those that are of another type in the source, unless the
/// [rules](DestRules::replace) keep all dests. Nothing is deleted in a directory whose source cannot be listed to its end,
/// or whose entries cannot be looked at. No filesystem that is mounted below the dest is entered, and with
/// [`one_file_system`](CopyOp::one_file_system) nothing is deleted on another filesystem than that of the dest.
///
/// A directory takes 8 bytes for each name of the source while its dest is looked through. Unless a native filesystem holds
/// the dest, it also takes the names that are removed.
///
/// The run is [refused](crate::Refusal::CannotMirror) if several sources go to one directory, if
/// [backups](DestRules::backup) are made, or if links to directories are followed, in the sources
/// ([`Dereference::Always`]) or [in the dest](DestRules::follow_links_to_directories). An operand is refused if its dest
/// contains a source or a link on the way to it, and a directory if the dest takes its name for that of another source.
/// Dests of other operands are never deleted.
///
/// ```
/// use fuc_engine::{CopyOp, Deletion};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let [source, dest] = ["source", "dest"].map(|name| dir.path().join(name));
/// # std::fs::create_dir_all(&source)?;
/// # std::fs::create_dir_all(dest.join("old/sub"))?;
/// let mirror = CopyOp::new().with(|copy| copy.delete = Some(Deletion::default()));
/// let summary = mirror.copy(&source, &dest)?;
/// assert_eq!(summary.deleted, 2);
/// # assert!(!dest.join("old").exists());
///
/// let cautious = mirror.with(|copy| copy.delete.get_or_insert_default().most = Some(100));
/// # assert_eq!(cautious.delete.unwrap().most, Some(100));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Deletion {
    /// Deletes what the filter does not take, even if the source has it. Otherwise that stays, with the directories
    /// that contain it. The filter is asked about the names in the dest, whose paths begin with that of the dest.
    pub excluded: bool,
    /// The largest number of entries to delete. A name that has more entries below it than are left stays, and after
    /// it everything else. [`Summary::not_deleted`](crate::Summary::not_deleted) counts them. Entries that another
    /// process adds in the meantime are not counted.
    pub most: Option<u64>,
}

/// Selects the attributes that a copy gets from its source.
///
/// By default a new file gets the mode of its source, less the umask and the set-id bits, and
/// nothing else. An existing dest keeps its own attributes.
///
/// ```
/// use fuc_engine::{CopyOp, Preserve};
///
/// let keeps_times = CopyOp::new().with(|copy| copy.preserve.timestamps = true);
/// let archive_without_owner = CopyOp::new().with(|copy| {
///     copy.preserve = Preserve::all();
///     copy.preserve.ownership = false;
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Preserve {
    /// The permission bits.
    pub mode: ModePolicy,
    /// User and group. Without root's rights, an owner that cannot be set is not a failure;
    /// the set-id bits are then dropped.
    pub ownership: bool,
    /// The times of last access and modification, to the nanosecond.
    pub timestamps: bool,
    /// Hard links: two names of one inode, anywhere among the sources of a run, become two
    /// names of one copy. A name that cannot be linked is a failure and is not copied.
    pub links: bool,
    /// Extended attributes of all namespaces that may be read. ACLs belong to the mode.
    pub xattrs: Xattrs,
    /// The SELinux context, which is an extended attribute. A context that cannot be copied
    /// is a failure, unless all extended attributes are copied.
    pub context: bool,
}

/// Selects the mode of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum ModePolicy {
    /// A new dest gets the mode of its source, less the umask or as a default ACL of its
    /// directory says. An existing dest keeps its mode.
    #[default]
    Default,
    /// Each dest gets the mode of its source, including set-id and sticky bits and ACLs.
    Preserve,
    /// A new dest gets the mode of a newly created file or directory that is not a copy.
    Discard,
}

/// Selects what a run does if an extended attribute cannot be copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Xattrs {
    /// Extended attributes are not copied.
    #[default]
    Leave,
    /// They are copied if possible. Failures are ignored.
    Try,
    /// They are copied if possible. A failure is a warning, unless the dest's filesystem
    /// does not support extended attributes.
    Warn,
    /// They are copied, and each failure is reported.
    Require,
}

impl Preserve {
    /// Preserves everything, as an archive does. Extended attributes that cannot be copied
    /// are ignored.
    #[must_use]
    pub fn all() -> Self {
        Self {
            mode: ModePolicy::Preserve,
            ownership: true,
            timestamps: true,
            links: true,
            xattrs: Xattrs::Try,
            context: true,
        }
    }

    /// Returns `true` if a copy gets the mode, the owner or the times of its source.
    pub(super) fn keeps_what_stat_shows(&self) -> bool {
        self.ownership || self.timestamps || self.mode == ModePolicy::Preserve
    }

    /// Returns `true` if a copy gets attributes after its content.
    pub(super) fn sets_attributes(&self) -> bool {
        // All but the links are attributes.
        let attributes = Self {
            links: false,
            ..*self
        };
        attributes != Self::default()
    }
}

/// Rules for dests that exist. [`Default`] overwrites them, without a question or a backup.
///
/// Directories are merged into existing directories. For them, only backups and `follow_links_to_directories` matter.
///
/// ```
/// use fuc_engine::{CopyOp, Replace};
///
/// let update = CopyOp::new().with(|copy| copy.rules.replace = Replace::Older);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct DestRules {
    /// Selects the dests that are replaced at all.
    pub replace: Replace,
    /// Ask [`Question::Overwrite`](crate::Question::Overwrite) before each dest is
    /// replaced. The copy then runs on one thread, in listing order.
    pub ask: bool,
    /// Unlink the dest instead of writing to it.
    pub remove_first: bool,
    /// Do the same as [`remove_first`](Self::remove_first), but leave the dest its name until the new file is complete.
    /// Unless [`force`](CopyOp::force) is set, a regular file that the user may not write to is not replaced by content.
    pub atomic: bool,
    /// Rename the dest instead of writing to it. If the copy then fails, the dest gets
    /// its name back.
    pub backup: Option<Backup>,
    /// The end of the name of a backup without a number: `~` by default. It does not contain a slash.
    pub backup_suffix: OsString,
    /// Copy a directory into the target of an existing symbolic link to a directory. Do the same
    /// on the way to a dest, for [`parents`](CopyOp::parents).
    pub follow_links_to_directories: bool,
    /// Create the target of a dangling symbolic link that is the dest of a source itself.
    /// Otherwise, and always below sources, such a link is
    /// [refused](crate::Refusal::DanglingDest).
    pub create_through_links: bool,
}

/// Selects the existing dests that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Replace {
    /// Replace all dests.
    #[default]
    All,
    /// Replace dests that were modified before their source. If copies get the
    /// [timestamps](crate::Preserve::timestamps) of their sources, timestamps are compared
    /// with the precision of the dest's filesystem, and a file with the time of its source but another size is replaced:
    /// a power cut has taken content.
    Older,
    /// Replace dests that differ from their source in type, size or time of modification. This
    /// continues a run that was interrupted: a copy gets the time of its source when it is complete. So
    /// it needs [timestamps](crate::Preserve::timestamps); without them, nearly all dests differ.
    /// Timestamps are compared with the precision of the dest's filesystem. A file that was changed before the machine was
    /// started is also replaced if it has holes in place of content, as after a power cut.
    Changed,
    /// Replace no dest, silently.
    None,
    /// Replace no dest, and report each as a [failure](crate::Refusal::NotReplacing).
    NoneAndFail,
}

/// Selects the names of backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Backup {
    /// The dest's name and the suffix. An earlier backup with that name is lost.
    Simple,
    /// The dest's name and `.~N~`, where N is above the numbers in use.
    Numbered,
    /// A number if the dest has a numbered backup already, else the suffix.
    NumberedIfAny,
}

impl Default for DestRules {
    fn default() -> Self {
        Self {
            replace: Replace::All,
            ask: false,
            remove_first: false,
            atomic: false,
            backup: None,
            backup_suffix: "~".into(),
            follow_links_to_directories: false,
            create_through_links: false,
        }
    }
}

impl DestRules {
    /// Returns `true` if a source may be opened before its dest is looked at.
    pub(super) fn are_plain(&self) -> bool {
        // Each field is named, so that a new rule cannot be forgotten here.
        let Self {
            replace,
            ask,
            remove_first,
            backup,
            backup_suffix: _,
            atomic,
            // These two are read only if creating the dest fails.
            follow_links_to_directories: _,
            create_through_links: _,
        } = self;
        *replace == Replace::All && !ask && !remove_first && !atomic && backup.is_none()
    }

    /// Returns `true` if a dest is not written to, but removed.
    pub(super) fn removes_dests(&self) -> bool {
        self.remove_first || self.atomic
    }
}
