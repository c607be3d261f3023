//! Shares one removal or one copy between several engines: processes on one machine or on many.
//!
//! *Children finish their parents*, across machines, too. Every engine has the same operands. One of them *leads*:
//! it begins the operands. The others *assist*: they begin with nothing, and steal. An engine whose workers have
//! nothing to do is a *thief*. It asks another engine, the *victim*, for directories that are queued there and not
//! begun, or for a part of a listing. This module knows nothing of how they talk to each other: that is an [`Exchange`].
//!
//! ```text
//!   victim                                          thief
//!   ------                                          -----
//!                                                   a worker has no tasks: Exchange::steal
//!   Incoming::Request  <---------------------------
//!   a worker takes the oldest half of its queued
//!   directories, or half of the names of a listing,
//!   and keeps a use of the parent's node behind a
//!   ticket: Exchange::give  ----------------------> Incoming::Stolen
//!                                                   opens the parent, makes a borrowed node of it;
//!                                                   removes or copies the entries in it
//!                                                   the last use of the borrowed node is dropped:
//!   Incoming::Returned  <-------------------------- Exchange::give_back
//!   drops the use of the parent's node, and climbs
//! ```
//!
//! - **What travels.** [`Stolen`] names entries of one parent: the index of the operand, the names on the way to the
//!   parent, the identity of the parent, and the entries' own names and types. A copy has a parent on either side.
//! - **How a thief reaches the parent.** It opens the operand and then one component after the other. It follows a
//!   link only if the victim would follow it, too. The parent must then have the inode number that the victim
//!   knows, and the time of birth if both know it. Device numbers differ between machines, so they are not compared.
//!   From there on, the thief works as any worker of the victim does: relative to the parent's descriptor.
//! - **What the victim counts.** Queued names are a user of their parent's node. The ticket keeps this use until
//!   the thief gives the names back, so no other count is needed. The victim first notes what the thief
//!   reports, [`Reply::Finished`], and then climbs as if one of its workers had finished the directory.
//! - **If a thief cannot reach the parent,** because it was renamed or is not mounted on that machine, it gives the
//!   names back as [`Reply::NotReached`]. The victim queues them again. So a thief reports no failure that
//!   the victim would not have met.
//! - **What can be stolen.** Operands cannot. Names very deep below their operand stay, because a thief opens each level
//!   above them. A worker never gives its last queued directory, so a chain of directories does not change hands. It
//!   gives a part of a listing if a thief asks and nothing that is queued can be given. So one flat directory is
//!   divided, too.
//! - **Why it ends.** All that is stolen is a user of a node of its victim. So the nodes of all engines are
//!   one tree, whose root is the leader's operand. When the leader has finished it, no engine has work left. The
//!   leader then reports its end by [`Exchange::end`], and each engine that assists gets [`Incoming::End`].
//! - **If an engine dies,** its tickets never come back, and the others wait. The exchange must notice that and end
//!   the job. What is left of the tree is intact, so the same run again completes it.
//!
//! # Large files
//!
//! An engine asks [`Exchange::divides`] before it creates the dest of a large file. If the answer is `true`, the dest has a hidden
//! name until it is complete, and [`Exchange::divide`] lets other machines copy parts of it, by means of the caller. The worker waits
//! for them, and then gives the dest its attributes and its name. If a part is missing, it copies the whole content itself.
//!
//! - **Which files.** Those of at least 1 MiB with a new dest, of which the filesystem makes no copies by itself. On a local
//!   filesystem, these are only files whose blocks may not be shared.
//! - **What the engine counts.** It counts the file, and not the bytes that others have copied.
//!
//! # Hard links
//!
//! A copy that keeps hard links must know the first copy of a file when it meets another name of that file. So each
//! file that may have several names has a *home*, which is the same for all engines: [`Exchange::home`]. An
//! engine that meets a name, and is not the home, *entrusts* the entry to the home before it touches the dest:
//!
//! ```text
//!   engine that lists the directory                 home
//!   -------------------------------                 ----
//!   keeps one use of the directory's
//!   node behind a ticket: Exchange::entrust ------> Incoming::Stolen
//!                                                   opens the directory, makes a borrowed node of it;
//!                                                   copies each entry, or links it to the first copy
//!   Incoming::Returned  <-------------------------- Exchange::give_back
//!   drops the use of the node, and climbs
//! ```
//!
//! - **No engine waits for another one here.** The home alone decides about all names of a file. An entry that waits
//!   for the first copy waits at its home, and for a worker of the home.
//! - **If all links are followed,** each file may have other names: the links to it. So all files are copied by their
//!   homes.
//! - **If the home cannot reach the directory,** it tries again. The client of a server may have cached for a minute what
//!   was at a name before. In the end the entries fail: a copy of its own would lose the link.
//! - **Operands** stay with the leader. So if an operand is not a directory, the leader must be the home of all files.
//!
//! # What each engine does by itself
//!
//! - It reports the failures and events that it meets, and its own part of the summary. The order of the operands holds
//!   for its own reports only. Questions, too, come from every engine and in no order.
//! - It verifies what it has copied, and writes it to the disk if the copy is [durable](crate::CopyOp::durable).
//! - It writes files that are overwritten in place one after the other. So after SIGKILL, as many files may be incomplete
//!   as there are engines.
//! - It keeps its own workers from writing to one dest at once. So if two names in an older directory are one file,
//!   because of hard links or of case, two engines may write to it together.
//! - It knows only its own large files when it looks for free space.
//! - It does not try again a removal that fails because the filesystem is full.
//! - It counts what it deletes. Each engine has [the limit](crate::Deletion::most) of its own.
//! - It takes all operands at once. A dry run is not shared.
//!
//! # Where it is
//!
//! Nothing of this is compiled without the feature `distribute`: this module, `walk/sharing`, `sched/others`,
//! `copy/run/sharing`, and what calls them in `walk/mod`, `remove/run`, `copy/run` and `copy/run/pipeline`. `setup` and
//! `copy/make/file` say what a copy does instead.

use std::ffi::CStr;
use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::paths;
use crate::sys::{self, Identity};

/// The role of an engine in a job that several engines share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The engine begins the operands.
    Leader,
    /// The engine only works on what it gets from others, until the exchange [ends](Incoming::End) the run.
    Assistant,
}

/// Connects an engine with the others that work on the same operands.
///
/// The methods are called from several threads at once. Only [`receive`](Self::receive) and [`divide`](Self::divide) may wait.
pub trait Exchange: Sync {
    /// Returns the number of this engine, by which its tickets name it. Each engine has another one.
    fn engine(&self) -> u32;

    /// Waits for the next message to this engine. It is called by one thread of its own.
    fn receive(&self) -> Incoming;

    /// Asks for work, because a worker of this engine has none. The call is repeated until there is some. The
    /// exchange chooses the victim.
    fn steal(&self);

    /// Gives entries to a thief. The call follows an [`Incoming::Request`], which may have been for another
    /// thief.
    ///
    /// If no thief wants them any more, the exchange [gives them back](Self::give_back) as [`Reply::NotReached`].
    fn give(&self, stolen: Vec<Stolen>);

    /// Gives back what was received as [`Incoming::Stolen`], to the engine that is [the victim](Ticket::victim).
    fn give_back(&self, ticket: Ticket, reply: Reply);

    /// Returns the [engine](Self::engine) that is the home of all files with this inode number.
    ///
    /// It must be the same for all engines and during the whole run. It must be the leader for all files if an
    /// operand is not a directory. A removal does not ask.
    fn home(&self, inode: u64) -> u32;

    /// Gives entries to `engine`, their home, which has not asked for them. The home gets them as
    /// [`Incoming::Stolen`], and they come back as stolen ones do. A removal does not call this.
    ///
    /// If the home does not take part, the exchange gives them back to this engine as [`Reply::NotReached`]. Then
    /// they are reported as failed.
    fn entrust(&self, engine: u32, entries: Vec<Stolen>);

    /// Returns `true` if several machines may copy parts of a file of so many bytes. A removal does not ask.
    fn divides(&self, bytes: u64) -> bool;

    /// Lets several machines copy a range of a file, and waits for them. Calls `goes_on` a few times in a second, and ends
    /// when it returns `false`. Returns `true` if the dest has the whole range, which every machine that wrote to it has closed.
    fn divide(
        &self,
        file: &LargeCopy,
        range: Range<u64>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool;

    /// Notes that the run of this engine has ended. The exchange must answer with [`Incoming::End`].
    fn end(&self);
}

/// A message to an engine.
#[derive(Debug)]
pub enum Incoming {
    /// Another engine asks for work. A worker that has some calls [`Exchange::give`] later. If none has, the
    /// request is forgotten, and may be repeated.
    Request,
    /// This engine gets entries that another one has given or entrusted to it.
    Stolen(Vec<Stolen>),
    /// Entries that this engine has given come back.
    Returned(Ticket, Reply),
    /// No more messages follow. An engine that assists ends when its workers have no tasks.
    End,
}

/// Identifies entries that an engine has given away, until they come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// The [engine](Exchange::engine) that has given them.
    pub victim: u32,
    /// A number that the engine uses once.
    pub number: u64,
}

/// The copy of a large file that several machines make together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeCopy {
    /// The path of the source.
    #[serde(with = "paths::bytes")]
    pub source: PathBuf,
    /// The path that the dest has until it is complete. It has the size of the source.
    #[serde(with = "paths::bytes")]
    pub dest: PathBuf,
    /// The number of names at the end of both paths that were found below an operand. No link may replace one of the
    /// directories among them. It is 0 if the file is an operand itself.
    pub names_below: usize,
    /// The inode numbers of the source and of the dest.
    pub inodes: [u64; 2],
    /// The size of the source.
    pub bytes: u64,
    /// The second in which the source was modified.
    pub modified: i64,
}

/// The reply of a thief that gives entries back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Nothing is left to do there.
    Finished(Finished),
    /// The parent could not be opened. Nothing was done.
    NotReached,
}

/// The state of entries after the work on them. By default, nothing is left to do that matters to the directories above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Something stays, because it could not be removed or the run was cancelled. So the directories above stay, too.
    pub kept: bool,
    /// The filter has left something alone. So the directories above stay, too.
    pub left_alone: bool,
    /// A name was removed from the parent.
    pub changed: bool,
}

/// Entries of one directory that a victim gives to a thief or to their home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stolen {
    pub(crate) ticket: Ticket,
    /// The index of the operand below which the entries are.
    pub(crate) operand: u32,
    /// The parent on each [`Side`](crate::node::Side).
    pub(crate) parents: [ParentId; 2],
    /// The part of the parent's state that its entries need, in a form that only a removal or only a copy knows.
    pub(crate) inheritance: u8,
    /// The names on the way from the operand to the parent. There are none if the operand is the parent.
    pub(crate) path: Vec<FileName>,
    /// The entries were not asked for: the engine that gets them is their home.
    pub(crate) is_for_home: bool,
    /// The time after which an engine that could not reach the parent gives up.
    #[serde(skip)]
    pub(crate) last_try: Option<Instant>,
    /// Names of entries, after the type of each as in [`Listed`](sys::Listed).
    pub(crate) names: Vec<(u8, FileName)>,
}

/// A name in a directory: a single component, and neither `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Box<CStr>")]
pub(crate) struct FileName(Box<CStr>);

impl From<&CStr> for FileName {
    /// `name` comes from the kernel.
    fn from(name: &CStr) -> Self {
        Self(name.into())
    }
}

impl Deref for FileName {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        &self.0
    }
}

impl TryFrom<Box<CStr>> for FileName {
    type Error = &'static str;

    fn try_from(name: Box<CStr>) -> Result<Self, Self::Error> {
        let bytes = name.to_bytes();
        let is_one_name =
            paths::is_one_name(bytes) && !bytes.contains(&b'/') && bytes.len() <= LONGEST_NAME;
        match is_one_name {
            true => Ok(Self(name)),
            false => Err("not a name in a directory"),
        }
    }
}

/// The longest name that is accepted, in bytes. No filesystem has longer ones.
const LONGEST_NAME: usize = 4095;

/// The identity of a directory, as far as all machines agree on it. By default, it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParentId {
    /// The inode number, or 0 if the victim does not know it. Then no engine reaches the parent.
    pub(crate) inode: u64,
    /// A hash of the time of birth, or 0 if it is unknown.
    pub(crate) birth: u32,
}

impl ParentId {
    pub(crate) fn of(identity: Identity) -> Self {
        Self {
            inode: identity.file().inode,
            birth: identity.birth(),
        }
    }

    /// Returns `true` if this is `dir`, whose identity on this machine is `found`.
    pub(crate) fn is_of(self, dir: BorrowedFd<'_>, found: Identity) -> bool {
        let id = Self::of(found);
        let is_same_birth = id.birth == self.birth || id.birth == 0 || self.birth == 0;
        id.inode == self.inode && (is_same_birth || !sys::keeps_identities(dir))
    }
}

impl Stolen {
    /// Returns the ticket by which the engine that has given it knows it.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what another engine gets.
    fn travelled<T: Serialize + for<'a> Deserialize<'a>>(sent: &T) -> postcard::Result<T> {
        postcard::from_bytes(&postcard::to_allocvec(sent).unwrap())
    }

    #[test]
    fn what_is_stolen_arrives_as_it_was_sent() {
        let names = (0..=u8::MAX).map(|record_type| (record_type, c"\xff\n".into()));
        let sent = Stolen {
            ticket: Ticket {
                victim: 1,
                number: 7,
            },
            operand: 2,
            parents: [
                ParentId {
                    inode: u64::MAX,
                    birth: 9,
                },
                ParentId::default(),
            ],
            inheritance: 4,
            path: vec![c"b".into(), c"...".into()],
            is_for_home: true,
            last_try: None,
            names: names.collect(),
        };
        assert_eq!(travelled(&sent), Ok(sent));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = std::ffi::CString::new([b'a'; LONGEST_NAME + 1]).unwrap();
        for name in [c"", c".", c"..", c"/", c"a/b", &*long] {
            assert!(travelled(&FileName::from(name)).is_err(), "{name:?}");
        }
    }
}
