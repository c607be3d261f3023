//! What of a source, beside its content, its copy has too.

/// Which attributes of a source its copy gets.
///
/// By default a new file gets the mode of its source, less the umask and the
/// set-id bits, and nothing else; what exists at the dest keeps its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preserve {
    /// The permission bits.
    pub mode: ModePolicy,
    /// User and group. If they cannot be set by anybody but root, and this process is
    /// not root's, that is no failure; set-id bits are then dropped.
    pub ownership: bool,
    /// The times of last access and modification, to the nanosecond.
    pub timestamps: bool,
    /// Two names of one inode, anywhere among the sources of a run, become two names of one copy.
    pub links: bool,
    /// Extended attributes of all namespaces, as far as they may be read. ACLs belong to the mode.
    pub xattrs: Xattrs,
    /// The SELinux context, an extended attribute. Without the others, what cannot be copied is a failure.
    pub context: bool,
}

/// Which mode a copy gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModePolicy {
    /// If it is new, that of its source, less the umask (or as a default ACL of its directory says).
    #[default]
    Default,
    /// That of its source, with set-id and sticky bits and with ACLs.
    Preserve,
    /// If it is new, what a new file or directory gets that is no copy.
    Discard,
}

/// How much it matters that extended attributes are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Xattrs {
    /// They are not copied.
    #[default]
    Leave,
    /// They are copied where possible. Nothing is said where not.
    Try,
    /// The same; where the dest's filesystem has them and yet one cannot be set, there is a warning.
    Warn,
    /// What cannot be copied is a failure.
    Require,
}

impl Preserve {
    /// Everything, with nothing said of extended attributes that cannot be copied: an archive.
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

    /// Whether a copy is to be given anything once its content is there.
    pub(super) fn needs_a_finish(&self) -> bool {
        self.ownership
            || self.timestamps
            || self.mode != ModePolicy::Default
            || self.xattrs != Xattrs::Leave
            || self.context
    }
}
