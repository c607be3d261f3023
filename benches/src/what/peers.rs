//! The peers: the commands that compete in a cell.
//!
//! Every command runs in the directory that holds the trees, under fixed names: `tree` is removed, or copied to
//! `copy`; `empty` is an empty directory. Each list has ours first, and then GNU's or the standard library's.

/// A command that does the work of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) label: &'static str,
    /// The program that must be installed.
    pub(crate) program: &'static str,
    pub(crate) command: &'static str,
}

const fn peer(label: &'static str, program: &'static str, command: &'static str) -> Peer {
    Peer {
        label,
        program,
        command,
    }
}

const RMZ: Peer = peer("rmz", "rmz", "rmz tree");
const RM: Peer = peer("rm -r", "rm", "rm -r tree");
const RMZ_ONE: Peer = peer("rmz --threads=1", "rmz", "rmz --threads=1 tree");
const RMZ_MANY: Peer = peer("rmz --threads=32", "rmz", "rmz --threads=32 tree");
const RMZ_PUBLISHED: Peer = peer("rmz (published)", "rmz-published", "rmz-published tree");
pub(crate) const RM_RAYON: Peer = peer("rm_rayon", "rm_rayon", "rm_rayon tree");
const RM_STDLIB: Peer = peer("rm_stdlib", "rm_stdlib", "rm_stdlib tree");
const RSYNC_REMOVE: Peer = peer("rsync --delete", "rsync", "rsync -r --delete empty/ tree/");
/// It can remove only a directory without subdirectories.
pub(crate) const PERL: Peer = peer(
    "perl unlink",
    "perl",
    "perl -e 'opendir D, q(tree); unlink map qq(tree/$_), readdir D; rmdir q(tree)'",
);

const CPZ: Peer = peer("cpz", "cpz", "cpz tree copy");
const CP: Peer = peer("cp -r", "cp", "cp -r tree copy");
const CPZ_ONE: Peer = peer("cpz --threads=1", "cpz", "cpz --threads=1 tree copy");
const CPZ_MANY: Peer = peer("cpz --threads=32", "cpz", "cpz --threads=32 tree copy");
const CPZ_PUBLISHED: Peer = peer(
    "cpz (published)",
    "cpz-published",
    "cpz-published tree copy",
);
const CP_STDLIB: Peer = peer("cp_stdlib", "cp_stdlib", "cp_stdlib tree copy");
pub(crate) const FCP: Peer = peer("fcp", "fcp", "fcp tree copy");
pub(crate) const XCP: Peer = peer(
    "xcp",
    "xcp",
    "xcp -r --no-timestamps --no-progress tree copy",
);
const XCP_MANY: Peer = peer(
    "xcp -w 64",
    "xcp",
    "xcp -r -w 64 --no-timestamps --no-progress tree copy",
);
const CPX: Peer = peer("cpx", "cpx", "cpx -r -P tree/. copy");
const RSYNC_COPY: Peer = peer("rsync", "rsync", "rsync -rlp --inplace tree/ copy/");

// The longest cells take only the first peers of a list.

/// The peers that remove a whole tree.
pub(crate) const REMOVE: &[Peer] = &[
    RMZ,
    RM,
    RMZ_PUBLISHED,
    RM_RAYON,
    peer("find -delete", "find", "find tree -delete"),
    peer(
        "rm_remove_dir_all",
        "rm_remove_dir_all",
        "rm_remove_dir_all tree",
    ),
    RM_STDLIB,
    RSYNC_REMOVE,
    peer("rm (uutils)", "rm-uutils", "rm-uutils -r tree"),
    peer("rrm", "rrm", "rrm tree"),
];

/// The peers that copy a whole tree.
pub(crate) const COPY: &[Peer] = &[
    CPZ,
    CP,
    CPZ_PUBLISHED,
    peer("cp_rayon", "cp_rayon", "cp_rayon tree copy"),
    FCP,
    XCP,
    peer("wcp", "wcp", "wcp tree copy"),
    CP_STDLIB,
    peer(
        "tar | tar",
        "tar",
        "sh -c 'mkdir copy && tar -C tree -cf - . | tar -C copy -xmf -'",
    ),
    CPX,
    RSYNC_COPY,
    peer("cp (uutils)", "cp-uutils", "cp-uutils -r tree copy"),
    peer("rcp", "rcp", "rcp tree copy"),
];

/// The peers that remove a real tree.
pub(crate) const REAL_REMOVE: &[Peer] = &[RMZ, RM, RMZ_PUBLISHED];
/// The peers that copy a real tree.
pub(crate) const REAL_COPY: &[Peer] = &[CPZ, CP, CPZ_PUBLISHED, XCP, RSYNC_COPY, CPX];
/// The peers that remove a tree from each filesystem.
pub(crate) const FILESYSTEM_REMOVE: &[Peer] = &[RMZ, RM, RMZ_PUBLISHED, RMZ_ONE];
/// The peers that copy a tree on each filesystem.
pub(crate) const FILESYSTEM_COPY: &[Peer] = &[CPZ, CP, CPZ_PUBLISHED, CPZ_ONE];

/// The peers that remove a tree from a slow filesystem.
pub(crate) const SLOW_REMOVE: &[Peer] = &[
    RMZ,
    RM,
    RMZ_PUBLISHED,
    RMZ_MANY,
    RSYNC_REMOVE,
    peer(
        "drm, 8 ranks",
        "drm",
        "mpirun --allow-run-as-root --oversubscribe -n 8 drm tree",
    ),
];
/// The peers that copy a tree on a slow filesystem.
pub(crate) const SLOW_COPY: &[Peer] = &[
    CPZ,
    CP,
    CPZ_PUBLISHED,
    CPZ_MANY,
    FCP,
    XCP_MANY,
    RSYNC_COPY,
    peer(
        "dcp, 32 ranks",
        "dcp",
        "mpirun --allow-run-as-root --oversubscribe -n 32 dcp tree copy",
    ),
];

/// Returns the command of a job with this number of ranks, each of which is a client of the server.
macro_rules! ranks {
    ($number:literal, $command:literal) => {
        concat!(
            "mpirun --allow-run-as-root --oversubscribe --bind-to none -n ",
            $number,
            " as-client ",
            $command
        )
    };
}

/// The peers that remove a tree as several clients of a server.
pub(crate) const CLIENTS_REMOVE: &[Peer] = &[
    peer("rmz-mpi, 8 ranks", "rmz-mpi", ranks!(8, "rmz-mpi tree")),
    peer("rm -r", "rm", "as-client rm -r tree"),
    peer("rmz-mpi, 1 rank", "rmz-mpi", ranks!(1, "rmz-mpi tree")),
    peer("drm, 8 ranks", "drm", ranks!(8, "drm tree")),
];
/// The peers that copy a tree as several clients of a server.
pub(crate) const CLIENTS_COPY: &[Peer] = &[
    peer(
        "cpz-mpi, 8 ranks",
        "cpz-mpi",
        ranks!(8, "cpz-mpi tree copy"),
    ),
    peer("cp -r", "cp", "as-client cp -r tree copy"),
    peer("cpz-mpi, 1 rank", "cpz-mpi", ranks!(1, "cpz-mpi tree copy")),
    peer("dcp, 8 ranks", "dcp", ranks!(8, "dcp tree copy")),
];

/// The libraries that remove a tree.
pub(crate) const LIBRARY_REMOVE: &[Peer] = &[
    peer("fuc_engine", "rm_fuc_engine", "rm_fuc_engine tree"),
    peer("std::fs::remove_dir_all", "rm_stdlib", "rm_stdlib tree"),
    peer(
        "remove_dir_all",
        "rm_remove_dir_all",
        "rm_remove_dir_all tree",
    ),
    peer("fs_extra", "rm_fs_extra", "rm_fs_extra tree"),
];
/// The libraries that copy a tree.
pub(crate) const LIBRARY_COPY: &[Peer] = &[
    peer("fuc_engine", "cp_fuc_engine", "cp_fuc_engine tree copy"),
    peer("by hand", "cp_stdlib", "cp_stdlib tree copy"),
    peer("dircpy", "cp_dircpy", "cp_dircpy tree copy"),
    peer("fs_extra", "cp_fs_extra", "cp_fs_extra tree copy"),
];
