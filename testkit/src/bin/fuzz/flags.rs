//! The options of GNU rm and cp, from which command lines are generated. What is listed twice is drawn twice as often.

use crate::case::Pair;

/// The options of a command. Lists of words are separated by spaces.
pub(crate) struct Table {
    /// Words of which each command line begins with one. A `.` stands for none.
    pub(crate) first: &'static str,
    /// The letters of the short options that take no value.
    pub(crate) short: &'static str,
    pub(crate) short_with: &'static [Flag],
    /// Long options that take no value.
    pub(crate) long: &'static str,
    pub(crate) long_with: &'static [Flag],
    /// Words that are rare: the end of options, hidden options, and mistakes.
    pub(crate) odd: &'static str,
    /// The least number of operands of most command lines.
    pub(crate) operands: usize,
}

/// An option by its name.
pub(crate) type Flag = (&'static str, Takes);

/// The value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    Nothing,
    MaybeOneOf(&'static str),
    MaybeListOf(&'static str),
    OneOf(&'static str),
    ListOf(&'static str),
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

const WHEN: Takes = Takes::MaybeOneOf("never no none once always yes");

static RM: Table = Table {
    first: "-r -r -rf -R --recursive -d -dr -ri -rv -i -f .",
    short: "fiIrRdv",
    short_with: &[],
    long: "force recursive dir verbose one-file-system no-preserve-root \
           -presume-input-tty -presume-input-tty -presume-input-tty",
    long_with: &[
        ("preserve-root", Takes::MaybeOneOf("all")),
        ("interactive", WHEN),
        ("interactive", WHEN),
    ],
    odd: "-- -- - -x --bogus --no --help --version -rx --=",
    operands: 1,
};

const CONTROL: Takes = Takes::MaybeOneOf("none off numbered t existing nil simple never");
const ATTRIBUTES: &str =
    "mode mode ownership ownership timestamps timestamps links links context xattr xattr all all";
const WHETHER: &str = "auto always never";
const UPDATE: Takes = Takes::MaybeOneOf("all none none-fail older");

static CP: Table = Table {
    first: "-r -r -r -R --recursive -a -a -rp -rL -rl -rs -rb -rf -ru -rn . . .",
    short: "abdfilnprRsuvxHLP",
    short_with: &[("S", Takes::Suffix), ("t", Takes::Dir)],
    long: "archive attributes-only copy-contents debug dereference force interactive \
           keep-directory-symlink link no-clobber no-dereference no-target-directory \
           one-file-system parents parents path recursive remove-destination \
           strip-trailing-slashes symbolic-link verbose",
    long_with: &[
        ("backup", CONTROL),
        ("backup", CONTROL),
        ("no-preserve", Takes::ListOf(ATTRIBUTES)),
        ("preserve", Takes::MaybeListOf(ATTRIBUTES)),
        ("preserve", Takes::MaybeListOf(ATTRIBUTES)),
        ("reflink", Takes::MaybeOneOf(WHETHER)),
        ("sparse", Takes::OneOf(WHETHER)),
        ("suffix", Takes::Suffix),
        ("target-directory", Takes::Dir),
        ("update", UPDATE),
        ("update", UPDATE),
    ],
    odd: "-- -- -T -T -Z - -y --bogus --no --re --help --version --= --context --context=x",
    operands: 2,
};
