//! Removal in the background: `--detach` hides directories at once, and `--reap` finishes what is left over.
//!
//! A directory is hidden by one rename, into a *container* beside it. A process in the background, the *daemon*,
//! then removes what is in the container, and the container. These are the names:
//!
//! ```text
//!   parent/project                            what the user names
//!   parent/.rmz-0f…3c/                        the container: mode 0700, locked by the process that uses it
//!   parent/.rmz-0f…3c/.rmz-0f…3c              the mark: an empty file of the same name
//!   parent/.rmz-0f…3c/project                 the tree, with its own name
//! ```
//!
//! Power may fail between any two steps. Each state names the steps by which `--reap` goes on:
//!
//! ```text
//!  absent ─▶ new ─▶ empty ─▶ marked ─▶ marked, with trees ─▶ marked ─▶ empty ─▶ absent
//!         mkdir  chmod   create    rename          remove trees  unlink   rmdir
//! ```
//!
//! Two invariants. **Nothing is hidden that no process knows about:** the daemon is started first, learns each name
//! before the rename, and goes on if the command is killed. **In the background, only what this run has moved into a container is
//! removed,** by calls that start at the open container. `--reap` empties only containers with a mark. Once a tree is
//! in a container, no call uses its path.
//!
//! # Threats
//!
//! | threat | answer |
//! |---|---|
//! | Another user creates the container's name beforehand, as a link or a directory. | The name has 128 random bits, `mkdir` never replaces a name, and the directory that was opened must belong to the caller, with the mode of a new container. Otherwise the operand is removed in the foreground. |
//! | Another user replaces a new container by another private directory of the caller before it is opened. | A new container has mode 0300, which no program gives to a directory that it writes to itself, and must be empty. It gets mode 0700 and its mark only when it is open. From then on only the open directory counts. |
//! | Another process adds to a container or replaces what is in it. | Only its owner and the superuser can. The daemon removes only entries with an announced name, device and inode number. Then the container stays, and the log says so. |
//! | Another user replaces the container, or a directory that leads to it, by a link. | The daemon holds both directories open, and uses no path. By name it only calls `rmdir` on the container, which removes nothing but an empty directory. The other user can do that, too. |
//! | Another user replaces the operand just before the rename. | The command announces the entry that was moved instead. A user with the permission to rename there can do so before rmz starts, too. A rename never follows a link in the last component, and moves neither `/` nor a mount point. |
//! | Another user plants a name `.rmz-…` for `--reap`. | It must be a directory of the caller with mode 0700, opened without following links. So the plant can only be a private directory of the caller that the other user may rename. It has no mark of its new name, and only its owner can make one: `--reap` only tries `rmdir`, which fails if the directory has an entry. |
//! | A renamed container of the caller is planted. | Its mark has another name, so `--reap` leaves it alone. |
//! | Two runs detach the same operand. | One rename succeeds. The other run reports that there is no such file, as rm does. |
//! | `--reap` finds a container in use. | The process that uses it holds an exclusive `flock` on it, which the kernel drops when the process ends. `--reap` skips it. |
//! | A run makes a container, and `--reap` removes it before it is locked. | The run cannot mark it, or cannot lock it, and removes the operand in the foreground. |
//! | The filesystem has no locks for directories, as NFS. | Both remove the same trees, and a name that is gone is not a failure. A container that gets another tree before `rmdir` gets its mark again, and counts as in use. |
//! | The filesystem keeps no owners or modes, as FAT. | The container is not private, so the operand is removed in the foreground. |
//! | The terminal closes, or the user logs out. | The daemon has its own session and ignores SIGHUP. If the system kills it, `--reap` goes on. |
//! | A signal or a closed pipe ends the command. | The daemon sees the end of its socket, and removes what was hidden so far. |
//! | A signal ends the daemon. | If it comes while the command hides, the command reports what stays. After SIGINT and SIGTERM, the log says what stays. |
//! | No process can be started, or descriptors run out. | Nothing more is hidden. The other operands are removed in the foreground. |
//!
//! A container instead of a new name for the directory itself has three advantages: it needs no
//! `RENAME_NOREPLACE`, which NFS and some FUSE filesystems lack; other users cannot reach the tree any more; and
//! the tree keeps its name. It has one disadvantage: a directory changes its parent only if its mode lets the caller
//! write to it. Others are removed in the foreground.
//!
//! # Checks
//!
//! Everything that rm refuses is left to a removal in the foreground: `.`, `..`, `/`, missing names, mount points
//! (which cannot be renamed) and, with `--preserve-root=all`, operands on another device than their parent.
//! Every failure to hide an operand leads there, too. So messages and exit status about operands are those of rm.
//! Failures below a hidden operand go to the log, and do not change the exit status.
//!
//! | file | content |
//! |---|---|
//! | `hide` | `--detach`: hides operands, or removes them in the foreground |
//! | `daemon` | the background process, and the messages to it |
//! | `reap` | `--reap`: finds containers and removes them |
//! | `container` | a container: creating, filling, recognising and removing it |
//! | `log` | the log to which the daemon reports |

mod container;
mod daemon;
mod hide;
mod log;
mod reap;

pub(crate) use hide::detach;
pub(crate) use reap::reap;

use std::path::Path;

use fuc_cli::locale::Charset;
use fuc_cli::quote;
use fuc_cli::wording::errno_text;
use rustix::io::Errno;

/// Returns rm's diagnostic for a name that cannot be removed.
fn cannot_remove(path: &Path, errno: Errno, charset: Charset) -> String {
    let (path, reason) = (quote::always(path, charset), errno_text(&errno.into()));
    format!("cannot remove {path}: {reason}")
}

/// Returns the line about a container that stays, whose path is absolute.
fn leftover(path: &Path, charset: Charset) -> String {
    let place = path.parent().unwrap_or(Path::new("/"));
    let [path, place] = [path, place].map(|path| quote::always(path, charset));
    format!("{path} stays; to try again: rmz --reap {place}")
}
