//! The protocol of one rank. It makes no system call and has no clock, so that a test can simulate many ranks.
//!
//! **Which rank asks which.** A rank whose engine is hungry registers with another rank, the victim. A victim
//! that has nothing to give keeps the registration, and gives when it has. So a rank
//! repeats no request. A hungry rank that has waited for a while registers with one more victim, in this order:
//!
//! 1. the rank that gave work last,
//! 2. its parent in the binary tree of ranks, since rank 0 has all the work at first,
//! 3. the ranks at the distances 1, 2, 4, ... after it.
//!
//! The steps of 3 connect all ranks, so work reaches every rank. No rank is registered with more than
//! log2(ranks) + 2 victims, and none is the only victim of all.
//!
//! **How a job ends.**
//!
//! ```text
//!   rank 0                                         any other rank
//!   ------                                         --------------
//!   its engine has finished the operands
//!   End      ------------------------------------> its engine ends
//!                                                  its messages to other ranks have been received
//!            <------------------------------------ Done: its results
//!   all are done
//!   Settled  ------------------------------------> ends
//! ```
//!
//! No rank sends anything after its `Done`, except for rank 0. So with `Settled` every message to a rank has been
//! received, as MPI demands.

use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::time::Duration;

use fuc_cli::console::Output;
use fuc_engine::distribute::{Incoming, Reply, Ticket};

use crate::message::{Amount, Answer, Message, Outgoing, Part, Rank, RankResult};
use crate::pace::Issuer;

/// Time between two requests to the engine of a victim.
const REQUEST_INTERVAL: Duration = Duration::from_micros(250);
/// Time that a hungry rank waits before it registers with one more victim.
const PATIENCE: Duration = Duration::from_micros(250);
/// Time without a theft after the first directories that this rank could not reach. It doubles each time.
const PENALTY: Duration = Duration::from_millis(10);
/// The longest such time.
const LONGEST_PENALTY: Duration = Duration::from_secs(10);

/// Something that the caller of a [`Peer`] must do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send a message to a rank.
    Send(Rank, Message),
    /// Send a message to the engine of this rank.
    Tell(Incoming),
    /// Print output of another rank.
    Print(Output),
    /// Count work of another rank.
    Count(Amount),
    /// Give the workers of this rank permits.
    Permit(u64),
    /// Copy a part of a large file.
    Copy(Part),
    /// Pass the answer of a rank on to the worker that has divided the file.
    Answer(Rank, Answer),
    /// Cancel the run of this rank.
    Cancel,
}

/// The state of one rank in the protocol. Times are those since the start of the job.
#[derive(Debug)]
pub(crate) struct Peer {
    rank: Rank,
    ranks: u32,
    /// Ranks that are registered with this one, in order.
    thieves: VecDeque<Rank>,
    next_request: Duration,
    /// Says whether the engine has had no work since it asked for some.
    is_hungry: bool,
    /// The ranks with which this one is registered.
    victims: BTreeSet<Rank>,
    last_giver: Option<Rank>,
    /// The time of the next registration.
    next_theft: Duration,
    penalty: Duration,
    /// Rank 0 only: issues permits, if the rate is limited.
    issuer: Option<Issuer>,
    is_cancelled: bool,
    /// Says whether the engine was told to end.
    has_ended: bool,
    /// Rank 0 only: the number of ranks that are done, and the sum of their results.
    done: u32,
    pub(crate) total: RankResult,
    /// Rank 0 only: the entries of each rank that is done, in no order.
    pub(crate) shares: Vec<u64>,
    /// Says whether the job has failed, once it is over for this rank.
    pub(crate) outcome: Option<bool>,
    actions: Vec<Action>,
}

impl Peer {
    /// Makes the state of `rank`, of as many as `ranks`.
    #[must_use]
    pub(crate) fn new(rank: Rank, ranks: u32) -> Self {
        Self {
            rank,
            ranks,
            thieves: VecDeque::new(),
            next_request: Duration::ZERO,
            is_hungry: false,
            victims: BTreeSet::new(),
            last_giver: None,
            next_theft: Duration::ZERO,
            penalty: PENALTY,
            issuer: None,
            is_cancelled: false,
            has_ended: false,
            done: 0,
            total: RankResult::default(),
            shares: Vec::new(),
            outcome: None,
            actions: Vec::new(),
        }
    }

    /// Limits the permits per second of all ranks together. Only rank 0 needs it.
    pub(crate) fn limit_rate(&mut self, rate: NonZeroU64) {
        self.issuer = Some(Issuer::new(rate, self.ranks));
    }

    /// Returns the actions that the caller must take, in order.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Returns `true` if the engine was told to end.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Sends a message to a rank, or handles it if it is for this one.
    fn send(&mut self, to: Rank, message: Message) {
        if to == self.rank {
            return self.handle(to, message);
        }
        self.actions.push(Action::Send(to, message));
    }

    fn tell(&mut self, message: Incoming) {
        self.actions.push(Action::Tell(message));
    }

    fn give_back(&mut self, ticket: Ticket, reply: Reply) {
        self.send(ticket.victim, Message::GivenBack(ticket, reply));
    }

    /// Handles a message of this rank's engine.
    pub(crate) fn hear_engine(&mut self, message: Outgoing, now: Duration) {
        match message {
            Outgoing::Steal => self.is_hungry = true,
            Outgoing::Give(stolen) => match self.thieves.pop_front() {
                Some(thief) => self.send(thief, Message::Work(stolen)),
                // Two workers have answered one request.
                None => stolen.iter().for_each(|stolen| {
                    self.give_back(stolen.ticket(), Reply::NotReached);
                }),
            },
            Outgoing::Entrust(rank, stolen) => self.send(rank, Message::Entrusted(stolen)),
            Outgoing::GiveBack(ticket, reply) => {
                match reply {
                    Reply::NotReached => {
                        self.next_theft = now + self.penalty;
                        self.penalty = LONGEST_PENALTY.min(self.penalty * 2);
                    }
                    Reply::Finished(_) => self.penalty = PENALTY,
                }
                self.give_back(ticket, reply);
            }
            Outgoing::WantPermits => self.send(0, Message::WantPermits),
            Outgoing::Text(text) => self.send(0, Message::Text(text)),
            Outgoing::Divide(rank, part) => self.send(rank, Message::Copy(part)),
            Outgoing::Copied(owner, answer) => self.send(owner, Message::Copied(answer)),
            Outgoing::End if self.rank == 0 && !self.has_ended => {
                (1..self.ranks).for_each(|rank| self.send(rank, Message::End));
                self.end_engine();
            }
            Outgoing::End => {}
        }
        self.tick(now);
    }

    /// Handles a message of another rank.
    pub(crate) fn hear(&mut self, from: Rank, message: Message, now: Duration) {
        self.handle(from, message);
        self.tick(now);
    }

    fn handle(&mut self, from: Rank, message: Message) {
        match message {
            Message::Steal => self.thieves.push_back(from),
            Message::Work(stolen) => {
                self.victims.remove(&from);
                self.last_giver = Some(from);
                self.is_hungry = false;
                self.tell(Incoming::Stolen(stolen));
            }
            Message::Entrusted(stolen) => self.tell(Incoming::Stolen(stolen)),
            Message::GivenBack(ticket, reply) => self.tell(Incoming::Returned(ticket, reply)),
            Message::Text(text) => self.actions.push(Action::Print(text)),
            Message::Progress(amount) => self.actions.push(Action::Count(amount)),
            Message::WantPermits => {
                if let Some(issuer) = &mut self.issuer {
                    issuer.queue(from);
                }
            }
            Message::Permits(portion) => self.actions.push(Action::Permit(portion)),
            Message::Cancel => {
                if !self.is_cancelled {
                    self.pass_cancel_on();
                    self.actions.push(Action::Cancel);
                }
            }
            Message::Copy(part) => self.actions.push(Action::Copy(*part)),
            Message::Copied(answer) => self.actions.push(Action::Answer(from, answer)),
            Message::End => self.end_engine(),
            Message::Done(result) => self.add_result(*result),
            Message::Settled(failed) => self.outcome = Some(failed),
        }
    }

    /// Notes that this rank's run was cancelled, and cancels those of the others. Only the first call counts.
    pub(crate) fn cancel(&mut self) {
        if !self.is_cancelled && !self.has_ended {
            self.pass_cancel_on();
        }
    }

    /// Tells rank 0, which tells all others. A launcher may send a signal to each rank.
    fn pass_cancel_on(&mut self) {
        self.is_cancelled = true;
        match self.rank {
            0 if self.has_ended => {}
            0 => (1..self.ranks).for_each(|rank| self.send(rank, Message::Cancel)),
            _ => self.send(0, Message::Cancel),
        }
    }

    /// Reports work of this rank to rank 0, which counts its own without that.
    pub(crate) fn report_progress(&mut self, amount: Amount) {
        if self.rank != 0 && !self.has_ended && amount != Amount::default() {
            self.send(0, Message::Progress(amount));
        }
    }

    /// Notes the result of this rank, whose engine has ended, and whose messages have been received. It is called once.
    pub(crate) fn finish(&mut self, result: RankResult) {
        self.send(0, Message::Done(Box::new(result)));
    }

    fn issue_permits(&mut self, now: Duration) {
        while let Some((rank, portion)) = self.issuer.as_mut().and_then(|issuer| issuer.issue(now))
        {
            self.send(rank, Message::Permits(portion));
        }
    }

    fn end_engine(&mut self) {
        self.has_ended = true;
        self.tell(Incoming::End);
    }

    /// Adds the result of a rank, and settles the job when all ranks are done.
    fn add_result(&mut self, result: RankResult) {
        self.done += 1;
        self.shares.push(result.summary.entries);
        self.total.add(result);
        if self.done < self.ranks {
            return;
        }
        let failed = !self.total.is_complete();
        (1..self.ranks).for_each(|rank| self.send(rank, Message::Settled(failed)));
        self.outcome = Some(failed);
    }

    /// Does what is due. [`next_time`](Self::next_time) says when to call it again.
    pub(crate) fn tick(&mut self, now: Duration) {
        if self.has_ended {
            return;
        }
        self.issue_permits(now);
        if !self.thieves.is_empty() && now >= self.next_request {
            self.next_request = now + REQUEST_INTERVAL;
            self.tell(Incoming::Request);
        }
        if self.is_hungry && now >= self.next_theft {
            if let Some(victim) = self.next_victim() {
                self.victims.insert(victim);
                self.send(victim, Message::Steal);
            }
            self.next_theft = now + PATIENCE;
        }
    }

    /// Returns the time of the next [`tick`](Self::tick), or `None` if only a message makes one necessary.
    #[must_use]
    pub(crate) fn next_time(&self) -> Option<Duration> {
        let request = (!self.thieves.is_empty()).then_some(self.next_request);
        let has_victim = self.is_hungry && self.next_victim().is_some();
        let theft = has_victim.then_some(self.next_theft);
        let permits = self.issuer.as_ref().and_then(Issuer::next_time);
        let times = request.into_iter().chain(theft).chain(permits);
        times.min().filter(|_| !self.has_ended)
    }

    /// Returns the rank to register with next, or `None` if this one is registered with all that it may ask.
    fn next_victim(&self) -> Option<Rank> {
        let parent = self.rank.checked_sub(1).map(|before| before / 2);
        let distances = std::iter::successors(Some(1), |distance: &u32| distance.checked_mul(2));
        let after = distances
            .take_while(|&distance| distance < self.ranks)
            .map(|distance| {
                ((u64::from(self.rank) + u64::from(distance)) % u64::from(self.ranks)) as Rank
            });
        let mut asked = self.last_giver.into_iter().chain(parent).chain(after);
        asked.find(|victim| !self.victims.contains(victim))
    }
}

#[cfg(test)]
mod tests;
