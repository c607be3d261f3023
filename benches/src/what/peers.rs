//! The peers: the commands that compete in a cell.
//!
//! Every command runs in the directory that holds the trees, under fixed names: `tree` is removed, or copied to
//! `copy`; `empty` is an empty directory. The cells of `steady` remove `copy` instead.

use serde::{Deserialize, Serialize};

/// A command that does the work of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) label: &'static str,
    /// The program that must be installed.
    pub(crate) program: &'static str,
    pub(crate) command: &'static str,
    pub(crate) role: Role,
    /// How many requests it has under way at most, about. It only predicts how long the peer waits for a slow server.
    pub(crate) at_once: u32,
}

/// The part that a peer plays in a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The peer is rmz or cpz of this repository.
    Ours,
    /// The peer is GNU's command.
    Reference,
    /// The peer is rmz or cpz of this repository, with a number of threads that the user has set.
    Fixed,
    /// The peer is a competitor.
    #[default]
    Other,
}

impl Role {
    /// Returns `true` for a competitor; the files of figures leave that role out.
    pub(crate) fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

impl Peer {
    const fn new(
        role: Role,
        label: &'static str,
        program: &'static str,
        command: &'static str,
    ) -> Self {
        Self {
            label,
            program,
            command,
            role,
            at_once: 1,
        }
    }

    const fn at_once(self, at_once: u32) -> Self {
        Self { at_once, ..self }
    }
}

use Role::{Fixed, Other, Ours, Reference};

const RMZ: Peer = Peer::new(Ours, "rmz", "rmz", "rmz tree");
const RM: Peer = Peer::new(Reference, "rm -r", "rm", "rm -r tree");
const RMZ_PUBLISHED: Peer = Peer::new(
    Other,
    "rmz (published)",
    "rmz-published",
    "rmz-published tree",
);
pub(crate) const RM_RAYON: Peer = Peer::new(Other, "rm_rayon", "rm_rayon", "rm_rayon tree");
const CPZ: Peer = Peer::new(Ours, "cpz", "cpz", "cpz tree copy");
const CP: Peer = Peer::new(Reference, "cp -r", "cp", "cp -r tree copy");
const CPZ_PUBLISHED: Peer = Peer::new(
    Other,
    "cpz (published)",
    "cpz-published",
    "cpz-published tree copy",
);
pub(crate) const FCP: Peer = Peer::new(Other, "fcp", "fcp", "fcp tree copy");
pub(crate) const XCP: Peer = Peer::new(
    Other,
    "xcp",
    "xcp",
    "xcp -r --no-timestamps --no-progress tree copy",
);
const CPX: Peer = Peer::new(Other, "cpx", "cpx", "cpx -r -P tree/. copy");
const RM_UUTILS: Peer = Peer::new(Other, "rm (uutils)", "rm-uutils", "rm-uutils -r tree");
const CP_UUTILS: Peer = Peer::new(Other, "cp (uutils)", "cp-uutils", "cp-uutils -r tree copy");
const RRM: Peer = Peer::new(Other, "rrm", "rrm", "rrm tree");
const RCP: Peer = Peer::new(Other, "rcp", "rcp", "rcp tree copy");
pub(crate) const RSYNC_COPY: Peer =
    Peer::new(Other, "rsync", "rsync", "rsync -rlp --inplace tree/ copy/");

// Peers begin in the order of these lists. If the time does not suffice for one run of each, the last ones are left
// out.

/// The peers that remove a whole tree.
pub(crate) const REMOVE: &[Peer] = &[
    RMZ,
    RM,
    RMZ_PUBLISHED,
    RM_RAYON,
    Peer::new(
        Other,
        "rm_remove_dir_all",
        "rm_remove_dir_all",
        "rm_remove_dir_all tree",
    ),
    Peer::new(Other, "rm_stdlib", "rm_stdlib", "rm_stdlib tree"),
    Peer::new(Other, "find -delete", "find", "find tree -delete"),
    Peer::new(
        Other,
        "rsync --delete",
        "rsync",
        "rsync -r --delete empty/ tree/",
    ),
    RM_UUTILS,
    RRM,
];

/// More peers, which can remove only a directory without subdirectories.
pub(crate) const REMOVE_FLAT: &[Peer] = &[Peer::new(
    Other,
    "perl unlink",
    "perl",
    "perl -e 'opendir D, q(tree); unlink map qq(tree/$_), readdir D; rmdir q(tree)'",
)];

/// The peers that copy a whole tree.
pub(crate) const COPY: &[Peer] = &[
    CPZ,
    CP,
    CPZ_PUBLISHED,
    Peer::new(Other, "cp_rayon", "cp_rayon", "cp_rayon tree copy"),
    FCP,
    XCP,
    Peer::new(Other, "wcp", "wcp", "wcp tree copy"),
    Peer::new(Other, "cp_stdlib", "cp_stdlib", "cp_stdlib tree copy"),
    Peer::new(
        Other,
        "tar | tar",
        "tar",
        "sh -c 'mkdir copy && tar -C tree -cf - . | tar -C copy -xmf -'",
    ),
    CPX,
    RSYNC_COPY,
    CP_UUTILS,
    RCP,
];

/// The peers that remove a real tree.
pub(crate) const REAL_REMOVE: &[Peer] = &[RMZ, RM, RMZ_PUBLISHED];
/// The peers that copy a real tree.
pub(crate) const REAL_COPY: &[Peer] = &[CPZ, CP, RSYNC_COPY, XCP, CPX, CPZ_PUBLISHED];

/// The peers that remove a tree from each filesystem.
pub(crate) const FILESYSTEM_REMOVE: &[Peer] = &[
    RMZ,
    RM,
    Peer::new(Other, "rmz --threads=1", "rmz", "rmz --threads=1 tree"),
    RMZ_PUBLISHED,
];
/// The peers that copy a tree on each filesystem.
pub(crate) const FILESYSTEM_COPY: &[Peer] = &[
    CPZ,
    CP,
    Peer::new(Other, "cpz --threads=1", "cpz", "cpz --threads=1 tree copy"),
    CPZ_PUBLISHED,
];

/// Makes a peer of a command on this number of ranks.
macro_rules! ranks {
    ($ranks:literal, $program:literal, $arguments:literal) => {
        Peer::new(
            Other,
            concat!($program, ", ", $ranks, " ranks"),
            $program,
            concat!(
                "mpirun --allow-run-as-root --oversubscribe -n ",
                $ranks,
                " ",
                $program,
                " ",
                $arguments
            ),
        )
        .at_once($ranks)
    };
}

/// The most threads that ours start by themselves on a slow filesystem.
const DEFAULT_AT_ONCE: u32 = 128;
/// The published commands and fcp have a thread for each core.
const CORES_AT_ONCE: u32 = 2;

/// The peers that remove a tree from a slow filesystem.
pub(crate) const SLOW_REMOVE: &[Peer] = &[
    RMZ.at_once(DEFAULT_AT_ONCE),
    RM,
    RMZ_PUBLISHED.at_once(CORES_AT_ONCE),
    ranks!(8, "drm", "tree"),
    Peer::new(
        Other,
        "rsync --delete",
        "rsync",
        "rsync -r --delete empty/ tree/",
    ),
];
/// The peers that copy a tree on a slow filesystem. rsync is not among them, because it is slow with large files.
pub(crate) const SLOW_COPY: &[Peer] = &[
    CPZ.at_once(DEFAULT_AT_ONCE),
    CP,
    CPZ_PUBLISHED.at_once(CORES_AT_ONCE),
    FCP.at_once(CORES_AT_ONCE),
    Peer::new(
        Other,
        "xcp -w 64",
        "xcp",
        "xcp -r -w 64 --no-timestamps --no-progress tree copy",
    )
    .at_once(64),
    ranks!(32, "dcp", "tree copy"),
];

/// The peers that remove a tree from a slow filesystem with several processes.
pub(crate) const RANKS_SLOW_REMOVE: &[Peer] = &[
    Peer::new(Ours, "rmz --threads=1", "rmz", "rmz --threads=1 tree"),
    ranks!(2, "rmz-mpi", "--threads=1 tree"),
    ranks!(4, "rmz-mpi", "--threads=1 tree"),
    ranks!(8, "rmz-mpi", "--threads=1 tree"),
    ranks!(8, "drm", "tree"),
];
/// The peers that copy a tree on a slow filesystem with several processes.
pub(crate) const RANKS_SLOW_COPY: &[Peer] = &[
    Peer::new(Ours, "cpz --threads=1", "cpz", "cpz --threads=1 tree copy"),
    ranks!(2, "cpz-mpi", "--threads=1 tree copy"),
    ranks!(4, "cpz-mpi", "--threads=1 tree copy"),
    ranks!(8, "cpz-mpi", "--threads=1 tree copy"),
    ranks!(8, "dcp", "tree copy"),
];
/// The peers that remove a tree from a fast filesystem with two threads, in one or two processes.
pub(crate) const RANKS_REMOVE: &[Peer] = &[
    Peer::new(Ours, "rmz --threads=2", "rmz", "rmz --threads=2 tree"),
    ranks!(2, "rmz-mpi", "--threads=1 tree"),
];
/// The peers that copy a tree on a fast filesystem with two threads, in one or two processes.
pub(crate) const RANKS_COPY: &[Peer] = &[
    Peer::new(Ours, "cpz --threads=2", "cpz", "cpz --threads=2 tree copy"),
    ranks!(2, "cpz-mpi", "--threads=1 tree copy"),
];

/// Makes a list of one of our commands with each of these numbers of threads.
macro_rules! fixed {
    ($program:literal, $operands:literal: $($threads:literal)*) => {
        &[$(Peer::new(
            Fixed,
            concat!($program, " --threads=", $threads),
            $program,
            concat!($program, " --threads=", $threads, " ", $operands),
        )
        .at_once($threads)),*]
    };
}

/// rmz with fixed numbers of threads.
pub(crate) const RMZ_FIXED: &[Peer] = fixed!("rmz", "tree": 1 2 4 8 16 32 64 128);
/// cpz with fixed numbers of threads.
pub(crate) const CPZ_FIXED: &[Peer] = fixed!("cpz", "tree copy": 1 2 4 8 16 32 64 128);

/// The peers that take turns to copy a tree in the cells of `steady`.
pub(crate) const STEADY_COPY: &[Peer] = &[CPZ, CP];
/// The peers that take turns to remove the copy in the cells of `steady`.
pub(crate) const STEADY_REMOVE: &[Peer] = &[
    Peer::new(Ours, "rmz", "rmz", "rmz copy"),
    Peer::new(Reference, "rm -r", "rm", "rm -r copy"),
];
/// cpz with fixed numbers of threads, as in [`STEADY_COPY`].
pub(crate) const STEADY_CPZ_FIXED: &[Peer] = fixed!("cpz", "tree copy": 1 2 4 8);
/// rmz with fixed numbers of threads, as in [`STEADY_REMOVE`].
pub(crate) const STEADY_RMZ_FIXED: &[Peer] = fixed!("rmz", "copy": 1 2 4 8);

/// The peers that bring a copy up to date, with modes, owners and times.
///
/// `rsync -a` keeps the same attributes of such a tree, but does more. It copies after any difference in size or
/// time, while `-u` asks only whether the source is newer. It gives a file its name only when the file is complete.
pub(crate) const UPDATE: &[Peer] = &[
    Peer::new(Ours, "cpz -up", "cpz", "cpz -upT tree copy"),
    Peer::new(Reference, "cp -upr", "cp", "cp -uprT tree copy"),
    Peer::new(Other, "rsync -a", "rsync", "rsync -a tree/ copy/"),
];

/// The libraries that remove a tree.
pub(crate) const LIBRARY_REMOVE: &[Peer] = &[
    Peer::new(Ours, "fuc_engine", "rm_fuc_engine", "rm_fuc_engine tree"),
    Peer::new(
        Reference,
        "std::fs::remove_dir_all",
        "rm_stdlib",
        "rm_stdlib tree",
    ),
    Peer::new(
        Other,
        "remove_dir_all",
        "rm_remove_dir_all",
        "rm_remove_dir_all tree",
    ),
    Peer::new(Other, "fs_extra", "rm_fs_extra", "rm_fs_extra tree"),
];
/// The libraries that copy a tree.
pub(crate) const LIBRARY_COPY: &[Peer] = &[
    Peer::new(
        Ours,
        "fuc_engine",
        "cp_fuc_engine",
        "cp_fuc_engine tree copy",
    ),
    Peer::new(Reference, "by hand", "cp_stdlib", "cp_stdlib tree copy"),
    Peer::new(Other, "dircpy", "cp_dircpy", "cp_dircpy tree copy"),
    Peer::new(Other, "fs_extra", "cp_fs_extra", "cp_fs_extra tree copy"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_peers_has_one_of_ours_and_one_to_compare_with() {
        for set in [
            REMOVE,
            COPY,
            REAL_REMOVE,
            REAL_COPY,
            FILESYSTEM_REMOVE,
            FILESYSTEM_COPY,
            SLOW_REMOVE,
            SLOW_COPY,
            STEADY_REMOVE,
            STEADY_COPY,
            UPDATE,
            LIBRARY_REMOVE,
            LIBRARY_COPY,
        ] {
            for role in [Role::Ours, Role::Reference] {
                assert_eq!(set.iter().filter(|peer| peer.role == role).count(), 1);
            }
        }
    }
}
