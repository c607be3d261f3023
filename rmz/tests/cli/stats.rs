//! `--stats`, and the line that counts many failures at a terminal.

use testkit::{or_skip, tree::Scratch};

use crate::support::{RM, rmz};

#[test]
fn totals_as_json_or_as_a_table() {
    RM.rows(
        r#"
        # They are the last line of stdout.
        t/a=1234 t/sub/b=5 t/link->a t/fifo<fifo>
        rmz --stats=json t none
        > {"version":2,"entries":6,"files":2,"directories":2,"symlinks":1,"hard_links":0,"other":1,"unknown":0,"bytes":5,"reflinked_bytes":0,"kept":0,"compared":0,"merged":0,"deleted":0,"not_deleted":0,"failures":1,"declined":0,...
        ! cannot remove 'none': No such file or directory
        = -t
        # A table on stderr has no zeros.
        rmz (--stats|--stats=text) t
        !! entries:...6
        !! files:...2
        !! directories:...2
        !! symbolic links:...1
        !! other types:...1
        !! size:...5 B
        !! seconds:...
        !! entries per second:...
        !! size per second:...
        ? 0
        = -t
        # A run without work has totals, too.
        rmz -f --stats=json
        > {"version":2,"entries":0,..."failures":0,"declined":0,...
        rmz -I --stats=json t
        > {"version":2,"entries":0,..."failures":0,"declined":1,...
        ! remove 1 argument recursively?
        ? 0
        rmz --stats=json --files0-from=none
        > {"version":2,"entries":0,..."failures":1,"declined":0,...
        ! cannot open 'none' for reading: No such file or directory
        rmz --stats=json --exclude-from=none t
        > {"version":2,"entries":0,..."failures":1,"declined":0,...
        ! cannot open 'none' for reading: No such file or directory
        # A wrong command line has none.
        rmz --stats=json
        ! missing operand
        ! try
        # Names of a list that cannot be read are failures.
        rmz --stats=json --files0-from=- << t/a\0\0\c
        > {"version":2,"entries":1,..."bytes":4,..."failures":1,...
        ! -:2: invalid zero-length file name
        = -t/a
        # Answers of no are counted.
        f=12345
        rmz -i --stats=json f << n
        > {"version":2,"entries":0,..."failures":0,"declined":1,...
        ! remove regular file 'f'?
        ? 0
        # Those of a dry run say so.
        rmz --dry-run --stats=json f
        > would remove 'f'
        > would remove 1 entry, 5 B
        > {"version":2,"entries":1,..."bytes":5,..."dry_run":true,..."#,
    );
}

/// The tests of cpz show more of these failures.
#[test]
fn many_failures_are_counted_at_a_terminal() {
    for (words, last) in [
        ("t/a none{0..10}", "rmz: 11 failures; 1 entry removed"),
        (
            "t/a none{0..9}",
            "rmz: cannot remove 'none9': No such file or directory",
        ),
        (
            "--dry-run t/a none{0..10}",
            "rmz: 11 failures; 0 entries removed",
        ),
    ] {
        let scratch = Scratch::with("t/a=");
        let run = rmz(&scratch, words);
        let shown = or_skip!(run.at_terminal()).fails().stdout_text();
        assert_eq!(shown.lines().last(), Some(last));
        let is_counted = shown.contains("rmz: 1 more failure: No such file or directory\r\n");
        assert_eq!(is_counted, last.contains("11"), "{words}: {shown}");
    }
}
