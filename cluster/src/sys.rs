//! Messages that MPI sends while the program goes on.
//!
//! The crate `mpi` ties the buffer of such a message to a scope, and every message of a job would live until the
//! end of that scope. Here each buffer is freed when its message has left.
#![allow(unsafe_code)]

use std::ffi::c_int;

use mpi::datatype::Equivalence;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::SimpleCommunicator;

const TAG: c_int = 0;

/// A message under way.
struct Sending {
    request: ffi::MPI_Request,
    /// MPI reads it until the request is complete. It is never moved or changed.
    _bytes: Box<[u8]>,
}

/// The messages that have not left yet.
#[derive(Default)]
pub(crate) struct Outbox(Vec<Sending>);

impl Outbox {
    /// Begins to send `bytes` to the process of this rank.
    pub(crate) fn send(&mut self, world: &SimpleCommunicator, to: c_int, bytes: Vec<u8>) {
        let bytes = bytes.into_boxed_slice();
        let length = c_int::try_from(bytes.len()).expect("BUG: a message of 2 GiB");
        let mut request = std::mem::MaybeUninit::uninit();
        // SAFETY: the buffer is as long as said. It stays at its address until the request is complete, because
        // `Sending` owns it until then. MPI is initialized, because there is a communicator. By default,
        // errors end the process. So the call succeeds and writes the request.
        let request = unsafe {
            ffi::MPI_Isend(
                bytes.as_ptr().cast(),
                length,
                u8::equivalent_datatype().as_raw(),
                to,
                TAG,
                world.as_raw(),
                request.as_mut_ptr(),
            );
            request.assume_init()
        };
        self.0.push(Sending {
            request,
            _bytes: bytes,
        });
    }

    /// Frees the messages that have left. Returns `true` if all have.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.0.retain_mut(|sending| {
            let mut has_left = 0;
            // SAFETY: the request is one of `MPI_Isend` that is not complete, since complete ones are dropped here.
            unsafe {
                ffi::MPI_Test(
                    &mut sending.request,
                    &mut has_left,
                    ffi::RSMPI_STATUS_IGNORE,
                );
            }
            has_left == 0
        });
        self.0.is_empty()
    }
}
