//! Copies trees.
//!
//! A directory's copy is made when the directory is entered, and gets its final mode when the
//! last entry under it is finished, by the same climb that removes a directory in a removal.
//! Everything else takes one way, which [`run`] describes:
//!
//! ```text
//! look ─▶ decide ─▶ back up or unlink ─▶ make ─▶ set attributes ─▶ report
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `op` | the public entry points |
//! | `options` | [`CopyOp`], the options of a caller: data only |
//! | `facts` | facts about a file, made once from a stat; an entry: its names and directories; an entry that is kept for later; what is kept for each directory in flight |
//! | `policy` | the options of a run and the rules of the system, and the answers that need nothing else |
//! | `decide/mode` | the modes that dests are created with and end up with |
//! | `decide/overwrite` | whether a dest that exists is replaced, and whether that would destroy the source |
//! | `decide/clear` | what happens to a dest that is in the way |
//! | `decide/times` | whether a dest is older than its source, and what a filesystem makes of times |
//! | `look` | the stats that decisions ask for; sources that are open |
//! | `context` | what all stages share: paths and events; how the dest of an entry is treated, and whether rules apply to it |
//! | `diagnose` | errors about entries, and which is reported first |
//! | `dest/` | makes room for a copy: unlinks the dest, if that is decided |
//! | `dest/overwrite` | applies the rules for existing dests, and asks their filesystem which times it stores |
//! | `dest/alias` | whether a dest is the source, or equal to it |
//! | `dest/directory` | makes or opens a dest directory |
//! | `dest/open` | creates or opens a dest file; dangling links |
//! | `dest/backup` | names backups, and renames dests to them and back |
//! | `content/` | moves content by the best possible way |
//! | `content/sparse` | finds the holes of a source, and leaves holes in a dest |
//! | `content/range` | copies a range of a file that several workers copy |
//! | `content/read_ahead` | lets the kernel read the source of a slow server ahead |
//! | `attributes/` | sets times, owner, extended attributes and mode, in the order of cp |
//! | `attributes/xattrs` | extended attributes, permissions and ACLs |
//! | `make/file` | copies regular files and the content of special files |
//! | `make/` | copies symbolic links, FIFOs, sockets and devices; makes links instead of copies; what a worker keeps from file to file |
//! | `make/hardlink` | the table of sources with several names, and links to the first copy of each |
//! | `make/directory` | enters and finishes directories |
//! | `changes` | makes the changes at the dests |
//! | `changes/plan` | a dry run: what would be at the dests by now, and which calls would be permitted |
//! | `large/` | which files are large, and whether the rest of one is halved |
//! | `large/naming` | dests that get their names when they are complete: they have none before, or a hidden one |
//! | `large/room` | the large files that are being written, and those that wait for them |
//! | `large/divided` | a file of which several engines copy parts |
//! | `operand` | one operand: its source and where its copy goes; opens the directories on the way to a dest, one by one |
//! | `collisions` | two names that the filesystem of the dests takes for one; operands that name the same source or dest |
//! | `writers` | the dests that are being written, so that no two workers write one of them at once |
//! | `durability` | writes copies to the disk before the run ends |
//! | `parents` | makes the directories on the way to a dest, for `--parents` |
//! | `run` | one run, from its operands to its summary |
//! | `run/visitor` | the run, as the walk sees it: lists, enters and finishes directories |
//! | `run/pipeline` | leads one entry through the stages |
//! | `run/making` | fills the dest of an entry, or links it to a copy; counts and reports each copy |
//! | `run/large` | leads a large file from its listing to its end |
//! | `run/durable` | which directories and filesystems are written to the disk |
//! | `run/verifying` | compares copies with their sources, in batches |
//! | `run/sharing` | the part in a copy that several engines share |
//! | `run/tasks` | what is queued besides directories: operands, and entries that are copied later |
//!
//! Only `op` imports `run`. `decide` makes no system call. Only `dest` and `changes` rename, replace,
//! unlink or truncate a dest that was there before its copy.

mod attributes;
mod changes;
mod collisions;
mod content;
mod context;
mod decide;
mod dest;
mod diagnose;
mod durability;
mod facts;
mod large;
mod look;
mod make;
mod op;
mod operand;
mod options;
mod parents;
mod policy;
mod run;
mod writers;

pub use op::copy_tree;
pub use options::{
    Backup, CopyOp, Dereference, Dest, DestRules, LinkKind, ModePolicy, Preserve, Reflink, Replace,
    Sparse, Xattrs,
};
