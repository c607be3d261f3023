//! Files on which another process holds a lease, as Samba and NFS servers do. cp waits until the holder gives up the
//! lease.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use testkit::{
    or_skip,
    probe::{Skip, has_program},
    tree::{Scratch, Tree},
};

use crate::support::{cpz, inode, succeeds};

/// Takes a write lease on `$ARGV[0]`. When another process opens the file, waits a while and gives up the lease.
const HOLD: &str = r#"
    my ($F_SETLEASE, $F_WRLCK, $F_UNLCK) = (1024, 1, 2);
    $| = 1;
    $SIG{ALRM} = sub { exit 4 };
    alarm 60;
    open my $file, "+<", $ARGV[0] or exit 3;
    $SIG{IO} = sub {
        select undef, undef, undef, 0.3;
        fcntl $file, $F_SETLEASE, $F_UNLCK or exit 5;
        print "broken\n";
        exit 0;
    };
    fcntl $file, $F_SETLEASE, $F_WRLCK or do { print "no lease: $!\n"; exit 0 };
    print "held\n";
    sleep 1 while 1;
"#;

/// Another process that holds a lease until the file is opened.
struct Holder {
    process: Child,
    says: BufReader<ChildStdout>,
}

impl Holder {
    fn of(file: &Path) -> Result<Self, Skip> {
        if !has_program("perl") {
            return Err(Skip("holding a lease takes perl".into()));
        }
        let mut process = Command::new("perl")
            .args(["-e", HOLD])
            .arg(file)
            .stdout(Stdio::piped())
            .spawn()
            .expect("perl starts");
        let says = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let mut holder = Self { process, says };
        let mut line = String::new();
        holder.says.read_line(&mut line).expect("the pipe is open");
        match line.trim_end() {
            "held" => Ok(holder),
            refused => Err(Skip(format!("the filesystem grants no lease: {refused:?}"))),
        }
    }

    /// Asserts that the file was opened while the lease was held.
    #[track_caller]
    fn assert_broken(mut self) {
        let mut said = String::new();
        self.says
            .read_to_string(&mut said)
            .expect("the pipe is open");
        assert_eq!(said, "broken\n");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The holder may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn content(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
#[ignore = "slow"]
fn a_leased_source_is_waited_for() {
    let dir = Scratch::with("s/f=content s/g=");
    for flag in ["-r", "-a", "-u"] {
        let holder = or_skip!(Holder::of(&dir.at("s/f")));
        succeeds(&dir, [flag, "-T", "s", "d"]);
        holder.assert_broken();
        assert_eq!(content(dir.at("d/f")), "content", "{flag}");
        fs::remove_dir_all(dir.at("d")).unwrap();
    }
}

#[test]
#[ignore = "slow"]
fn a_leased_dest_is_waited_for_and_stays_the_same_file() {
    for flag in ["-r", "-f", "-a", "-af"] {
        let dir = Scratch::with("s/f=new d/f='old content' other-name==d/f");
        let dest = dir.at("d/f");
        let before = inode(&dest);
        let holder = or_skip!(Holder::of(&dest));
        succeeds(&dir, [flag, "--no-preserve=links", "-T", "s", "d"]);
        holder.assert_broken();
        assert_eq!((inode(&dest), &*content(&dest)), (before, "new"), "{flag}");
        assert_eq!(content(dir.at("other-name")), "new", "{flag}");
    }
}

#[test]
#[ignore = "slow"]
fn a_large_leased_source_is_waited_for() {
    let dir = Scratch::new();
    let large = "x".repeat(5 << 20);
    Tree::at(dir.path())
        .file("s/f", &*large)
        .file("d/f", "old content");
    let holders = ["s/f", "d/f"].map(|file| Holder::of(&dir.at(file)));
    let [source, dest] = holders;
    let (source, dest) = (or_skip!(source), or_skip!(dest));
    cpz(&dir, "-T s d").output().assert_success();
    source.assert_broken();
    dest.assert_broken();
    assert_eq!(content(dir.at("d/f")), large);
}
