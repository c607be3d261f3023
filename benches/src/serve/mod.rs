//! A filesystem in memory whose server answers each request late, like a file server far away.
//!
//! The kernel sends its requests through FUSE. Each operation is done as soon as its request arrives, and only the
//! reply waits. Waiting takes no processor time, and any number of requests can wait at once. So a command is as fast
//! here as it has requests under way. There are directories and regular files, and nothing else.
//!
//! The benchmarks serve it themselves. By hand, each line on stdin is the latency of the following requests in
//! microseconds:
//!
//! ```console
//! # benches serve /mnt
//! 1000
//! ```
//!
//! To make the kernel forget names and attributes, run `mount -i -o remount /mnt`; to end the server, `umount /mnt`.
//!
//! - `replies`: the queue of replies that are not due yet
//! - `server`: the requests
//! - `tree`: directories, files and attributes

use std::{
    io,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use fuser::{Config, Filesystem, MountOption, Session, SessionACL};
use rustix::mount::{UnmountFlags, unmount};

use crate::host::{command, machine};

pub(crate) use replies::Replies;

use server::Server;

mod replies;
mod server;
mod tree;

/// Options of `serve`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Answer each request N microseconds late; to change it, write a number to stdin
    #[arg(long, value_name = "N", default_value_t = 0)]
    latency_us: u64,
    /// An existing directory
    mount_point: PathBuf,
}

/// Serves a new filesystem until it is unmounted, or until a signal asks this process to end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let point = options.mount_point.canonicalize();
    let point = point.with_context(|| options.mount_point.display().to_string())?;
    let replies = Replies::new(Duration::from_micros(options.latency_us))?;
    let session = mount(&point, replies.clone())?;
    ctrlc::set_handler(move || {
        // Other processes may still use the mount. The end of this one wakes those that wait for a reply.
        if let Err(error) = unmount(&point, UnmountFlags::DETACH) {
            eprintln!("benches: cannot unmount {}: {error}", point.display());
        }
        process::exit(0);
    })
    .context("cannot listen for signals")?;
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(io::Result::ok) {
            match line.trim().parse() {
                Ok(latency_us) => replies.set_latency(Duration::from_micros(latency_us)),
                Err(error) => eprintln!("benches: {line:?}: {error}"),
            }
        }
    });
    session.run().context("the kernel ended the connection")
}

/// Mounts a new filesystem, which nothing serves yet.
pub(crate) fn mount(point: &Path, replies: Replies) -> Result<Session<impl Filesystem>> {
    command::need_root("mounting")?;
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let server = Server::new(uid.as_raw(), gid.as_raw(), replies);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("benches".to_owned()),
        MountOption::Subtype("slow".to_owned()),
    ];
    // Neither the kernel nor the server checks permissions, so other users are kept out. A check by the kernel would
    // ask for the attributes of a directory after each change in it; the replies of an NFS server bring them along.
    config.acl = SessionACL::Owner;
    // Waiting is left to the queue, so the threads that read requests only need processor time. On two loaded cores 128
    // threads that look up names got 71,000 replies per second from one reader, 68,000 from two, and 57,000 from four,
    // at 1 ms.
    config.n_threads = Some(machine::cores().div_ceil(2));
    config.clone_fd = true;
    Session::new(server, point, &config)
        .map_err(|error| anyhow!("cannot mount FUSE on {}: {error}", point.display()))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use fuser::BackgroundSession;
    use testkit::{
        or_skip,
        probe::Skip,
        snapshot::{Attributes, assert_same_tree},
        tree::Tree,
    };

    use super::*;

    /// A filesystem that this process serves, and that is unmounted at the end.
    struct Mounted {
        session: Option<BackgroundSession>,
        point: tempfile::TempDir,
    }

    impl Mounted {
        fn new(latency: Duration) -> Result<Self, Skip> {
            let point = tempfile::tempdir().unwrap();
            let session = mount(point.path(), Replies::new(latency).unwrap());
            let session = session.map_err(|error| Skip(format!("{error:#}")))?;
            Ok(Self {
                session: Some(session.spawn().unwrap()),
                point,
            })
        }

        fn path(&self, name: &str) -> PathBuf {
            self.point.path().join(name)
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            if let Some(session) = self.session.take() {
                let _ = session.umount_and_join();
            }
        }
    }

    fn copy(source: &Path, dest: &Path) {
        let mut cp = Command::new("cp");
        let status = cp.args(["-a", "-T", "--"]).args([source, dest]).status();
        assert!(status.unwrap().success());
    }

    #[test]
    fn a_copy_to_the_filesystem_and_back_is_the_same_tree() {
        let mounted = or_skip!(Mounted::new(Duration::from_micros(10)));
        let scratch = tempfile::tempdir().unwrap();
        let [original, back] = ["original", "back"].map(|name| scratch.path().join(name));
        let tree = Tree::at(&original);
        tree.file("deep/er/file", b"content")
            .owner(12, 34)
            .mode(0o4751)
            .mtime(Duration::new(1_234_567_890, 123_456_789))
            .file("large", vec![b'x'; 3 << 20]);
        for i in 0..2000 {
            tree.file(format!("wide/{i}"), i.to_string());
        }
        tree.select("deep/er").mode(0o1700);
        let there = mounted.path("there");
        copy(&original, &there);
        copy(&there, &back);
        let same = Attributes::CONTENT | Attributes::OWNER | Attributes::MTIME;
        assert_same_tree(&there, &original, same);
        assert_same_tree(&back, &original, same);
        fs::remove_dir_all(&there).unwrap();
        assert_eq!(fs::read_dir(mounted.path("")).unwrap().count(), 0);
    }

    #[test]
    fn an_unlinked_file_can_be_used_until_it_is_closed() {
        let mounted = or_skip!(Mounted::new(Duration::ZERO));
        fs::write(mounted.path("file"), "content").unwrap();
        let open = fs::File::open(mounted.path("file")).unwrap();
        fs::remove_file(mounted.path("file")).unwrap();
        assert_eq!(std::io::read_to_string(open).unwrap(), "content");
        assert!(!mounted.path("file").exists());
    }
}
