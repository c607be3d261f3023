//! Decides whether a rank lends names of its listings to others, by what is measured in the run.
//!
//! If several clients change one directory, some servers move the rights to it between them for each change, and the job is
//! slower than one rank alone. Others serve all clients at once. So the rank tries both ways in turn, and counts the names of
//! its directories that are done:
//!
//! ```text
//!   lends none, and measures  <-->  lends some, and measures until all have come back
//! ```
//!
//! The better way is kept for [`KEPT`] times as long as the last trial took, and for twice as much each time.

use std::collections::HashMap;
use std::time::Duration;

use fuc_engine::distribute::{Given, Stolen, Ticket};

use crate::message::Rank;

/// The time of a short measurement.
const SHORT: Duration = Duration::from_millis(100);
/// Fewer names say little about the time that they take.
const ENOUGH: i64 = 32;
/// The time for which the better way is kept, in times that the last trial took: at first, and at most.
const KEPT: [u32; 2] = [8, 128];
/// Lending must be so many times as fast.
const NEEDED: f64 = 1.1;
/// The time in which this rank does as many names as another one gets at once.
const PORTION: Duration = Duration::from_millis(100);
/// The names that are lent at first. As many more are lent as have come back, so few are if the ranks hinder each other: with
/// CephFS 16.2, each of them then took seconds.
const FIRST_NAMES: u64 = 4;

/// The names that a rank lends and borrows.
#[derive(Debug)]
pub(crate) struct Lending {
    rank: Rank,
    /// The numbers of names that have not come back, and of those that this rank has borrowed.
    names: HashMap<Ticket, u64>,
    /// The number of names that have not come back.
    lent: u64,
    /// The names that others have done for this rank, less those that it has done for others.
    by_others: i64,
    /// The time of the last look at the entries that this rank has done, and their number.
    looked: (Duration, u64),
    /// How many it has done before that in [`PORTION`].
    portion: u64,
    measured: Measured,
}

/// What is known of the two ways.
#[derive(Debug)]
struct Measured {
    lends: bool,
    /// This way is tried, after the other one has done so many names per second.
    tried_after: Option<f64>,
    /// The start of this way.
    since: Option<Duration>,
    /// The start of the measurement, and the names that were done by then.
    began: Option<(Duration, i64)>,
    /// The time that the measurement takes.
    length: Duration,
    /// The measurement ends when all names have come back.
    ends: bool,
    /// The most names that are lent together.
    most_lent: u64,
    kept: u32,
}

impl Measured {
    const NOTHING: Self = Self {
        lends: false,
        tried_after: None,
        since: None,
        began: None,
        length: SHORT,
        ends: false,
        most_lent: FIRST_NAMES,
        kept: KEPT[0],
    };

    /// Tries the other way after this one, or keeps the better one if this was a trial.
    fn conclude(&mut self, rate: f64, now: Duration) {
        let mut next = Self {
            lends: !self.lends,
            tried_after: Some(rate),
            kept: self.kept,
            ..Self::NOTHING
        };
        if let (Some(before), Some(since)) = (self.tried_after, self.since) {
            let [alone, together] = if self.lends {
                [before, rate]
            } else {
                [rate, before]
            };
            next.lends = together > alone * NEEDED;
            next.tried_after = None;
            next.length = (now - since) * self.kept;
            next.kept = KEPT[1].min(self.kept * 2);
        }
        if next.lends {
            next.most_lent = self.most_lent;
        }
        *self = next;
    }
}

impl Lending {
    pub(crate) fn new(rank: Rank) -> Self {
        Self {
            rank,
            names: HashMap::new(),
            lent: 0,
            by_others: 0,
            looked: (Duration::ZERO, 0),
            portion: 0,
            measured: Measured::NOTHING,
        }
    }

    /// Returns how many names of a listing another rank may get.
    pub(crate) fn most_names(&self) -> usize {
        let left = self.measured.most_lent.saturating_sub(self.lent);
        match self.measured.lends && !self.measured.ends {
            true => left.min(self.portion.max(FIRST_NAMES)) as usize,
            false => 0,
        }
    }

    /// Notes what this rank gives or gets.
    pub(crate) fn note(&mut self, stolen: &[Stolen]) {
        for it in stolen {
            self.note_names(it.ticket(), it.names() as u64);
        }
    }

    fn note_names(&mut self, ticket: Ticket, names: u64) {
        self.names.insert(ticket, names);
        if ticket.victim == self.rank {
            self.lent += names;
        }
    }

    /// Notes what comes back, or what this rank gives back.
    pub(crate) fn note_return(&mut self, ticket: Ticket, given: Given) {
        let names = self.names.remove(&ticket).unwrap_or(0);
        let done = match given {
            Given::Finished(_) => names as i64,
            Given::NotReached => 0,
        };
        if ticket.victim == self.rank {
            self.lent -= names;
            self.by_others += done;
            self.measured.most_lent += names;
        } else {
            self.by_others -= done;
        }
    }

    /// Goes on with the measurement, after this rank has done so many entries. If nothing was lent, or no rank is waiting for
    /// names, it begins anew.
    pub(crate) fn tick(&mut self, entries: u64, is_asked: bool, now: Duration) {
        if now - self.looked.0 >= PORTION {
            self.portion = entries.saturating_sub(self.looked.1);
            self.looked = (now, entries);
        }
        let done = entries as i64 + self.by_others;
        let measured = &mut self.measured;
        let is_alone = self.lent == 0;
        if measured.lends != is_alone && (measured.lends || is_asked) {
            measured.since.get_or_insert(now);
        }
        // The time before the first name is not measured: this rank may not have had any.
        let is_begun = |(_, before): &(_, i64)| measured.lends || *before != done;
        let Some((began, before)) = measured.began.filter(is_begun) else {
            if measured.lends != is_alone {
                measured.began = Some((now, done));
            }
            return;
        };
        let lasted = now - began;
        measured.ends = lasted >= measured.length;
        let (is_sure, is_tried) = match measured.lends {
            true => (is_alone, measured.most_lent > FIRST_NAMES),
            false => (done - before >= ENOUGH, is_asked),
        };
        if !measured.ends || !is_sure {
            return;
        }
        match is_tried {
            true => measured.conclude((done - before) as f64 / lasted.as_secs_f64(), now),
            false => *measured = Measured::NOTHING,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_engine::distribute::Finished;

    const NAMES: f64 = 20_000.0;
    const DONE: Given = Given::Finished(Finished {
        kept: false,
        left_alone: false,
        changed: true,
    });

    /// Returns the time that four ranks take for the names of one directory, in times that one rank would take.
    /// `speed` returns the speed of each rank, if so many do names of the directory, beside that of one.
    fn time_of_four(speed: fn(ranks: usize) -> f64) -> f64 {
        let mut lending = Lending::new(0);
        let (mut left, mut own) = (NAMES, 0.0);
        let mut others: [Option<(u64, f64)>; 3] = [None; 3];
        let ticket = |number| Ticket { victim: 0, number };
        for millis in 1..100_000 {
            let now = Duration::from_millis(millis);
            // The engines begin with few workers.
            let most = (millis as f64 / 100.0).min(1.0);
            let each = most * speed(1 + others.iter().flatten().count());
            own += each.min(left);
            left -= each.min(left);
            for other in &mut others {
                if let Some((number, names)) = other {
                    *names -= each;
                    if *names <= 0.0 {
                        lending.note_return(ticket(*number), DONE);
                        *other = None;
                    }
                }
            }
            let waiting = others.iter_mut().filter(|other| other.is_none());
            let mut waiting: Vec<_> = waiting.collect();
            if left <= 0.0 && waiting.len() == 3 {
                return millis as f64 / NAMES;
            }
            lending.tick(own as u64, !waiting.is_empty(), now);
            if let Some(other) = waiting.pop() {
                let names = (lending.most_names() as f64).min(left / 2.0);
                if names >= 1.0 {
                    left -= names;
                    *other = Some((millis, names));
                    lending.note_names(ticket(millis), names as u64);
                }
            }
        }
        unreachable!("the names are never done")
    }

    #[test]
    fn names_are_lent_if_the_ranks_do_not_hinder_each_other() {
        let time = time_of_four(|_| 1.0);
        assert!(time < 0.33, "{time}");
    }

    #[test]
    fn names_are_hardly_lent_if_the_ranks_take_the_rights_to_the_directory_from_each_other() {
        let time = time_of_four(|ranks| if ranks == 1 { 1.0 } else { 0.35 / ranks as f64 });
        assert!(time < 1.15, "{time}");
    }
}
