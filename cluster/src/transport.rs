//! The loop of a rank's main thread, and what it needs of a network.

use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use fuc_cli::console::Console;
use fuc_engine::{Cancel, Counts};

use crate::line::Socket;
use crate::message::{self, Amount, Message, Rank, RankResult};
use crate::pace::Pace;
use crate::peer::{Action, Peer};

/// A network between ranks. Messages between two ranks arrive in their order.
pub(crate) trait Transport {
    /// Sends a message. It does not wait for the receiver.
    fn send(&mut self, to: Rank, message: Vec<u8>);

    /// Returns a message that has arrived, and its sender.
    fn receive(&mut self) -> Option<(Rank, Vec<u8>)>;

    /// Frees the messages that have been received. Returns `true` if all have. Each call also lets them make progress.
    fn is_flushed(&mut self) -> bool;
}

/// The shortest and the longest time between two looks at the network. The time doubles while nothing happens.
///
/// A blocking receive of Open MPI takes a whole core, and cannot wait for the engine, too.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The time between two reports of progress to rank 0.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The process of a rank, as far as the loop needs it.
pub(crate) struct Local<'a> {
    /// The connection to the engine.
    pub(crate) socket: &'a Socket,
    /// Cancels the run of the engine.
    pub(crate) cancel: &'a Cancel,
    /// The counts of the engine. On rank 0, work of the other ranks is added to them.
    pub(crate) counts: &'a Counts,
    /// The permits of the workers, if the rate is limited.
    pub(crate) pace: Option<&'a Pace>,
    /// Prints the output of other ranks, on rank 0.
    pub(crate) console: &'a Console,
}

impl Local<'_> {
    fn perform(&self, peer: &mut Peer, transport: &mut dyn Transport) {
        for action in peer.take_actions() {
            match action {
                Action::Send(to, message) => transport.send(to, message::encode(&message)),
                Action::Tell(message) => {
                    // An engine that has ended needs no message.
                    let _ = self.socket.incoming.send(message);
                }
                Action::Print(output) => self.console.output(&output),
                Action::Count(Amount {
                    entries,
                    bytes,
                    work,
                }) => self.counts.add_shared(entries, bytes, work),
                Action::Permit(portion) => {
                    if let Some(pace) = self.pace {
                        pace.add(portion);
                    }
                }
                Action::Copy(part) => {
                    // After the end of a cancelled job, no thread is left for it.
                    let _ = self.socket.parts.0.send(Some(part));
                }
                Action::Answer(rank, answer) => self.socket.divisions.pass_on(rank, answer),
                Action::Cancel => self.cancel.cancel(),
            }
        }
    }

    /// Returns the work since an earlier call, whose counts `reported` holds.
    fn progress_since(&self, reported: &mut Amount) -> Amount {
        let now = Amount {
            entries: self.counts.entries(),
            bytes: self.counts.bytes(),
            work: self.counts.work(),
        };
        let before = std::mem::replace(reported, now);
        Amount {
            entries: now.entries - before.entries,
            bytes: now.bytes - before.bytes,
            work: now.work - before.work,
        }
    }
}

/// Passes messages between the engine of this rank and the other ranks until the job is over.
///
/// `finish` is called when the engine has ended, and returns the result of this rank. Returns the state of the rank:
/// its `outcome` is known then.
///
/// # Panics
/// If a message is not one of this protocol: other ranks have another version of the program.
pub(crate) fn serve(
    mut peer: Peer,
    transport: &mut dyn Transport,
    local: &Local<'_>,
    finish: impl FnOnce() -> RankResult,
) -> Peer {
    let socket = local.socket;
    let mut reported = Amount::default();
    let mut next_report = PROGRESS_INTERVAL;
    let began = Instant::now();
    let mut finish = Some(finish);
    let mut result = None;
    let mut pause = SHORTEST_PAUSE;
    loop {
        let is_flushed = transport.is_flushed();
        if is_flushed && let Some(result) = result.take() {
            peer.finish(result);
        } else if is_flushed && peer.outcome.is_some() {
            return peer;
        }
        let mut is_busy = false;
        while let Some((from, bytes)) = transport.receive() {
            let message = message::decode::<Message>(&bytes);
            let message = message.expect("the ranks run different versions of this program");
            peer.hear(from, message, began.elapsed());
            is_busy = true;
        }
        while let Ok(message) = socket.outgoing.try_recv() {
            peer.hear_engine(message, began.elapsed());
            is_busy = true;
        }
        if local.cancel.is_cancelled() {
            peer.cancel();
        }
        if began.elapsed() >= next_report {
            next_report = began.elapsed() + PROGRESS_INTERVAL;
            peer.report_progress(local.progress_since(&mut reported));
        }
        peer.tick(began.elapsed());
        local.perform(&mut peer, transport);
        if peer.has_ended()
            && let Some(finish) = finish.take()
        {
            result = Some(finish());
            // The engine's last output comes before the result.
            for message in socket.outgoing.try_iter() {
                peer.hear_engine(message, began.elapsed());
            }
            local.perform(&mut peer, transport);
            continue;
        }
        pause = match is_busy {
            true => SHORTEST_PAUSE,
            false => LONGEST_PAUSE.min(pause * 2),
        };
        let due = peer
            .next_time()
            .map(|time| time.saturating_sub(began.elapsed()));
        match socket
            .outgoing
            .recv_timeout(due.map_or(pause, |due| pause.min(due)))
        {
            Ok(message) => {
                peer.hear_engine(message, began.elapsed());
                local.perform(&mut peer, transport);
                pause = SHORTEST_PAUSE;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The engine is gone, so the channel no longer waits.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::homes::{Homes, Links};
    use crate::line;
    use crate::message::Outgoing;
    use fuc_cli::console::Output;
    use fuc_cli::locale::Charset;
    use std::collections::VecDeque;

    /// A network on which messages arrive only when this rank has freed those that it has sent.
    #[derive(Default)]
    struct Freeing {
        has_sent: bool,
        has_freed: bool,
        arriving: VecDeque<(Rank, Message)>,
        looks: u32,
    }

    impl Transport for Freeing {
        fn send(&mut self, _: Rank, _: Vec<u8>) {
            self.has_sent = true;
        }

        fn receive(&mut self) -> Option<(Rank, Vec<u8>)> {
            self.looks += 1;
            assert!(self.looks < 1000, "messages are kept until the job ends");
            if !self.has_freed {
                return None;
            }
            let (from, message) = self.arriving.pop_front()?;
            Some((from, message::encode(&message)))
        }

        fn is_flushed(&mut self) -> bool {
            self.has_freed |= self.has_sent;
            true
        }
    }

    #[test]
    fn rank_0_counts_and_prints_for_all_ranks_and_frees_messages_meanwhile() {
        let amount = Amount {
            entries: 5,
            bytes: 7,
            work: 6,
        };
        let lines = Output::Lines(b"removed 'a'\n".to_vec());
        let mut network = Freeing {
            arriving: VecDeque::from([
                (1, Message::Progress(amount)),
                (1, Message::Text(lines.clone())),
                (1, Message::Progress(amount)),
                (1, Message::Done(Box::default())),
            ]),
            ..Freeing::default()
        };
        let homes = Homes::of_job(&Links::default(), &[true, true]);
        let (line, socket) = line::connect(0, 2, homes);
        line.send(Outgoing::End);
        let counts = &Counts::default();
        let (send, printed) = crossbeam_channel::unbounded();
        let relay = Box::new(move |output| send.send(output).unwrap());
        let console = &Console::relayed(Vec::new(), Charset::Ascii, relay);
        let local = Local {
            socket: &socket,
            cancel: &Cancel::new(),
            counts,
            pace: None,
            console,
        };
        let peer = serve(Peer::new(0, 2), &mut network, &local, RankResult::default);
        assert_eq!(peer.outcome, Some(false));
        let counted = (counts.entries(), counts.bytes(), counts.work());
        assert_eq!(counted, (10, 14, 12));
        let _ = console.finish();
        assert_eq!(printed.try_iter().collect::<Vec<_>>(), [lines]);
    }
}
