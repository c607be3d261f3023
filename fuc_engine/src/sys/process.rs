//! Facts about this process, none of which the engine changes.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::time::Duration;

use super::stat::FileTime;
use rustix::fs::{Mode, stat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit, umask as set_umask};
use rustix::thread::{
    CapabilitySet, SecureComputingMode, UnshareFlags, capabilities, secure_computing_mode,
    unshare_unsafe,
};
use rustix::time::{ClockId, clock_gettime};

use super::calls::is_served;

/// The resources that all threads of this process have used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Processor time, in user space and in the kernel.
    pub(crate) cpu: Duration,
    /// Number of times that a thread gave up its processor, to wait.
    pub(crate) voluntary_switches: u64,
    /// Number of blocks of 512 bytes that were read from disks.
    pub(crate) blocks_read: u64,
}

impl Usage {
    /// Returns the resources that were used since the process had used `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(before.voluntary_switches),
            blocks_read: self.blocks_read.saturating_sub(before.blocks_read),
        }
    }
}

/// Returns what this process has used. Returns zeros if the call fails.
pub(crate) fn usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `getrusage` writes an `rusage`, which this is large enough for.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeros are a valid `rusage`, and the kernel writes a valid one.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        blocks_read: usage.ru_inblock as u64,
    }
}

/// Returns `true` if a sandbox filters the system calls of this thread, or if that is not known.
pub(super) fn has_seccomp() -> bool {
    secure_computing_mode() != Ok(SecureComputingMode::Disabled)
}

/// Returns `true` if the kernel has given a file this time since it was started, according to the clock as it is set now.
///
/// The clock may have been set since. Then times of files look as if they were before the start, or in the future.
pub(crate) fn is_since_boot(time: FileTime) -> bool {
    let nanoseconds = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let (now, since_boot) = (
        nanoseconds(ClockId::Realtime),
        nanoseconds(ClockId::Boottime),
    );
    (now - since_boot..=now).contains(&time.nanoseconds_since_start())
}

pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns `true` if this process may change the modes and times of files of other users.
pub(crate) fn may_change_files_of_others() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::FOWNER))
}

/// Returns the random bytes that the kernel gave this program when it started: always the same ones.
pub(crate) fn random_at_start() -> u128 {
    // SAFETY: `getauxval` reads the auxiliary vector, which never changes.
    let bytes = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    if bytes.is_null() {
        return 0;
    }
    // SAFETY: the kernel has put 16 bytes at this address, which stay as long as the process.
    u128::from_ne_bytes(unsafe { bytes.read() })
}

/// Returns how many bytes of memory the cgroup of this process may use. Returns `None` if it has no
/// limit, or if that is unknown. The limits of the cgroups above it are not looked at.
pub(crate) fn memory_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut files = groups.lines().flat_map(memory_limit_files);
    files.find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok())
}

/// Returns the files that may hold the limit, given a line of `/proc/self/cgroup`. A container often
/// has its own cgroup as the root.
fn memory_limit_files(line: &str) -> Vec<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (mount, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let in_group = |path: &str| format!("{mount}{}/{file}", path.trim_end_matches('/'));
    vec![in_group(path), in_group("")]
}

/// Returns the number of descriptors that this process may have open.
pub(crate) fn descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// Prepares this process for its second thread: enlarges its descriptor table, as far as its limit permits. Does nothing if it
/// has other threads.
///
/// Whenever the kernel enlarges a table that several threads share, it waits for all processors: 15 to 20 ms for the
/// descriptor 256, and again for 512, 1024 and 2048. Without this call, removing a chain of 900 directories takes 36 ms
/// instead of 10 (tmpfs, 2 cores, 7 rounds).
pub(crate) fn prepare_for_threads() {
    /// As many as directories are open at most.
    const DESCRIPTORS: usize = 4096;
    // Each thread is a directory there, and counts as a link.
    let threads = stat("/proc/self/task").map_or(0, |tasks| tasks.st_nlink.saturating_sub(2));
    if threads != 1 {
        return;
    }
    let last = descriptor_limit().min(DESCRIPTORS).saturating_sub(1);
    // Fails if stderr is closed. Then the table grows when it must.
    let _ = fcntl_dupfd_cloexec(rustix::stdio::stderr(), last as RawFd);
}

/// Returns how many bytes of address space this process may use.
pub(crate) fn address_space_limit() -> u64 {
    getrlimit(Resource::As).current.unwrap_or(u64::MAX)
}

/// Returns the permission bits that this process withholds from the files that it creates.
pub(crate) fn umask() -> u32 {
    /// Value for an unknown umask. Too few permissions are safer than too many.
    const IF_UNKNOWN: u32 = 0o077;
    let told = is_served().then(|| umask_in_status("/proc/self/status"));
    told.flatten()
        .or_else(umask_of_a_thread)
        .unwrap_or(IF_UNKNOWN)
}

fn umask_in_status(path: &str) -> Option<u32> {
    let status = std::fs::read_to_string(path).ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

/// Reads the umask in a thread that has a copy of its own.
///
/// The only call that returns the umask also sets it. In the copy that all threads share, this would
/// change the permissions of files that other threads create at that moment.
fn umask_of_a_thread() -> Option<u32> {
    let ask = || {
        // SAFETY: the table of descriptors stays shared. This unshares umask, working directory
        // and root, none of which this thread needs before it ends.
        unsafe { unshare_unsafe(UnshareFlags::FS) }.ok()?;
        Some(set_umask(Mode::empty()).as_raw_mode())
    };
    let asking = std::thread::Builder::new().spawn(ask).ok()?;
    asking.join().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_memory_is_read_from_the_own_cgroup() {
        assert_eq!(
            memory_limit_files("4:memory:/a/b"),
            [
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
        let root = "/sys/fs/cgroup/memory.max";
        assert_eq!(memory_limit_files("0::/"), [root, root]);
        assert_eq!(memory_limit_files("3:cpu:/a"), [""; 0]);
        assert_eq!(memory_limit_files("garbage"), [""; 0]);
    }

    #[test]
    fn the_umask_is_known_without_proc() {
        let told = umask_in_status("/proc/self/status");
        assert_eq!(umask_in_status("/nowhere/status"), None);
        match (told, umask_of_a_thread()) {
            (Some(told), Some(asked)) => {
                assert_eq!(asked, told);
                // Reading it has not changed it.
                assert_eq!(umask_in_status("/proc/self/status"), Some(told));
            }
            _ => testkit::skip!("no /proc, or a sandbox that refuses unshare"),
        }
    }
}
