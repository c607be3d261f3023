//! `--dry-run`, which GNU's cp does not have: what a real run would print, and nothing is touched.

use testkit::{
    run::{Run, Status, check_dry_run},
    tree::{Scratch, Tree, plant},
};

use crate::support::{CP, CPZ};

#[test]
fn plans() {
    CP.rows(
        r"
        # A plan ends with the entries and the bytes that would be copied.
        s/a=12345 s/d/b=123 t/
        cpz --dry-run=total s t
        > would copy 4 entries, 8 B
        cpz --dry-run s t
        > would copy 's' -> 't/s'
        > would copy 's/a' -> 't/s/a'
        > would copy 's/d' -> 't/s/d'
        > would copy 's/d/b' -> 't/s/d/b'
        > would copy 4 entries, 8 B
        # Each operand is seen as if no other one had been copied.
        a/f=1 b/f=2 t/
        cpz --dry-run -n a/. b/. t
        > would copy 'a/./f' -> 't/./f'
        > would copy 'b/./f' -> 't/./f'
        > would copy 2 entries, 2 B
        # A directory in the way of a hard link that is not permitted is foreseen.
        f= :1 t/f/ :1 %777 t :1
        user cpz --dry-run=total -l -b f t
        > would copy 0 entries, 0 B
        ! cannot create hard link 't/f' to 'f': File exists
        user cpz -l -b f t
        ! cannot create hard link 't/f' to 'f': File exists
        # A directory that may not be written to gets no copies.
        s/a= t/ %555 secret= :1 %600
        user cpz --dry-run s secret t
        > would fail to copy 'secret' -> 't/secret'
        > would copy 0 entries, 0 B
        ! cannot create directory 't/s': Permission denied
        ! cannot ...secret...: Permission denied
        user cpz -v s secret t
        > 'secret' -> 't/secret'
        ! cannot create directory 't/s': Permission denied
        ! cannot ...secret...: Permission denied",
    );
}

/// Compares dry runs with real ones.
#[track_caller]
fn foresees(tree: &str, command_lines: &[&str], is_refused: bool) {
    for line in command_lines {
        let words: Vec<_> = line
            .split(' ')
            .map(|word| word.trim_matches('\''))
            .collect();
        let told = check_dry_run(CPZ, &words, plant(tree));
        assert!(
            !is_refused || told.status == Status::Exit(1),
            "{line}: {told}"
        );
    }
}

#[test]
fn what_a_real_run_does_is_foreseen() {
    // Rules about dests that exist.
    let dests = "s/a=new s/b=new s/d/c=new t/a=old t/b=old t/b~=older t/d/";
    let rules = [
        "-n",
        "-u",
        "-b",
        "--backup=numbered",
        "-f",
        "--remove-destination",
        "-al",
    ];
    let lines = rules.map(|rule| format!("{rule} s/. t"));
    foresees(dests, &lines.each_ref().map(String::as_str), false);
    // Dests with unusual names.
    let lines = [
        "-s f ''",
        "d to-file ''",
        "-s f dangling/",
        "-T d dangling/",
        "-sf f dangling/",
        "-b d dangling/",
        "-u to-file dangling/",
        "--parents d/sub/. t",
    ];
    foresees("f=x d/sub/ t/ dangling->nowhere to-file->f", &lines, false);
    // Failures.
    let lines = [
        "-u f dangling",
        "-bT f d",
        "f none/",
        "f none/./",
        "none d",
        "d f",
        "f d/sub",
        "f f",
        "d d/new",
        "-T f d",
        "f dangling",
    ];
    foresees("f= d/g= d/sub/f/ dangling->none", &lines, true);
    foresees("a/x=1 b/x=2 d/", &["a/x b/x d"], true);
    foresees(
        "a/b/c= a/b/d/f= a/e= t/",
        &["--parents a/b/c a/b/d a/e t"],
        false,
    );
}

#[test]
fn makes_no_call_that_could_change_anything() {
    use testkit::probe::Skip;
    let scratch = Scratch::new();
    Tree::at(&scratch)
        .plant("s/a=x s/d/b=x s/l->a t/s/a=old")
        .file("big", vec![1; 5 << 20]);
    let calls = "trace=open,openat,creat,unlink,unlinkat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,\
                 symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,\
                 setxattr,lsetxattr,fsetxattr,removexattr,truncate,ftruncate,fallocate,copy_file_range,sendfile,rmdir";
    let traced = Run::new("strace")
        .args([
            "-f",
            "-o",
            "log",
            "-e",
            calls,
            CPZ,
            "--dry-run",
            "-ab",
            "s",
            "big",
            "t",
        ])
        .current_dir(&scratch);
    let Ok(outcome) = std::panic::catch_unwind(|| traced.output()) else {
        return Skip("strace cannot be run".into()).announce();
    };
    outcome.assert_status(0);
    let log = std::fs::read_to_string(scratch.at("log")).unwrap();
    let changes = |line: &&str| {
        let opens = line.contains("open(") || line.contains("openat(");
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];
        // A call that another thread interrupts in the log is continued in a line without its arguments.
        let is_call = !["+++", "---", "<... "]
            .iter()
            .any(|mark| line.contains(mark));
        is_call && (!opens || writes.iter().any(|flag| line.contains(flag)))
    };
    let changing: Vec<&str> = log.lines().filter(changes).collect();
    assert_eq!(changing, [""; 0], "{log}");
    assert!(log.contains("openat("), "{log}");
}
