//! The words that values of flags may be, each with its meaning.

/// How often the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    Once,
    Always,
}

/// The values of `--interactive`, in rm's order.
pub(crate) const WHEN: [(&str, When); 6] = [
    ("never", When::Never),
    ("no", When::Never),
    ("none", When::Never),
    ("once", When::Once),
    ("always", When::Always),
    ("yes", When::Always),
];

/// The only value of `--preserve-root`, which has to be written out.
pub(crate) const ALL: &str = "all";
