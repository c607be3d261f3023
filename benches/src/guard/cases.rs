//! The cases that the guard compares.

use crate::run::tracer::Uniform;

/// A command on two trees, whose difference is the cost of more files or directories.
pub(super) struct CallsCase {
    pub(super) name: &'static str,
    pub(super) command: &'static str,
    pub(super) few: Uniform,
    pub(super) many: Uniform,
}

/// The smaller tree of most cases.
const BASE: Uniform = Uniform {
    dirs: 20,
    files: 10,
    file_bytes: 0,
};

const RMZ: &str = "rmz --threads=1 tree";
const CPZ: &str = "cpz --threads=1 tree copy";
const DATA: Uniform = Uniform {
    file_bytes: 4096,
    ..BASE
};
const MORE_FILES: u64 = BASE.files + 5;
const MORE_DIRS: u64 = BASE.dirs + 5;

/// The cases of which system calls are counted.
pub(super) const CALLS: &[CallsCase] = &[
    CallsCase {
        name: "rmz, 100 more files",
        command: RMZ,
        few: BASE,
        many: Uniform {
            files: MORE_FILES,
            ..BASE
        },
    },
    CallsCase {
        name: "rmz, 5 more directories",
        command: RMZ,
        few: BASE,
        many: Uniform {
            dirs: MORE_DIRS,
            ..BASE
        },
    },
    CallsCase {
        name: "cpz, 100 more empty files",
        command: CPZ,
        few: BASE,
        many: Uniform {
            files: MORE_FILES,
            ..BASE
        },
    },
    CallsCase {
        name: "cpz, 100 more files of 4 KiB",
        command: CPZ,
        few: DATA,
        many: Uniform {
            files: MORE_FILES,
            ..DATA
        },
    },
    CallsCase {
        name: "cpz, 5 more directories",
        command: CPZ,
        few: BASE,
        many: Uniform {
            dirs: MORE_DIRS,
            ..BASE
        },
    },
];

/// A command on one tree.
pub(super) struct InstructionsCase {
    /// The name that a commit's `Accepts-cost` line gives.
    pub(super) name: &'static str,
    pub(super) program: &'static str,
    pub(super) args: &'static str,
    pub(super) tree: Uniform,
}

/// The cases of which instructions are counted.
pub(super) const INSTRUCTIONS: &[InstructionsCase] = &[
    InstructionsCase {
        name: "rmz-files",
        program: "rmz",
        args: "--threads=1 tree",
        tree: Uniform {
            dirs: 50,
            files: 40,
            file_bytes: 0,
        },
    },
    InstructionsCase {
        name: "rmz-directories",
        program: "rmz",
        args: "--threads=1 tree",
        tree: Uniform {
            dirs: 1000,
            files: 1,
            file_bytes: 0,
        },
    },
    InstructionsCase {
        name: "cpz-empty-files",
        program: "cpz",
        args: "--threads=1 tree copy",
        tree: Uniform {
            dirs: 50,
            files: 40,
            file_bytes: 0,
        },
    },
    InstructionsCase {
        name: "cpz-files-with-data",
        program: "cpz",
        args: "--threads=1 tree copy",
        tree: Uniform {
            dirs: 50,
            files: 20,
            file_bytes: 4096,
        },
    },
    InstructionsCase {
        name: "cpz-directories",
        program: "cpz",
        args: "--threads=1 tree copy",
        tree: Uniform {
            dirs: 1000,
            files: 1,
            file_bytes: 0,
        },
    },
];
