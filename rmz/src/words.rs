//! The words that values of flags may be, each with its meaning.

/// The removals that the user is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// The user is never asked.
    Never,
    /// The user is asked about write-protected files, if stdin is a terminal.
    WriteProtected,
    /// The same, but the user is asked before many operands or directories are removed, too (`-I`).
    Once,
    /// The user is asked about every file (`-i`).
    Always,
}

/// The values of `--interactive`, in rm's order.
pub(crate) const WHEN: [(&str, Prompts); 6] = [
    ("never", Prompts::Never),
    ("no", Prompts::Never),
    ("none", Prompts::Never),
    ("once", Prompts::Once),
    ("always", Prompts::Always),
    ("yes", Prompts::Always),
];

/// The only value of `--preserve-root`, which has to be written out.
pub(crate) const ALL: &str = "all";
