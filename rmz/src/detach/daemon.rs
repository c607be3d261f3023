//! The daemon: a background process that removes what is hidden.
//!
//! It is started before anything is hidden, and receives each container and the names that will be moved into it. When
//! the command has ended, *however it ended*, the socket between them is at its end, and the process begins to remove.
//! So nothing is hidden that no process knows about, not even if the command is killed:
//!
//! ```text
//!  command   start ─▶ ( create container ─▶ hand it over ─▶ ( announce name ─▶ rename )* )* ─▶ shut down ─▶ wait ─▶ end
//!                                            │ container            │ entry                      │ end       ▲ receipt
//!                                            ▼                      ▼                            ▼           │
//!  daemon            ( receive, and remember )* ────────────────────────────────────────────▶ confirm ──────┘
//!                                                                                      └─▶ remove ─▶ end
//! ```
//!
//! The descriptors of a container pass through the socket, and with them its lock. The daemon removes an entry only
//! if device and inode number are those that were announced. If it ends without a receipt, the command reports what
//! stays.

use std::ffi::{CStr, OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fuc_cli::sys;
use fuc_engine::{Cancel, RemoveOp};
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recv, recvmsg, sendmsg, shutdown,
};
use rustix::process::{Resource, getrlimit};

use super::container::{Container, FileId, Removed};
use super::log::Log;

/// The size of the longest message: that of a container with a path of 16 KiB.
const MESSAGE_BYTES: usize = 16 << 10;

/// The descriptors of a container.
const DESCRIPTORS: usize = 2;

/// The descriptors that are not for containers: 20 for a removal, which include the standard streams, the log, and
/// the socket. Then the command, which holds one container at a time, has enough of them, too.
const RESERVED_DESCRIPTORS: u64 = 22;

/// The message by which the daemon confirms that it has received everything.
const RECEIPT: &[u8] = b"+";

/// The command's end of the connection to the daemon.
#[derive(Debug)]
pub(super) struct DaemonHandle {
    socket: OwnedFd,
    /// The number of containers that the daemon can still take.
    room: u64,
}

impl DaemonHandle {
    /// Starts the process. It writes failures to `log`. A token that is cancelled there, by a signal to that process,
    /// makes it report what stays, and end.
    ///
    /// # Errors
    /// Fails if no process can be started. Then nothing has happened.
    pub(super) fn start(
        log: &Log,
        engine: &RemoveOp<'static>,
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let mut removal = engine.clone().cancelled_by(cancel.clone());
        // Without locks, `--reap` may remove the same names.
        removal.ignore_missing = true;
        // A low priority does not reach a server of files, so do not keep it busy unless the user asks for that.
        removal.threads = removal.threads.or(Some(NonZeroUsize::MIN));
        let keep: Vec<_> = log.descriptor().into_iter().collect();
        let daemon = Daemon {
            log,
            removal,
            cancel,
        };
        let socket = sys::spawn_background(&keep, |socket| daemon.run(socket))?;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let room = limit.saturating_sub(RESERVED_DESCRIPTORS) / DESCRIPTORS as u64;
        Ok(Self { socket, room })
    }

    /// Hands over an empty container. `path` names it in messages.
    ///
    /// # Errors
    /// Fails if the daemon has ended, or cannot hold another container.
    pub(super) fn hand_over(&mut self, container: &Container, path: &Path) -> Result<(), Errno> {
        let Some(room) = self.room.checked_sub(1) else {
            return Err(Errno::MFILE);
        };
        let (name, path) = (container.name().to_bytes_with_nul(), path.as_os_str());
        self.send(&[name, path.as_bytes()].concat(), &container.descriptors())?;
        self.room = room;
        Ok(())
    }

    /// Announces an entry of the last container.
    ///
    /// # Errors
    /// Fails if the daemon has ended. It will not remove the entry.
    pub(super) fn announce(&self, name: &OsStr, id: FileId) -> Result<(), Errno> {
        self.send(&[&id.encoded()[..], name.as_bytes()].concat(), &[])
    }

    /// Lets the removal begin. Returns `false` if the daemon has ended before it received everything.
    pub(super) fn confirm(self) -> bool {
        let mut receipt = [0; RECEIPT.len()];
        shutdown(&self.socket, Shutdown::Write).is_ok()
            && rustix::io::retry_on_intr(|| recv(&self.socket, &mut receipt, RecvFlags::empty()))
                .is_ok_and(|(bytes, _)| receipt[..bytes] == *RECEIPT)
    }

    /// Sends a message. That of a container has its descriptors, its name, a NUL, and its path. That of an entry has no
    /// descriptors, the identity, and the name.
    fn send(&self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        if message.len() > MESSAGE_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
        rustix::io::retry_on_intr(|| {
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fits = descriptors.is_empty()
                || control.push(SendAncillaryMessage::ScmRights(descriptors));
            assert!(fits, "BUG: the space is for two descriptors");
            let text = [IoSlice::new(message)];
            sendmsg(&self.socket, &text, &mut control, SendFlags::NOSIGNAL).map(drop)
        })
    }
}

/// A container that the daemon has received.
struct Received {
    container: Container,
    path: PathBuf,
    /// The entries that were announced. There may be several of one name.
    entries: Vec<(OsString, FileId)>,
}

/// The background process itself.
struct Daemon<'a> {
    log: &'a Log,
    removal: RemoveOp<'static>,
    cancel: &'a Cancel,
}

impl Daemon<'_> {
    fn run(&self, socket: OwnedFd) {
        let containers = self.receive(&socket);
        drop(socket);
        // The command has waited for this process until now.
        sys::lower_priority();
        for received in &containers {
            self.remove(received);
        }
    }

    /// Receives containers and entries until the command will hide nothing more, and confirms that. Confirms nothing after a
    /// signal to this process or an error.
    fn receive(&self, socket: &OwnedFd) -> Vec<Received> {
        let mut containers: Vec<Received> = Vec::new();
        let mut buffer = vec![0; MESSAGE_BYTES];
        while !self.cancel.is_cancelled() {
            match receive_message(socket, &mut buffer) {
                Err(Errno::INTR) => {}
                Ok((&[], _)) => {
                    // If the command has ended already, it does not wait for the receipt.
                    let _ = rustix::net::send(socket, RECEIPT, SendFlags::NOSIGNAL);
                    break;
                }
                Ok((message, descriptors)) => {
                    if take_in(&mut containers, message, descriptors).is_none() {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        containers
    }

    /// Removes the entries of a container that were announced, and the container if nothing else is in it.
    fn remove(&self, received: &Received) {
        let Received {
            container, path, ..
        } = received;
        let summary = container.remove_entries(&self.removal, received.own(), path, self.log);
        let removed = summary.is_complete().then(|| container.remove());
        match removed {
            Some(Ok(Removed::Gone)) => return,
            Some(Ok(Removed::InUse)) => self.log.write_failure(path, Errno::NOTEMPTY),
            Some(Err(errno)) => self.log.write_failure(path, errno),
            // The reasons have been written, or a signal has cancelled the removal.
            None => {}
        }
        self.log.write_leftover(path);
    }
}

impl Received {
    /// Returns the names of the entries that are those that were announced.
    fn own(&self) -> Vec<PathBuf> {
        let announced = self.entries.iter();
        let own = announced.filter(|(name, id)| self.container.look(name) == Ok(*id));
        let mut names: Vec<_> = own.map(|(name, _)| PathBuf::from(name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Adds the container or the entry of a message. Returns `None` if the message has another form.
fn take_in(
    containers: &mut Vec<Received>,
    message: &[u8],
    descriptors: Option<[OwnedFd; DESCRIPTORS]>,
) -> Option<()> {
    if let Some([place, dir]) = descriptors {
        let name = CStr::from_bytes_until_nul(message).ok()?;
        let path = &message[name.count_bytes() + 1..];
        containers.push(Received {
            container: Container::received(place, dir, name.to_owned()),
            path: PathBuf::from(OsStr::from_bytes(path)),
            entries: Vec::new(),
        });
    } else {
        let (id, name) = message.split_first_chunk()?;
        let entry = (OsStr::from_bytes(name).to_owned(), FileId::decoded(*id));
        containers.last_mut()?.entries.push(entry);
    }
    Some(())
}

/// Receives one message. It is empty at the end.
fn receive_message<'a>(
    socket: &OwnedFd,
    buffer: &'a mut [u8],
) -> Result<(&'a [u8], Option<[OwnedFd; DESCRIPTORS]>), Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [IoSliceMut::new(buffer)];
    let received = recvmsg(socket, &mut text, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if received
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(Errno::MSGSIZE);
    }
    Ok((&buffer[..received.bytes], descriptors.try_into().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_cli::locale::Charset;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::fs::File;
    use std::rc::Rc;

    #[test]
    fn messages_are_received_as_they_were_sent() {
        let scratch = tempfile::tempdir().unwrap();
        let place = Rc::new(OwnedFd::from(File::open(scratch.path()).unwrap()));
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let mut handle = DaemonHandle {
            socket: ours,
            room: 2,
        };
        let container = Container::create(place).unwrap();
        for path in ["/a b/.rmz-1", ""] {
            handle.hand_over(&container, Path::new(path)).unwrap();
        }
        let third = handle.hand_over(&container, Path::new(""));
        assert_eq!(third, Err(Errno::MFILE));
        let name = OsStr::from_bytes(b"\xff\n");
        let id = FileId::decoded([7; FileId::BYTES]);
        handle.announce(name, id).unwrap();
        shutdown(&handle.socket, Shutdown::Write).unwrap();

        let daemon = Daemon {
            log: &Log::from_environment(Charset::Ascii).unwrap(),
            removal: RemoveOp::new(),
            cancel: &Cancel::new(),
        };
        let received = daemon.receive(&theirs);
        let shown: Vec<_> = received
            .iter()
            .map(|it| (it.container.name(), it.path.to_str(), &it.entries[..]))
            .collect();
        let expected = [
            (container.name(), Some("/a b/.rmz-1"), &[][..]),
            (container.name(), Some(""), &[(name.to_owned(), id)]),
        ];
        assert_eq!(shown, expected);
        assert!(handle.confirm());
    }

    #[test]
    fn a_message_of_another_form_is_not_taken_in() {
        let mut containers = Vec::new();
        let descriptors = || Some([(); 2].map(|()| File::open("/").unwrap().into()));
        for nonsense in [&b"x"[..], b"E123", &[7; FileId::BYTES + 1]] {
            assert!(take_in(&mut containers, nonsense, None).is_none());
        }
        assert!(take_in(&mut containers, b".rmz-1", descriptors()).is_none());
        assert!(containers.is_empty());
    }
}
