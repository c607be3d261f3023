//! The treatment of a dest that exists and will be replaced.

/// The treatment that the options select for a dest, before its copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum DestTreatment {
    /// The dest stays in place: it is written to, or replaced when the copy is made.
    WrittenTo,
    /// `--symbolic-link`: the new link may replace the dest.
    LinkedOver,
    Unlinked,
    /// The dest becomes a backup.
    Renamed,
}

impl DestTreatment {
    /// Returns `true` if the dest's name is vacant when the copy is made.
    pub(in crate::copy) fn vacates(self) -> bool {
        matches!(self, Self::Unlinked | Self::Renamed)
    }

    /// Returns `true` if a directory at the dest is refused at once. Otherwise it stays where it is,
    /// and making the copy fails, as in cp.
    pub(in crate::copy) fn refuses_directories(self) -> bool {
        self != Self::Renamed
    }
}
