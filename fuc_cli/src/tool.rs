//! The two tools, and what their commands have of their own.

/// A tool of GNU's, and our command in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// GNU rm, and rmz.
    Remove,
    /// GNU cp, and cpz.
    Copy,
}

/// The environment variables of a command.
pub(crate) struct Variables {
    /// Names the file of the user's own default options.
    pub(crate) config: &'static str,
    /// Says when progress is shown.
    pub(crate) progress: &'static str,
    /// Holds the number of threads.
    pub(crate) threads: &'static str,
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

    pub(crate) fn variables(self) -> Variables {
        match self {
            Self::Remove => Variables {
                config: "RMZ_CONFIG",
                progress: "RMZ_PROGRESS",
                threads: "RMZ_THREADS",
            },
            Self::Copy => Variables {
                config: "CPZ_CONFIG",
                progress: "CPZ_PROGRESS",
                threads: "CPZ_THREADS",
            },
        }
    }
}
