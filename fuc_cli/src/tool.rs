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

    /// Returns the name of our command's environment variable for a purpose, such as `RMZ_CONFIG`.
    pub(crate) fn variable(self, purpose: &str) -> String {
        format!("{}Z_{purpose}", self.name().to_uppercase())
    }
}
