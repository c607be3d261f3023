//! The treatment of a dest that exists and will be replaced.

/// The treatment that the options select for a dest, before its copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum DestTreatment {
    /// It is written to, or something that cannot be written to replaces it.
    WrittenTo,
    /// A symbolic link may take its name.
    LinkedOver,
    Unlinked,
    /// It becomes a backup.
    Renamed,
}

impl DestTreatment {
    /// Returns `true` if the dest's name is vacant when the copy is made.
    pub(in crate::copy) fn vacates(self) -> bool {
        matches!(self, Self::Unlinked | Self::Renamed)
    }
}
