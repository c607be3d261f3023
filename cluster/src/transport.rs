//! The loop of a rank's main thread, and what it needs of a network.

use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use fuc_engine::Cancel;

use crate::line::Socket;
use crate::message::{Message, Rank, Report, Text};
use crate::peer::{Action, Peer};

/// A network between ranks. Messages between two ranks arrive in their order.
pub trait Transport {
    /// Sends a message. It does not wait for the receiver.
    fn send(&mut self, to: Rank, message: Vec<u8>);

    /// Returns a message that has arrived, and its sender.
    fn receive(&mut self) -> Option<(Rank, Vec<u8>)>;

    /// Returns `true` if all messages have left. Each call also lets them make progress.
    fn is_flushed(&mut self) -> bool;
}

/// The shortest and the longest time between two looks at the network. The time doubles while nothing happens.
///
/// A blocking receive of Open MPI takes a whole core, and cannot wait for the engine, too.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Passes messages between the engine of this rank and the other ranks until the job is over.
///
/// `finish` is called when the engine has ended, and returns the result of this rank. On rank 0, `print` prints
/// the output of the others. Returns the state of the rank: its [outcome](Peer::outcome) is known then.
///
/// # Panics
/// If a message is not one of this protocol: other ranks have another version of the program.
pub fn serve(
    mut peer: Peer,
    transport: &mut dyn Transport,
    socket: &Socket,
    cancel: &Cancel,
    print: &dyn Fn(Text),
    finish: impl FnOnce() -> Report,
) -> Peer {
    let perform = |peer: &mut Peer, transport: &mut dyn Transport| {
        for action in peer.take_actions() {
            match action {
                Action::Send(to, message) => transport.send(to, message.encode()),
                Action::Tell(message) => {
                    // An engine that has ended needs no message.
                    let _ = socket.incoming.send(message);
                }
                Action::Print(text) => print(text),
                Action::Cancel => cancel.cancel(),
            }
        }
    };
    let began = Instant::now();
    let mut finish = Some(finish);
    let mut pause = SHORTEST_PAUSE;
    while peer.outcome().is_none() || !transport.is_flushed() {
        let mut is_busy = false;
        while let Some((from, bytes)) = transport.receive() {
            let message = Message::decode(&bytes);
            let message = message.expect("the ranks run different versions of this program");
            peer.hear(from, message, began.elapsed());
            is_busy = true;
        }
        while let Ok(message) = socket.outgoing.try_recv() {
            peer.hear_engine(message, began.elapsed());
            is_busy = true;
        }
        if cancel.is_cancelled() {
            peer.cancel();
        }
        peer.tick(began.elapsed());
        perform(&mut peer, transport);
        if peer.has_ended()
            && let Some(finish) = finish.take()
        {
            let report = finish();
            // The engine's last output comes before the report.
            for message in socket.outgoing.try_iter() {
                peer.hear_engine(message, began.elapsed());
            }
            peer.finish(report);
            perform(&mut peer, transport);
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
                perform(&mut peer, transport);
                pause = SHORTEST_PAUSE;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The engine is gone, so the channel no longer waits.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
        }
    }
    peer
}
