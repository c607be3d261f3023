use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{
        FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown,
        symlink,
    },
    thread,
    time::UNIX_EPOCH,
};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, SeekFrom, Timespec, Timestamps, copy_file_range, lgetxattr,
    llistxattr, mknodat, seek, statvfs, utimensat,
};

use super::*;
use crate::{
    habits, or_skip, served,
    snapshot::{Attributes, assert_same_tree},
    tree::{Tree, acl},
    util::{TIME_LIMIT, unless_busy},
};

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|e| e.raw_os_error())
}

fn code(errno: Errno) -> Option<i32> {
    Some(errno.raw_os_error())
}

fn create(path: &Path) -> File {
    File::create(path).unwrap()
}

#[test]
fn each_path_can_have_a_number_of_its_own() {
    for numbering in [Numbering::Lasting, Numbering::Forgetful] {
        let mount = served!(numbering);
        let path = mount.path().to_owned();
        let number = |name: &str| fs::metadata(path.join(name)).unwrap().ino();
        let tree = Tree::at(&path);
        tree.plant("d/one=content");
        let before = number("d/one");
        tree.plant("d/two==d/one");
        assert_ne!(number("d/one"), number("d/two"));
        assert_eq!(number("d/one") == before, numbering == Numbering::Lasting);
        assert_eq!(fs::read(path.join("d/two")).unwrap(), b"content");
        let stored = fs::metadata(mount.stored_at("d/two")).unwrap();
        assert_eq!(stored.nlink(), 2);
        drop(mount);
        assert!(!path.exists());
    }
}

#[test]
fn other_numberings_are_true_equal_or_fresh() {
    let numbers = |numbering| {
        let mount = FuseMount::with(habits!(numbering))?;
        Tree::at(mount.path()).plant("a= b==a c=");
        let stat = |name: &str| fs::metadata(mount.at(name)).unwrap();
        let [a, b, c, again] = ["a", "b", "c", "a"].map(|name| stat(name).ino());
        Ok((a == b, a == c, a == again, stat("c").nlink()))
    };
    assert_eq!(or_skip!(numbers(Numbering::True)), (true, false, true, 1));
    assert_eq!(or_skip!(numbers(Numbering::Equal)), (true, true, true, 2));
    assert_eq!(
        or_skip!(numbers(Numbering::Fresh)),
        (false, false, false, 1)
    );
}

#[test]
fn other_ways_to_open_and_read_a_file_do_not_fail() {
    let refused = Some(Errno::OVERFLOW);
    let mount = served!(open_untruncated: refused, direct_read: refused);
    let path = mount.at("f");
    fs::write(&path, "content").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"content");
    create(&path);
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn an_acl_changes_the_mode_unless_it_has_no_meaning() {
    for meaningless_xattrs in [false, true] {
        let mount = served!(meaningless_xattrs);
        let path = mount.at("f");
        Tree::at(mount.path()).plant("f= %600");
        acl::add(&path, "u:1000:r").unwrap();
        let bytes = lgetxattr(&path, "system.posix_acl_access", &mut [0; 100]);
        assert_eq!(bytes, Ok(4 + 5 * 8));
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, if meaningless_xattrs { 0o600 } else { 0o640 });
    }
}

#[test]
fn removals_fail_for_a_time() {
    let pause = Duration::from_millis(200);
    for removal in [
        Removal::Pausing(Errno::NOSPC, pause),
        Removal::Hesitant(Errno::NOSPC),
    ] {
        let mount = served!(removal);
        Tree::at(mount.path()).plant("a= b/");
        let (a, b) = (mount.at("a"), mount.at("b"));
        if matches!(removal, Removal::Hesitant(_)) {
            assert_eq!(errno(fs::remove_file(&a)), code(Errno::NOSPC));
        }
        fs::remove_file(a).unwrap();
        assert_eq!(errno(fs::remove_dir(&b)), code(Errno::NOSPC));
        thread::sleep(pause);
        fs::remove_dir(b).unwrap();
    }
}

#[test]
fn content_and_metadata_are_falsified() {
    let mount = served!(unreadable_from: Some(1 << 20),
        longest_write: Some(1000),
        nonseekable: true,
        hidden_sizes: true,
        time_step_seconds: 2,
        time_range: Some(0..=i32::MAX.into()),
        zero_statfs: true,
        listed_type: Some(FileType::NamedPipe));
    let path = mount.at("odd");
    let mut file = create(&path);
    assert_eq!(file.write(&[1; 5000]).unwrap(), 1000);
    assert_eq!(errno(io::Seek::rewind(&mut file)), code(Errno::SPIPE));
    let stat = |path: &Path| fs::symlink_metadata(path).unwrap();
    let in_2038 = i64::from(i32::MAX);
    for (given, shown) in [(7, 6), (-7, 0), (1 << 32, in_2038)] {
        let time = Timespec {
            tv_sec: given,
            tv_nsec: 500_000_000,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        assert_eq!((stat(&path).mtime(), stat(&path).mtime_nsec()), (shown, 0));
    }
    assert_eq!(stat(&path).len(), 0);
    assert_eq!(fs::read(&path).unwrap(), [1; 1000]);
    let far = std::os::unix::fs::FileExt::read_at(&File::open(&path).unwrap(), &mut [0], 1 << 20);
    assert_eq!(errno(far), code(Errno::IO));
    let statfs = statvfs(&path).unwrap();
    assert_eq!((statfs.f_namemax, statfs.f_bsize), (0, 0));
    let listed = fs::read_dir(mount.path()).unwrap().next().unwrap().unwrap();
    assert!(listed.file_type().unwrap().is_fifo());
}

#[test]
fn a_client_trusts_what_a_late_server_has_said() {
    let mount = served!(client_caches: Duration::from_secs(3_600));
    mount.set_latency(Duration::from_millis(1));
    let tree = Tree::at(mount.at("t"));
    tree.plant("d/a=a").file("d/b", vec![7; 300_000]);
    assert_same_tree(mount.stored_at("t"), mount.at("t"), Attributes::CONTENT);
    // The kernel drops the times of a file that was read.
    let known = mount.at("t/d/a");
    assert_eq!(fs::metadata(&known).unwrap().len(), 1);
    fs::remove_file(mount.stored_at("t/d/a")).unwrap();
    assert_eq!(fs::metadata(&known).unwrap().len(), 1);
    assert_eq!(errno(File::open(known)), code(Errno::NOENT));
}

/// Makes what the calls of the rows below need.
fn mounted(habits: Habits) -> Result<FuseMount, Skip> {
    let mount = FuseMount::with(habits)?;
    Tree::at(mount.stored()).plant("f=content ro= %444 d/bad/ t/x/open=");
    Ok(mount)
}

#[test]
fn each_refusal_is_that_of_one_operation() {
    type Call = fn(&Path) -> io::Result<()>;
    let e = Some(Errno::OVERFLOW);
    #[rustfmt::skip]
    let rows: &[(Habits, Call)] = &[
        (habits!(list_xattrs: e), |dir| Ok(llistxattr(dir.join("f"), &mut [0; 9]).map(drop)?)),
        (habits!(statfs: e), |dir| Ok(statvfs(dir).map(drop)?)),
        (habits!(link: e), |dir| fs::hard_link(dir.join("f"), dir.join("new"))),
        (habits!(symlink: e), |dir| symlink("f", dir.join("new"))),
        (habits!(mknod: e), |dir| Ok(mknodat(CWD, dir.join("new"), rustix::fs::FileType::Fifo, Mode::RUSR, 0)?)),
        (habits!(rename: e), |dir| fs::rename(dir.join("f"), dir.join("new"))),
        (habits!(rename_directory: e), |dir| fs::rename(dir.join("d"), dir.join("new"))),
        (habits!(rename_over: e), |dir| fs::rename(dir.join("f"), dir.join("ro"))),
        (habits!(colon: e), |dir| create_new(dir, "new:")),
        (habits!(colon: e), |dir| fs::rename(dir.join("f"), dir.join("new:"))),
        (habits!(unlink_readonly: e), |dir| fs::remove_file(dir.join("ro"))),
        (habits!(read: e), |dir| fs::read(dir.join("f")).map(drop)),
        (habits!(readdir: e), |dir| fs::read_dir(dir.join("d/bad"))?.next().map_or(Ok(()), |entry| entry.map(drop))),
        (habits!(fsync: e), |dir| File::open(dir.join("f"))?.sync_all()),
        (habits!(chmod: e), |dir| fs::set_permissions(dir.join("f"), fs::Permissions::from_mode(0o600))),
        (habits!(chown: e), |dir| lchown(dir.join("f"), Some(1), None)),
        (habits!(utimens: e), |dir| writable(dir)?.set_modified(UNIX_EPOCH)),
        (habits!(truncate: e), |dir| writable(dir)?.set_len(1)),
        (habits!(seek: e), |dir| Ok(seek(File::open(dir.join("f"))?, SeekFrom::Hole(0)).map(drop)?)),
        (habits!(copy_file_range: e), |dir| Ok(copy_file_range(File::open(dir.join("f"))?, Some(&mut 3), writable(dir)?, Some(&mut 0), 1).map(drop)?)),
        (habits!(opendir: e), |dir| fs::read_dir(dir.join("d/bad")).map(drop)),
        (habits!(open_untruncated: e), |dir| writable(dir).map(drop)),
        (habits!(direct_read: e), |dir| read_directly(&dir.join("f"))),
        (habits!(set_acl: e), |dir| acl::add(&dir.join("f"), "u:1:r")),
        (habits!(get_system_xattr: e), |dir| acl::add(&dir.join("f"), "u:1:r")),
    ];
    for (habits, call) in rows {
        let mount = or_skip!(mounted(habits.clone()));
        assert_eq!(
            errno(call(mount.path())),
            code(Errno::OVERFLOW),
            "{habits:?}"
        );
        for name in ["f", "ro", "d/bad"] {
            assert!(mount.stored_at(name).exists(), "{habits:?}");
        }
        for name in ["new", "new:"] {
            assert!(!mount.stored_at(name).exists(), "{habits:?}");
        }
        let mount = or_skip!(mounted(habits!()));
        call(mount.path()).unwrap_or_else(|e| panic!("{e}: {habits:?}"));
    }
}

/// Opens the file `f` without making it empty.
fn writable(dir: &Path) -> io::Result<File> {
    File::options().write(true).open(dir.join("f"))
}

fn read_directly(path: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECT.bits() as i32;
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    file.read(&mut [0; 512]).map(drop)
}

fn create_new(dir: &Path, name: &str) -> io::Result<()> {
    let mut new = File::options();
    new.write(true).create_new(true).mode(0o400);
    new.open(dir.join(name)).map(drop)
}

#[test]
fn some_refusals_come_after_the_deed() {
    let e = Some(Errno::OVERFLOW);
    let mount = or_skip!(mounted(habits!(after_mkdir: e,
        after_unlink: e,
        create_readonly: e)));
    let at = |name: &str| mount.at(name);
    assert_eq!(errno(fs::create_dir(at("dir"))), code(Errno::OVERFLOW));
    assert_eq!(errno(fs::remove_file(at("f"))), code(Errno::OVERFLOW));
    assert_eq!(
        errno(create_new(mount.path(), "new")),
        code(Errno::OVERFLOW)
    );
    assert!(at("dir").is_dir() && at("new").is_file() && !at("f").exists());
}

#[test]
fn what_is_open_is_neither_removed_nor_renamed() {
    let mount = or_skip!(mounted(habits!(busy: Some(Errno::TXTBSY))));
    let at = |name: &str| mount.at(name);
    let refused = |result| assert_eq!(errno(result), code(Errno::TXTBSY));
    let open = ["f", "d/bad"].map(|name| File::open(at(name)).unwrap());
    refused(fs::remove_file(at("f")));
    refused(fs::rename(at("f"), at("new")));
    refused(fs::rename(at("ro"), at("f")));
    refused(fs::remove_dir(at("d/bad")));
    drop(open);
    // A child that another thread has forked may hold them until its exec.
    unless_busy(TIME_LIMIT, || fs::rename(at("ro"), at("f"))).unwrap();
    unless_busy(TIME_LIMIT, || fs::remove_dir(at("d/bad"))).unwrap();
    fs::remove_file(at("f")).unwrap();
}

#[test]
fn removals_have_effects_that_nobody_asked_for() {
    let removal = Removal::Settling(Errno::NOTEMPTY, Duration::from_millis(200));
    let mount = or_skip!(mounted(habits!(removal)));
    let at = |name: &str| mount.at(name);
    fs::remove_file(at("t/x/open")).unwrap();
    assert_eq!(errno(fs::remove_dir(at("t/x"))), code(Errno::NOTEMPTY));
    fs::remove_dir(at("d/bad")).unwrap();
    thread::sleep(Duration::from_millis(200));
    fs::remove_dir(at("t/x")).unwrap();

    let mount = or_skip!(mounted(habits!(removal: Removal::Silly,
        implicit_directories: true)));
    let at = |name: &str| mount.at(name);
    fs::remove_file(at("t/x/open")).unwrap();
    let left = fs::read_dir(at("t/x")).unwrap().next().unwrap().unwrap();
    assert_eq!(errno(fs::remove_file(left.path())), code(Errno::BUSY));
    fs::remove_dir(at("d/bad")).unwrap();
    assert!(at("t").exists() && !at("d").exists());
}

#[test]
fn names_are_limited_or_trimmed() {
    let mount = served!(names: Names::Limited(4));
    assert_eq!(statvfs(mount.path()).unwrap().f_namemax, 4);
    create_new(mount.path(), "four").unwrap();
    let too_long = create_new(mount.path(), "five5");
    assert_eq!(errno(too_long), code(Errno::NAMETOOLONG));
    let mount = served!(names: Names::Trimmed);
    create_new(mount.path(), "a. .").unwrap();
    assert!(mount.stored_at("a").exists() && mount.at("a..").exists());
}

#[test]
fn stat_shows_what_is_not_true() {
    let mount = or_skip!(mounted(habits!(numbering: Numbering::EqualDirectories,
        zero_links: true,
        zero_blocks: true,
        block_bytes: Some(3000),
        close_sets_time: true)));
    let stat = |name: &str| fs::symlink_metadata(mount.at(name)).unwrap();
    assert_eq!([stat("d").ino(), stat("t/x").ino()], [7, 7]);
    assert_ne!(stat("f").ino(), stat("ro").ino());
    let f = stat("f");
    assert_eq!((f.nlink(), f.blocks(), f.blksize()), (0, 0, 2048));
    let file = writable(mount.path()).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    drop(file);
    assert!(stat("f").mtime() > 0);
}
