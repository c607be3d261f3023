//! `benches serve` as a process of its own.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use testkit::skip;

#[test]
fn a_signal_unmounts_a_filesystem_that_is_in_use() {
    if !geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        skip!("mounting FUSE takes root and /dev/fuse");
    }
    let point = tempfile::tempdir().unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let outside = device(point.path());
    for signal in [Signal::TERM, Signal::INT] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_benches"));
        let mut server = serve.arg("serve").arg(point.path()).spawn().unwrap();
        while device(point.path()) == outside {
            assert!(server.try_wait().unwrap().is_none(), "it does not serve");
            thread::sleep(Duration::from_millis(1));
        }
        fs::write(point.path().join("file"), "content").unwrap();
        let used = File::open(point.path().join("file")).unwrap();
        kill_process(Pid::from_child(&server), signal).unwrap();
        assert!(server.wait().unwrap().success(), "{signal:?}");
        assert_eq!(fs::read_dir(point.path()).unwrap().count(), 0);
        let error = io::read_to_string(used).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected, "{signal:?}");
    }
}
