//! The attributes that a copy gets from its source.

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
    pub(in crate::copy) fn keeps_what_stat_shows(&self) -> bool {
        self.ownership || self.timestamps || self.mode == ModePolicy::Preserve
    }

    /// Returns `true` if a copy gets attributes after its content.
    pub(super) fn sets_attributes(&self) -> bool {
        self.ownership
            || self.timestamps
            || self.mode != ModePolicy::Default
            || self.xattrs != Xattrs::Leave
            || self.context
    }
}
