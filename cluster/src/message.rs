//! The messages of an engine to its rank, and of ranks to each other with their form on the wire.

use std::collections::BTreeMap;

use fuc_engine::Summary;
use fuc_engine::distribute::{Given, Stolen, Ticket};

use crate::bytes::{put_number, put_slice, take_byte, take_number, take_slice};

/// The number of a rank.
pub type Rank = u32;

/// Output of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Whole lines for stdout.
    Lines(Vec<u8>),
    /// A failure, without the name of the command before it.
    Failure(Vec<u8>),
}

/// A message of the engine to its rank.
#[derive(Debug)]
pub enum Outgoing {
    /// A worker has no work.
    Steal,
    /// The engine has work for a thief.
    Give(Vec<Stolen>),
    /// The engine has finished what another rank gave it.
    GiveBack(Ticket, Given),
    /// The rank has output.
    Text(Text),
    /// The run of the engine has ended.
    End,
}

/// A message from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender wants work, now or later.
    Steal,
    /// The sender gives work.
    Work(Vec<Stolen>),
    /// The sender gives work back.
    GivenBack(Ticket, Given),
    /// Output for rank 0 to print.
    Text(Text),
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

/// The result of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The totals of the rank's own work.
    pub summary: Summary,
    /// The rank could not take part, or could not write its output.
    pub failed: bool,
    /// How many messages the rank has sent to each other, this one included.
    pub sent: BTreeMap<Rank, u64>,
}

impl Message {
    /// Returns the message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Steal => bytes.push(0),
            Self::Work(stolen) => {
                bytes.push(1);
                put_number(&mut bytes, stolen.len() as u64);
                stolen.iter().for_each(|stolen| stolen.encode(&mut bytes));
            }
            Self::GivenBack(ticket, given) => {
                bytes.push(2);
                ticket.encode(&mut bytes);
                bytes.push(given.to_byte());
            }
            Self::Text(Text::Lines(lines)) => {
                bytes.push(7);
                put_slice(&mut bytes, lines);
            }
            Self::Text(Text::Failure(line)) => {
                bytes.push(8);
                put_slice(&mut bytes, line);
            }
            Self::Cancel => bytes.push(3),
            Self::End => bytes.push(4),
            Self::Done(report) => {
                bytes.push(5);
                report.encode(&mut bytes);
            }
            Self::Settled { failed, messages } => {
                bytes.push(6);
                bytes.push(u8::from(*failed));
                put_number(&mut bytes, *messages);
            }
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) has written. Returns `None` for anything else.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let message = match take_byte(bytes)? {
            0 => Self::Steal,
            1 => {
                let count = take_number(bytes)?;
                Self::Work(
                    (0..count)
                        .map(|_| Stolen::decode(bytes))
                        .collect::<Option<_>>()?,
                )
            }
            2 => Self::GivenBack(Ticket::decode(bytes)?, Given::from_byte(take_byte(bytes)?)?),
            3 => Self::Cancel,
            4 => Self::End,
            5 => Self::Done(Box::new(Report::decode(bytes)?)),
            6 => Self::Settled {
                failed: take_byte(bytes)? != 0,
                messages: take_number(bytes)?,
            },
            7 => Self::Text(Text::Lines(take_slice(bytes)?.to_vec())),
            8 => Self::Text(Text::Failure(take_slice(bytes)?.to_vec())),
            _ => return None,
        };
        bytes.is_empty().then_some(message)
    }
}

impl Report {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let mut summary = self.summary;
        for count in counts(&mut summary) {
            put_number(bytes, *count);
        }
        bytes.push(u8::from(summary.cancelled));
        bytes.push(u8::from(self.failed));
        put_number(bytes, self.sent.len() as u64);
        for (&rank, &messages) in &self.sent {
            put_number(bytes, rank.into());
            put_number(bytes, messages);
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut report = Self::default();
        for count in counts(&mut report.summary) {
            *count = take_number(bytes)?;
        }
        report.summary.cancelled = take_byte(bytes)? != 0;
        report.failed = take_byte(bytes)? != 0;
        for _ in 0..take_number(bytes)? {
            let rank = Rank::try_from(take_number(bytes)?).ok()?;
            report.sent.insert(rank, take_number(bytes)?);
        }
        Some(report)
    }

    /// Adds the result of another rank, except for the messages that it has sent.
    pub fn add(&mut self, mut other: Self) {
        for (total, more) in counts(&mut self.summary)
            .into_iter()
            .zip(counts(&mut other.summary))
        {
            *total += *more;
        }
        self.summary.cancelled |= other.summary.cancelled;
        self.failed |= other.failed;
    }

    /// Returns `true` if nothing failed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.summary.is_complete() && !self.failed
    }
}

/// Returns all counts of a summary.
fn counts(summary: &mut Summary) -> [&mut u64; 12] {
    [
        &mut summary.entries,
        &mut summary.files,
        &mut summary.directories,
        &mut summary.symlinks,
        &mut summary.other,
        &mut summary.hard_links,
        &mut summary.unknown,
        &mut summary.bytes,
        &mut summary.reflinked_bytes,
        &mut summary.failures,
        &mut summary.declined,
        &mut summary.discarded,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(number: u64) -> Report {
        let mut report = Report::default();
        for (count, number) in counts(&mut report.summary).into_iter().zip(number..) {
            *count = number;
        }
        report.summary.cancelled = true;
        report.sent = BTreeMap::from([(3, 9)]);
        report
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
            Message::GivenBack(ticket, Given::NotReached),
            Message::Text(Text::Lines(b"a\n".to_vec())),
            Message::Text(Text::Failure(b"b".to_vec())),
            Message::Cancel,
            Message::End,
            Message::Done(Box::new(report(7))),
            Message::Settled {
                failed: true,
                messages: 8,
            },
        ] {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Some(message));
            assert_eq!(Message::decode(&[&bytes[..], b"x"].concat()), None);
            assert_eq!(Message::decode(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(Message::decode(&[9]), None);
    }

    /// A count that this crate does not know would be lost.
    #[test]
    fn all_counts_of_a_summary_are_known() {
        let members = format!("{:?}", Summary::default()).matches(':').count();
        assert_eq!(counts(&mut Summary::default()).len() + 1, members);
    }

    #[test]
    fn reports_are_summed() {
        let mut sum = Report::default();
        sum.add(report(1));
        sum.add(report(10));
        assert_eq!(sum.summary.entries, 11);
        assert_eq!(sum.summary.discarded, 33);
        assert!(sum.summary.cancelled && !sum.is_complete());
    }
}
