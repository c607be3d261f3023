//! The options of GNU rm and cp, from which command lines are generated. What is listed twice is drawn twice as often.

use crate::case::{PRESUME_TERMINAL, Pair};

/// The options of a command.
pub(crate) struct Table {
    /// Words of which each command line begins with one; empty ones are left out.
    pub(crate) first: &'static [&'static str],
    /// The letters of the short options that take no value.
    pub(crate) short: &'static str,
    pub(crate) short_with: &'static [(char, Takes)],
    pub(crate) long: &'static [Long],
    /// Words that are rare: the end of options, hidden options, and mistakes.
    pub(crate) odd: &'static [&'static str],
    /// The least number of operands of most command lines.
    pub(crate) operands: usize,
}

/// A long option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
}

/// The value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    Nothing,
    MaybeOneOf(&'static [&'static str]),
    MaybeListOf(&'static [&'static str]),
    OneOf(&'static [&'static str]),
    ListOf(&'static [&'static str]),
    /// The suffix of backups.
    Suffix,
    /// A path.
    Dir,
}

pub(crate) fn table(pair: Pair) -> &'static Table {
    match pair {
        Pair::Rm => &RM,
        Pair::Cp => &CP,
    }
}

const fn plain(name: &'static str) -> Long {
    Long {
        name,
        takes: Takes::Nothing,
    }
}

const fn with(name: &'static str, takes: Takes) -> Long {
    Long { name, takes }
}

const WHEN: Takes = Takes::MaybeOneOf(&["never", "no", "none", "once", "always", "yes"]);

static RM: Table = Table {
    first: &[
        "-r",
        "-r",
        "-rf",
        "-R",
        "--recursive",
        "-d",
        "-dr",
        "-ri",
        "-rv",
        "-i",
        "-f",
        "",
    ],
    short: "fiIrRdv",
    short_with: &[],
    long: &[
        plain("force"),
        plain("recursive"),
        plain("dir"),
        plain("verbose"),
        plain("one-file-system"),
        plain("no-preserve-root"),
        with("preserve-root", Takes::MaybeOneOf(&["all"])),
        with("interactive", WHEN),
        with("interactive", WHEN),
        plain(PRESUME_TERMINAL),
        plain(PRESUME_TERMINAL),
        plain(PRESUME_TERMINAL),
    ],
    odd: &[
        "--",
        "--",
        "-",
        "-x",
        "--bogus",
        "--no",
        "--help",
        "--version",
        "-rx",
        "--=",
    ],
    operands: 1,
};

const CONTROL: Takes = Takes::MaybeOneOf(&[
    "none", "off", "numbered", "t", "existing", "nil", "simple", "never",
]);
const ATTRIBUTES: &[&str] = &[
    "mode",
    "mode",
    "ownership",
    "ownership",
    "timestamps",
    "timestamps",
    "links",
    "links",
    "context",
    "xattr",
    "xattr",
    "all",
    "all",
];
const WHETHER: &[&str] = &["auto", "always", "never"];

static CP: Table = Table {
    first: &[
        "-r",
        "-r",
        "-r",
        "-R",
        "--recursive",
        "-a",
        "-a",
        "-rp",
        "-rL",
        "-rl",
        "-rs",
        "-rb",
        "-rf",
        "-ru",
        "-rn",
        "",
        "",
        "",
    ],
    short: "abdfilnprRsuvxHLP",
    short_with: &[('S', Takes::Suffix), ('t', Takes::Dir)],
    long: &[
        plain("archive"),
        plain("attributes-only"),
        with("backup", CONTROL),
        with("backup", CONTROL),
        plain("copy-contents"),
        plain("debug"),
        plain("dereference"),
        plain("force"),
        plain("interactive"),
        plain("keep-directory-symlink"),
        plain("link"),
        plain("no-clobber"),
        plain("no-dereference"),
        with("no-preserve", Takes::ListOf(ATTRIBUTES)),
        plain("no-target-directory"),
        plain("one-file-system"),
        plain("parents"),
        plain("parents"),
        plain("path"),
        with("preserve", Takes::MaybeListOf(ATTRIBUTES)),
        with("preserve", Takes::MaybeListOf(ATTRIBUTES)),
        plain("recursive"),
        with("reflink", Takes::MaybeOneOf(WHETHER)),
        plain("remove-destination"),
        with("sparse", Takes::OneOf(WHETHER)),
        plain("strip-trailing-slashes"),
        with("suffix", Takes::Suffix),
        plain("symbolic-link"),
        with("target-directory", Takes::Dir),
        with(
            "update",
            Takes::MaybeOneOf(&["all", "none", "none-fail", "older"]),
        ),
        with(
            "update",
            Takes::MaybeOneOf(&["all", "none", "none-fail", "older"]),
        ),
        plain("verbose"),
    ],
    odd: &[
        "--",
        "--",
        "-T",
        "-T",
        "-Z",
        "-",
        "-y",
        "--bogus",
        "--no",
        "--re",
        "--help",
        "--version",
        "--=",
        "--context",
        "--context=x",
    ],
    operands: 2,
};
