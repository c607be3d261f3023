//! The messages of an engine to its rank, and of ranks to each other, with their form as bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use fuc_cli::console::Output;
use fuc_engine::Summary;
use fuc_engine::distribute::{LargeCopy, Reply, Stolen, Ticket};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The number of a rank.
pub(crate) type Rank = u32;

/// A message of the engine to its rank.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A worker has no work.
    Steal,
    /// The engine has work for a thief.
    Give(Vec<Stolen>),
    /// The engine has work for this rank alone.
    Entrust(Rank, Vec<Stolen>),
    /// The engine has finished what another rank gave it.
    GiveBack(Ticket, Reply),
    /// A worker waits for a permit.
    WantPermits,
    /// The rank has output.
    Text(Output),
    /// A worker wants this rank to copy a part of a large file.
    Divide(Rank, Box<Part>),
    /// This rank has copied a part for its owner, or has failed at it.
    Copied(Rank, Answer),
    /// The run of the engine has ended.
    End,
}

/// A message from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The sender wants work, now or later.
    Steal,
    /// The sender gives work, because the receiver wanted some.
    Work(Vec<Stolen>),
    /// The sender gives work that the receiver alone can do.
    Entrusted(Vec<Stolen>),
    /// The sender gives work back.
    GivenBack(Ticket, Reply),
    /// Output for rank 0 to print.
    Text(Output),
    /// The work that the sender has done since its last such message.
    Progress(Amount),
    /// A worker of the sender waits for a permit.
    WantPermits,
    /// Rank 0 issues permits for this number of entries or bytes.
    Permits(u64),
    /// All ranks skip the rest of their work.
    Cancel,
    /// The sender wants the receiver to copy a part of a large file.
    Copy(Box<Part>),
    /// The sender has copied a part, or has failed at it.
    Copied(Answer),
    /// Nothing is left to do. Rank 0 sends this.
    End,
    /// The last message of a rank to rank 0.
    Done(Box<RankResult>),
    /// The last message of all, from rank 0: whether the job has failed, so that the status of every rank is 1.
    Settled(bool),
}

/// A part of a large file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The rank that has begun the file.
    pub(crate) owner: Rank,
    /// The number by which the owner knows the file.
    pub(crate) file: u64,
    pub(crate) copy: LargeCopy,
    pub(crate) range: Range<u64>,
}

/// The answer of a rank that has copied a part, or has failed at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) file: u64,
    pub(crate) range: Range<u64>,
    pub(crate) is_copied: bool,
}

/// An amount of work, in the numbers of [`Counts`](fuc_engine::Counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) work: u64,
}

/// The result of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankResult {
    /// The totals of the rank's own work.
    pub(crate) summary: Summary,
    /// The rank could not take part.
    pub(crate) failed: bool,
    /// The diagnostics about files of patterns that the rank could not read. Several ranks may report the same file.
    pub(crate) unread_patterns: BTreeSet<String>,
    /// The number of failures that the rank has not written, by their reasons.
    pub(crate) surplus: BTreeMap<String, u64>,
}

/// Returns what is sent as bytes.
pub(crate) fn encode(sent: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(sent).expect("BUG: data without a form")
}

/// Reads what [`encode`] has returned. Returns `None` for anything else.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (sent, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(sent)
}

impl RankResult {
    /// Adds the result of another rank.
    pub(crate) fn add(&mut self, other: Self) {
        self.summary += other.summary;
        self.failed |= other.failed;
        self.unread_patterns.extend(other.unread_patterns);
        for (reason, failures) in other.surplus {
            *self.surplus.entry(reason).or_default() += failures;
        }
    }

    /// Returns `true` if nothing failed.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.summary.is_complete() && !self.failed && self.unread_patterns.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Asserts that data is read as it was written, and that no part of its bytes is.
    #[track_caller]
    pub(crate) fn assert_travels<T: Serialize + DeserializeOwned + std::fmt::Debug>(data: &T) {
        let bytes = encode(data);
        let read = decode::<T>(&bytes).map(|read| format!("{read:?}"));
        assert_eq!(read, Some(format!("{data:?}")));
        for end in 0..bytes.len() {
            assert!(decode::<T>(&bytes[..end]).is_none(), "{end} bytes");
        }
        assert!(decode::<T>(&[&bytes[..], b"x"].concat()).is_none());
    }

    fn result(number: u64) -> RankResult {
        let mut result = RankResult::default();
        result.summary.entries = number;
        result.summary.discarded = number + 11;
        result.summary.cancelled = true;
        result.unread_patterns = ["cannot open 'a'".to_owned()].into();
        result.surplus = [("a reason".to_owned(), number)].into();
        result
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let ticket = Ticket {
            victim: 4,
            number: 5,
        };
        for message in [
            Message::Steal,
            Message::Work(Vec::new()),
            Message::Entrusted(Vec::new()),
            Message::GivenBack(ticket, Reply::NotReached),
            Message::Text(Output::Lines(b"a\n".to_vec())),
            Message::Text(Output::Diagnostics(b"b\n".to_vec())),
            Message::Progress(Amount {
                entries: 1,
                bytes: 2,
                work: 3,
            }),
            Message::WantPermits,
            Message::Permits(5),
            Message::Cancel,
            Message::Copied(Answer {
                file: 1,
                range: 2..3,
                is_copied: true,
            }),
            Message::End,
            Message::Done(Box::new(result(7))),
            Message::Settled(true),
        ] {
            assert_travels(&message);
        }
        assert_eq!(decode::<Message>(&[15]), None);
    }

    #[test]
    fn results_are_summed() {
        let mut sum = RankResult::default();
        sum.add(result(1));
        sum.add(result(10));
        assert_eq!(sum.summary.entries, 11);
        assert_eq!(sum.summary.discarded, 33);
        assert_eq!(sum.unread_patterns.len(), 1);
        assert_eq!(sum.surplus, [("a reason".to_owned(), 11)].into());
        assert!(sum.summary.cancelled && !sum.is_complete());
    }
}
