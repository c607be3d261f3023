//! A filesystem in memory whose server answers each request late, like a file server far away.
//!
//! The kernel sends its requests through FUSE. Each operation is done as soon as its request arrives, and only the
//! reply waits. Waiting takes no processor time, and any number of requests can wait at once. So a command is as fast
//! here as it has requests under way.
//!
//! Reading and writing the file `.server` in the root directory shows and sets the latency; it is not listed. A copy
//! of a large tree to the filesystem is best made without latency.
//!
//! - `replies`: the queue of replies that are not due yet
//! - `server`: the requests
//! - `tree`: directories, files and attributes

use std::{
    fmt,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use fuser::{Config, MountOption, Session, SessionACL};

use crate::host::{command, machine};

use replies::{Counts, Replies};
use server::Server;

mod replies;
mod server;
mod tree;

/// Options of `serve`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Answer each request N microseconds late
    #[arg(long, value_name = "N", default_value_t = 0)]
    latency_us: u64,
    /// Number of threads that read requests [default: one per core]
    #[arg(long, value_name = "N")]
    readers: Option<usize>,
    /// An existing directory
    mount_point: PathBuf,
}

/// Serves a new filesystem until it is unmounted, or until a signal asks this process to end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let readers = options.readers.unwrap_or_else(machine::cores);
    let latency = Duration::from_micros(options.latency_us);
    let mut session = mount(&options.mount_point, latency, readers)?;
    let mut unmounter = session.unmount_callable();
    ctrlc::set_handler(move || {
        // The kernel detaches the mount, even from processes that still use it; the end of this one wakes them.
        if let Err(error) = unmounter.unmount() {
            eprintln!("benches: cannot unmount: {error}");
        }
        process::exit(0);
    })
    .context("cannot listen for signals")?;
    session.run().context("the kernel ended the connection")
}

/// Mounts a new filesystem, which nothing serves yet.
fn mount(point: &Path, latency: Duration, readers: usize) -> Result<Session<Server>> {
    command::need_root("mounting")?;
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let server = Server::new(uid.as_raw(), gid.as_raw(), Replies::new(latency)?);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("benches".to_owned()),
        MountOption::Subtype("slow".to_owned()),
        MountOption::Dev,
        MountOption::Suid,
    ];
    // Neither the kernel nor the server checks permissions, so other users are kept out. A check by the kernel would
    // ask for the attributes of a directory after each change in it; the replies of an NFS server bring them along.
    config.acl = SessionACL::Owner;
    config.n_threads = Some(readers);
    config.clone_fd = true;
    Session::new(server, point, &config)
        .map_err(|error| anyhow!("cannot mount FUSE on {}: {error}", point.display()))
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "latency_us {}", self.latency.as_micros())?;
        writeln!(f, "requests {}", self.requests)?;
        writeln!(f, "most_pending {}", self.most_pending)
    }
}
