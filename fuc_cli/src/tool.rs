//! The two tools, and what their commands have of their own.

/// A tool of GNU's, and our command in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// GNU rm, and rmz.
    Remove,
    /// GNU cp, and cpz.
    Copy,
}

impl Tool {
    /// Returns the name of GNU's tool.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Remove => "rm",
            Self::Copy => "cp",
        }
    }

    /// Returns the one of the two that belongs to our command.
    pub(crate) fn choose(self, rmz: &'static str, cpz: &'static str) -> &'static str {
        match self {
            Self::Remove => rmz,
            Self::Copy => cpz,
        }
    }
}
