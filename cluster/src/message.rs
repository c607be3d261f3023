//! The messages of an engine to its rank, and of ranks to each other with their form on the wire.

use std::collections::{BTreeMap, BTreeSet};

use fuc_engine::Summary;
use fuc_engine::distribute::{Given, Stolen, Ticket};

use crate::wire::{self, Wire, wire_by_serde, wire_open_struct, wire_struct};

/// The number of a rank.
pub(crate) type Rank = u32;

/// Whole lines of a rank's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// Lines for stdout.
    Lines(Vec<u8>),
    /// Lines for stderr.
    Diagnostics(Vec<u8>),
}

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
    GiveBack(Ticket, Given),
    /// A worker waits for a permit.
    WantPermits,
    /// The rank has output.
    Text(Text),
    /// The run of the engine has ended.
    End,
}

/// A message from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sender wants work, now or later.
    Steal,
    /// The sender gives work, because the receiver wanted some.
    Work(Vec<Stolen>),
    /// The sender gives work that the receiver alone can do.
    Entrusted(Vec<Stolen>),
    /// The sender gives work back.
    GivenBack(Ticket, Given),
    /// Output for rank 0 to print.
    Text(Text),
    /// The work that the sender has done since its last such message.
    Progress(Progress),
    /// A worker of the sender waits for a permit.
    WantPermits,
    /// Rank 0 issues permits for this number of entries.
    Permits(u64),
    /// All ranks skip the rest of their work.
    Cancel,
    /// Nothing is left to do. Rank 0 sends this.
    End,
    /// The last message of a rank to rank 0.
    Done(Box<Report>),
    /// The last message of all, from rank 0.
    Settled {
        /// The status of every rank is 1.
        failed: bool,
        /// The number of messages that the receiver gets, without this one.
        messages: u64,
    },
}

/// An amount of work, in the numbers of [`Counts`](fuc_engine::Counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) work: u64,
}

/// The result of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The totals of the rank's own work.
    pub(crate) summary: Summary,
    /// The rank could not take part.
    pub(crate) failed: bool,
    /// The diagnostics about files of patterns that the rank could not read. Several ranks may report the same file.
    pub(crate) unread_patterns: BTreeSet<Vec<u8>>,
    /// How many messages the rank has sent to each other, this one included.
    pub(crate) sent: BTreeMap<Rank, u64>,
}

impl Message {
    /// Returns the message as bytes.
    #[must_use]
    pub(crate) fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Reads what [`encode`](Self::encode) has written. Returns `None` for anything else.
    #[must_use]
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        wire::decode(bytes)
    }
}

impl Wire for Message {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Steal => bytes.push(0),
            Self::Work(stolen) => {
                bytes.push(1);
                stolen.put(bytes);
            }
            Self::GivenBack(ticket, given) => {
                bytes.push(2);
                ticket.put(bytes);
                given.put(bytes);
            }
            Self::Cancel => bytes.push(3),
            Self::End => bytes.push(4),
            Self::Done(report) => {
                bytes.push(5);
                report.put(bytes);
            }
            Self::Settled { failed, messages } => {
                bytes.push(6);
                failed.put(bytes);
                messages.put(bytes);
            }
            Self::Text(Text::Lines(lines)) => {
                bytes.push(7);
                lines.put(bytes);
            }
            Self::Text(Text::Diagnostics(lines)) => {
                bytes.push(8);
                lines.put(bytes);
            }
            Self::Entrusted(stolen) => {
                bytes.push(9);
                stolen.put(bytes);
            }
            Self::Progress(progress) => {
                bytes.push(10);
                progress.put(bytes);
            }
            Self::WantPermits => bytes.push(11),
            Self::Permits(portion) => {
                bytes.push(12);
                portion.put(bytes);
            }
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(bytes)? {
            0 => Self::Steal,
            1 => Self::Work(Wire::take(bytes)?),
            2 => Self::GivenBack(Wire::take(bytes)?, Wire::take(bytes)?),
            3 => Self::Cancel,
            4 => Self::End,
            5 => Self::Done(Wire::take(bytes)?),
            6 => Self::Settled {
                failed: Wire::take(bytes)?,
                messages: Wire::take(bytes)?,
            },
            7 => Self::Text(Text::Lines(Wire::take(bytes)?)),
            8 => Self::Text(Text::Diagnostics(Wire::take(bytes)?)),
            9 => Self::Entrusted(Wire::take(bytes)?),
            10 => Self::Progress(Wire::take(bytes)?),
            11 => Self::WantPermits,
            12 => Self::Permits(Wire::take(bytes)?),
            _ => return None,
        })
    }
}

wire_by_serde!(Stolen);
wire_by_serde!(Ticket);
wire_by_serde!(Given);

wire_struct!(Progress {
    entries,
    bytes,
    work,
});

wire_struct!(Report {
    summary,
    failed,
    unread_patterns,
    sent,
});

wire_open_struct!(Summary {
    entries,
    files,
    directories,
    symlinks,
    other,
    hard_links,
    unknown,
    bytes,
    reflinked_bytes,
    failures,
    declined,
    cancelled,
    discarded,
});

impl Report {
    /// Adds the result of another rank, except for the messages that it has sent.
    pub(crate) fn add(&mut self, other: Self) {
        self.summary += other.summary;
        self.failed |= other.failed;
        self.unread_patterns.extend(other.unread_patterns);
    }

    /// Returns `true` if nothing failed.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.summary.is_complete() && !self.failed && self.unread_patterns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{assert_complete, assert_travels};

    fn report(number: u64) -> Report {
        let mut report = Report::default();
        report.summary.entries = number;
        report.summary.discarded = number + 11;
        report.summary.cancelled = true;
        report.unread_patterns = [b"cannot open 'a'".to_vec()].into();
        report.sent = [(3, 9)].into();
        report
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let ticket = Ticket {
            victim: 4,
            number: 5,
            start: 6,
            end: 7,
        };
        for message in [
            Message::Steal,
            Message::Work(Vec::new()),
            Message::Entrusted(Vec::new()),
            Message::GivenBack(ticket, Given::NotReached),
            Message::Text(Text::Lines(b"a\n".to_vec())),
            Message::Text(Text::Diagnostics(b"b\n".to_vec())),
            Message::Progress(Progress {
                entries: 1,
                bytes: 2,
                work: 3,
            }),
            Message::WantPermits,
            Message::Permits(5),
            Message::Cancel,
            Message::End,
            Message::Done(Box::new(report(7))),
            Message::Settled {
                failed: true,
                messages: 8,
            },
        ] {
            assert_travels(&message);
        }
        assert_eq!(Message::decode(&[13]), None);
    }

    #[test]
    fn all_counts_of_a_summary_travel() {
        assert_complete::<Summary>();
    }

    #[test]
    fn reports_are_summed() {
        let mut sum = Report::default();
        sum.add(report(1));
        sum.add(report(10));
        assert_eq!(sum.summary.entries, 11);
        assert_eq!(sum.summary.discarded, 33);
        assert_eq!(sum.unread_patterns.len(), 1);
        assert!(sum.summary.cancelled && !sum.is_complete());
    }
}
