//! The words that values of flags may be, each with its meaning, in cp's order.

use fuc_engine::{Backup, Reflink, Replace, Sparse};

/// An attribute of a source that its copy may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Mode,
    Timestamps,
    Ownership,
    Links,
    Context,
    Xattr,
    All,
}

/// The values of `--preserve` and `--no-preserve`.
pub(crate) const ATTRIBUTES: [(&str, Attribute); 7] = [
    ("mode", Attribute::Mode),
    ("timestamps", Attribute::Timestamps),
    ("ownership", Attribute::Ownership),
    ("links", Attribute::Links),
    ("context", Attribute::Context),
    ("xattr", Attribute::Xattr),
    ("all", Attribute::All),
];

/// The values of `--backup` and of `VERSION_CONTROL`; `None` makes no backup.
pub(crate) const CONTROL: [(&str, Option<Backup>); 8] = [
    ("none", None),
    ("off", None),
    ("simple", Some(Backup::Simple)),
    ("never", Some(Backup::Simple)),
    ("existing", Some(Backup::NumberedIfAny)),
    ("nil", Some(Backup::NumberedIfAny)),
    ("numbered", Some(Backup::Numbered)),
    ("t", Some(Backup::Numbered)),
];

/// The values of `--reflink`.
pub(crate) const REFLINK: [(&str, Reflink); 3] = [
    ("auto", Reflink::Auto),
    ("always", Reflink::Always),
    ("never", Reflink::Never),
];

/// The values of `--sparse`.
pub(crate) const SPARSE: [(&str, Sparse); 3] = [
    ("never", Sparse::Never),
    ("auto", Sparse::Auto),
    ("always", Sparse::Always),
];

/// The values of `--update`.
pub(crate) const UPDATE: [(&str, Replace); 4] = [
    ("all", Replace::All),
    ("none", Replace::None),
    ("none-fail", Replace::NoneAndFail),
    ("older", Replace::Older),
];
